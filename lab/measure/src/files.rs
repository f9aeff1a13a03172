//! Files of databases and media: copied, looked into, measured, taken away.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{fadvise, statvfs, Advice};

use crate::error::{Error, Result};

/// The first bytes of a plain database (sqlite.org/fileformat.html, 1.3.1).
pub const PLAIN_MAGIC: &[u8; 16] = b"SQLite format 3\0";
const MIB: u64 = 1 << 20;
const BLOCK_BYTES: usize = 1 << 20;

/// Length of the file, bytes.
///
/// # Errors
/// [`Error::Io`]
pub fn length(path: &Path) -> Result<u64> {
    fs::metadata(path).map(|meta| meta.len()).map_err(about(path))
}

/// `app.db` with `-wal` is `app.db-wal`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut file = path.as_os_str().to_os_string();
    file.push(suffix);
    file.into()
}

/// Removes the database at `path` with the files beside it, if they are there.
///
/// # Errors
/// [`Error::Io`]
pub fn remove(path: &Path) -> Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let file = beside(path, suffix);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(about(&file)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A copy without a shared extent, synced, that lies in the page cache.
///
/// # Errors
/// [`Error::Io`]; a file that is there already is one.
pub fn copy_whole(from: &Path, to: &Path) -> Result<()> {
    let copy = || {
        let (mut source, mut target) = (File::open(from)?, File::create_new(to)?);
        let mut buffer = vec![0; BLOCK_BYTES];
        loop {
            let bytes = source.read(&mut buffer)?;
            if bytes == 0 {
                break;
            }
            target.write_all(&buffer[..bytes])?;
        }
        Ok(())
    };
    copy().map_err(about(to))?;
    sync(to)
}

/// Writes the file out, and its name: the kernel leaves both for half a minute, and a run would pay for it.
///
/// # Errors
/// [`Error::Io`]
pub fn sync(path: &Path) -> Result<()> {
    let sync = || {
        File::open(path)?.sync_all()?;
        path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    };
    sync().map_err(about(path))
}

/// Brings the file into the page cache.
///
/// # Errors
/// [`Error::Io`]
pub fn read_through(path: &Path) -> Result<()> {
    let read = || io::copy(&mut File::open(path)?, &mut io::sink()).map(drop);
    read().map_err(about(path))
}

/// Takes the file out of the page cache; it is synced before, because what is not written yet would stay.
///
/// # Errors
/// [`Error::Io`]
pub fn evict(path: &Path) -> Result<()> {
    let evict = || {
        let file = File::open(path)?;
        file.sync_all()?;
        Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
    };
    evict().map_err(about(path))
}

/// Whether the file at `path` begins as a plain database does.
///
/// # Errors
/// [`Error::Io`]
pub fn has_magic(path: &Path) -> Result<bool> {
    let mut first = Vec::new();
    let file = File::open(path).map_err(about(path))?;
    file.take(PLAIN_MAGIC.len() as u64).read_to_end(&mut first).map_err(about(path))?;
    Ok(first == PLAIN_MAGIC)
}

/// Whether `text` is anywhere in the file at `path`.
///
/// # Errors
/// [`Error::Io`]
pub fn holds(path: &Path, text: &str) -> Result<bool> {
    let text = text.as_bytes();
    let mut file = File::open(path).map_err(about(path))?;
    // Of each block the end is kept: the text may lie across two.
    let (mut block, mut kept) = (vec![0; text.len() + BLOCK_BYTES], 0);
    loop {
        let bytes = file.read(&mut block[kept..]).map_err(about(path))?;
        if bytes == 0 {
            return Ok(false);
        }
        let end = kept + bytes;
        if block[..end].windows(text.len()).any(|window| window == text) {
            return Ok(true);
        }
        let keep = end.min(text.len() - 1);
        block.copy_within(end - keep..end, 0);
        kept = keep;
    }
}

/// Makes sure that `bytes` fit into the file system of `dir`.
///
/// # Errors
/// [`Error::Invalid`] if they do not.
pub fn room(dir: &Path, bytes: u64) -> Result<()> {
    let free = free(dir)?;
    if free >= bytes {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{}: {} MiB are needed and {} MiB are free: choose another --dir or a smaller --size-mib",
        dir.display(),
        bytes / MIB,
        free / MIB
    )))
}

/// Bytes that are free in the file system of `dir`.
///
/// # Errors
/// [`Error::Io`]
pub fn free(dir: &Path) -> Result<u64> {
    let found = statvfs(dir).map_err(|error| about(dir)(error.into()))?;
    Ok(found.f_bavail * found.f_frsize)
}

fn about(path: &Path) -> impl FnOnce(io::Error) -> Error {
    Error::io(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_across_two_blocks_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for before in [0, 1, (1 << 20) - 3, (1 << 20) + 2, 3 << 20] {
            let mut bytes = vec![b'x'; before];
            bytes.extend_from_slice(b"marker");
            fs::write(&path, &bytes).unwrap();
            assert!(holds(&path, "marker").unwrap(), "{before}");
            assert!(!holds(&path, "maker").unwrap());
        }
        fs::write(&path, b"").unwrap();
        assert!(!holds(&path, "marker").unwrap() && !has_magic(&path).unwrap());
    }

    #[test]
    fn a_copy_is_whole_and_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let bytes: Vec<u8> = (0..3_000_001_u32).map(|n| n as u8).collect();
        fs::write(&from, &bytes).unwrap();
        copy_whole(&from, &to).unwrap();
        assert!(fs::read(&to).unwrap() == bytes);
        assert!(copy_whole(&from, &to).unwrap_err().to_string().contains("to"));
    }

    #[test]
    fn too_little_room_is_told_with_numbers() {
        let dir = tempfile::tempdir().unwrap();
        room(dir.path(), 1).unwrap();
        let error = room(dir.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("MiB are needed") && error.contains("--size-mib"), "{error}");
    }
}
