//! Starts the kernel's write-out of a log while the program goes on.
//!
//! A checkpoint first syncs the log, and would then wait for megabytes that could have been written
//! before. The kernel may write them at any time and in any order, so nothing depends on this
//! module and its errors do not matter. It has a descriptor of its own: SQLite takes no POSIX locks
//! on a log, so closing it drops none.
//!
//! Only a connection that alone has written as much as a whole log does this. Where several write,
//! one goes on while another waits for its sync, and an early write-out would only cost them
//! processor time.

use std::fs::File;
use std::path::{Path, PathBuf};

/// Bytes that one write-out starts with.
const PIECE_BYTES: u64 = 512 * 1024;
/// Bytes of a log between two checkpoints (SQLITE_DEFAULT_WAL_AUTOCHECKPOINT, 1000 frames of 4
/// KiB).
const ALONE_BYTES: u64 = 4 << 20;

/// The complete pieces of a log whose write-out was not started.
#[derive(Debug)]
pub struct WriteOut {
    path: PathBuf,
    file: Option<File>,
    refused: bool,
    /// The offset where the last write ended.
    end: u64,
    /// Bytes written since a write of another connection was noticed.
    alone: u64,
    due: Option<(u64, u64)>,
}

impl WriteOut {
    /// Makes the write-out of the log at `path`.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, refused: false, end: 0, alone: 0, due: None }
    }

    /// Notes that bytes `from..to` were written.
    pub fn wrote(&mut self, from: u64, to: u64) {
        // A write behind the last end: another connection wrote in between. A write before it: a
        // new run of the log.
        self.alone = if from > self.end { 0 } else { self.alone + (to - from) };
        self.end = to;
        let (first, last) = (from / PIECE_BYTES, to / PIECE_BYTES);
        if first < last && self.alone >= ALONE_BYTES {
            let begun = self.due.filter(|due| due.1 == first * PIECE_BYTES).map(|due| due.0);
            self.due = Some((begun.unwrap_or(first * PIECE_BYTES), last * PIECE_BYTES));
        }
    }

    /// Starts the write-out of the complete pieces. Called when no connection waits for this one.
    pub fn begin(&mut self) {
        let Some((from, to)) = self.due.take() else { return };
        if self.file.is_none() && !self.refused {
            self.file = open(&self.path);
            self.refused = self.file.is_none();
        }
        if let Some(file) = &self.file {
            begin_write_out(file, from, to - from);
        }
    }
}

/// Opens the log without waiting and without following a link, because another file may have its
/// place by now.
fn open(path: &Path) -> Option<File> {
    pellucid_files::regular::open_named(path).ok()
}

#[cfg(target_os = "linux")]
fn begin_write_out(file: &File, from: u64, bytes: u64) {
    use std::os::fd::AsRawFd;
    let descriptor = file.as_raw_fd();
    // SAFETY: the descriptor is open; the call takes numbers alone.
    unsafe {
        libc::sync_file_range(descriptor, from as i64, bytes as i64, libc::SYNC_FILE_RANGE_WRITE)
    };
}

#[cfg(not(target_os = "linux"))]
fn begin_write_out(_file: &File, _from: u64, _bytes: u64) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that has been alone for a whole log.
    fn alone() -> WriteOut {
        let mut log = WriteOut::new(PathBuf::from("/nowhere/app.db-wal"));
        log.wrote(0, ALONE_BYTES);
        log.begin();
        log
    }

    #[test]
    fn a_piece_is_due_when_its_end_is_written() {
        let mut log = alone();
        assert!(log.due.is_none());
        log.wrote(ALONE_BYTES, ALONE_BYTES + PIECE_BYTES - 1);
        assert_eq!(log.due, None);
        log.wrote(ALONE_BYTES + PIECE_BYTES - 1, ALONE_BYTES + PIECE_BYTES + 9);
        let piece = (ALONE_BYTES, ALONE_BYTES + PIECE_BYTES);
        assert_eq!(log.due, Some(piece));
        log.wrote(ALONE_BYTES + PIECE_BYTES + 9, ALONE_BYTES + 2 * PIECE_BYTES);
        assert_eq!(log.due, Some((piece.0, piece.1 + PIECE_BYTES)), "not yet begun, so both");
        log.begin();
        assert_eq!(log.due, None);
        assert!(log.refused, "a log that cannot be opened is left alone");
    }

    #[test]
    fn beside_other_writers_nothing_is_begun_early() {
        let mut log = alone();
        log.wrote(ALONE_BYTES + 4096, ALONE_BYTES + 4 * PIECE_BYTES);
        assert_eq!(log.due, None);
    }

    #[test]
    fn a_log_that_begins_anew_counts_on() {
        let mut log = alone();
        log.wrote(32, PIECE_BYTES + 32);
        assert_eq!(log.due, Some((0, PIECE_BYTES)));
    }
}
