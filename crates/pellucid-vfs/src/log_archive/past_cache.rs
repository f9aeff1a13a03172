//! Bytes that go to the disk past the page cache: they were in it a moment ago, and would push out what is read again.
//!
//! A file system that cannot do that says so at the first write, and gets them the usual way.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};

/// What place in memory, place in the file and length of such a write are multiples of: no disk has larger blocks (open(2), "O_DIRECT").
const BLOCK_BYTES: usize = 4096;
/// Bytes that one write has at least, but for the last one.
const WRITE_BYTES: usize = 1 << 20;

/// A new file that is written from its beginning to its end.
#[derive(Debug)]
pub struct PastCache<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    /// Where in the buffer what is not written begins, and how much that is.
    start: usize,
    filled: usize,
    written: u64,
    is_direct: bool,
}

impl<'a> PastCache<'a> {
    /// Begins to write `file`, which gets at most `piece_bytes` at a time.
    pub fn new(file: &'a File, piece_bytes: usize) -> Self {
        let buffer = vec![0; WRITE_BYTES + piece_bytes + BLOCK_BYTES];
        let start = buffer.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
        Self { file, buffer, start, filled: 0, written: 0, is_direct: set_direct(file, true) }
    }

    /// Appends `count` bytes, no more than a piece has, which `fill` puts into a buffer.
    ///
    /// # Errors
    /// The system's, as an error that `failed` makes of it; those of `fill`.
    pub fn append<E>(
        &mut self,
        count: usize,
        failed: impl FnOnce(io::Error) -> E,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let at = self.start + self.filled;
        fill(&mut self.buffer[at..at + count])?;
        self.filled += count;
        match self.filled < WRITE_BYTES {
            true => Ok(()),
            false => self.put_blocks().map_err(failed),
        }
    }

    /// Writes the rest. The file is one that is written the usual way again.
    ///
    /// # Errors
    /// The system's.
    pub fn end(mut self) -> io::Result<()> {
        self.put_blocks()?;
        if self.is_direct && !set_direct(self.file, false) {
            return Err(io::Error::other("it cannot be written the usual way any more"));
        }
        self.file.write_all_at(&self.buffer[self.start..self.start + self.filled], self.written)
    }

    /// Writes the whole blocks of what there is, and puts the rest to the front.
    fn put_blocks(&mut self) -> io::Result<()> {
        let whole = self.filled / BLOCK_BYTES * BLOCK_BYTES;
        let bytes = &self.buffer[self.start..self.start + whole];
        match self.file.write_all_at(bytes, self.written) {
            Err(error) if self.is_direct && error.kind() == io::ErrorKind::InvalidInput => {
                self.is_direct = false;
                set_direct(self.file, false);
                self.file.write_all_at(bytes, self.written)?;
            }
            written => written?,
        }
        self.written += whole as u64;
        let rest = self.start + whole..self.start + self.filled;
        self.buffer.copy_within(rest, self.start);
        self.filled -= whole;
        Ok(())
    }
}

/// Whether writes to the file go past the page cache now, if that was asked.
fn set_direct(file: &File, is_direct: bool) -> bool {
    let Ok(mut flags) = fcntl_getfl(file) else { return false };
    flags.set(OFlags::DIRECT, is_direct);
    fcntl_setfl(file, flags).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends `total` bytes in pieces of `piece`, each of its place, and reads the file back.
    fn written(folder: &std::path::Path, total: usize, piece: usize) -> Vec<u8> {
        let path = folder.join("file");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.unwrap();
        let mut out = PastCache::new(&file, piece);
        let mut at = 0;
        while at < total {
            let count = piece.min(total - at);
            let fill = |bytes: &mut [u8]| {
                for byte in bytes {
                    *byte = (at % 251) as u8;
                    at += 1;
                }
                Ok(())
            };
            out.append(count, |error| error, fill).unwrap();
        }
        out.end().unwrap();
        assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::DIRECT));
        // The head of a segment is written last, the usual way.
        file.write_all_at(&[255; 512], 0).unwrap();
        file.sync_data().unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn what_is_appended_is_there_whole_whatever_its_length() {
        // The second one may be a file system in memory, of which some have no such writes.
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()];
        for folder in &folders {
            for (total, piece) in
                [(512, 512), (4096, 4096), (4632, 4120), (3_000_001, 4120), (9_437_184, 262_144)]
            {
                let found = written(folder.path(), total, piece);
                let expected = (0..total).map(|at| if at < 512 { 255 } else { (at % 251) as u8 });
                assert!(found.into_iter().eq(expected), "{total} bytes in pieces of {piece}");
            }
        }
    }
}
