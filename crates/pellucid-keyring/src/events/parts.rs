//! The parts of the event log: those that are closed, `events.1` and so on, and the one that writers append to, `events.log`.
//!
//! A part that has grown large enough is renamed, and the chain goes on in the next one: all of them joined are one log. So no
//! log grows until a file system refuses it, and no line is ever taken out of it. Described in docs/format.md, "Event log".

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use pellucid_files::paths::rename_new;
use pellucid_files::regular;

const CLOSED: &str = "events.";
const OPEN: &str = "events.log";
/// A part that has this many bytes is closed: some forty thousand events.
const PART_BYTES: u64 = 16 << 20;

/// The part that writers append to.
pub(super) fn open_part(home: &Path) -> PathBuf {
    home.join(OPEN)
}

/// The bytes from which on a part is closed.
pub(super) fn most() -> u64 {
    #[cfg(test)]
    if let Some(most) = tests::MOST.get() {
        return most;
    }
    PART_BYTES
}

/// The closed parts by their numbers, in order.
pub(super) fn closed(home: &Path) -> std::io::Result<Vec<(u64, PathBuf)>> {
    let entries = match std::fs::read_dir(home) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(CLOSED));
        let number = digits.and_then(|digits| Some((digits, digits.parse::<u64>().ok()?)));
        // Its number is written in one way: another name is another file.
        if let Some((digits, number)) = number {
            if number.to_string() == digits {
                found.push((number, entry.path()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The bytes in closed parts.
pub(super) fn closed_bytes(home: &Path) -> std::io::Result<u64> {
    let parts = closed(home)?;
    parts.iter().try_fold(0, |all, (_, path)| Ok(all + path.symlink_metadata()?.len()))
}

/// Closes the part that was written to. The keyring holds its last line by now.
pub(super) fn close(home: &Path) -> std::io::Result<()> {
    let last = closed(home)?.last().map_or(0, |(number, _)| *number);
    rename_new(&open_part(home), &home.join(format!("{CLOSED}{}", last + 1)))?;
    File::open(home)?.sync_all()
}

/// A log as it was read.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// All parts, one behind the other.
    pub(super) bytes: Vec<u8>,
    /// The name and the lines of each closed part.
    pub(super) closed: Vec<(String, usize)>,
}

/// Reads all parts. One that is closed meanwhile is read once.
pub(super) fn read(home: &Path) -> std::io::Result<Joined> {
    loop {
        let before = closed(home)?;
        let mut joined = Joined::default();
        let bytes = &mut joined.bytes;
        for (_, path) in &before {
            let from = bytes.len();
            regular::open_named(path)?.read_to_end(bytes)?;
            let lines = bytes[from..].iter().filter(|byte| **byte == b'\n').count();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            joined.closed.push((name, lines));
        }
        match regular::open_named(&open_part(home)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            file => drop(file?.read_to_end(bytes)?),
        }
        if closed(home)? == before {
            return Ok(joined);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// Of the tests in this thread.
        pub(in crate::events) static MOST: Cell<Option<u64>> = const { Cell::new(None) };
    }
}
