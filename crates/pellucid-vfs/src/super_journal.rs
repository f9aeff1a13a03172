//! The name of a super-journal at the end of a journal: in clear, so that a plain database which shares the transaction
//! finds it, and therefore anybody's to write. SQLite deletes the file that it names.
//!
//! Believed is only what SQLite itself writes (`vdbeCommit`, pager.c `writeSuperJournal`). Where it may lie is not limited,
//! because it is named after the connection's main database, which may be anywhere. So it decides by what is there: nothing,
//! which is how SQLite commits such a transaction; or a file that lists this very journal, as every super-journal does.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use pellucid::journal::{page_number, MAGIC};
use pellucid_files::paths::is_super_journal;

/// Bytes after a super-journal's name: length, checksum, magic.
pub const END_BYTES: usize = 16;
/// The page number before the name.
const NUMBER_BYTES: u64 = 4;
/// A name is a path; SQLite's own limit is 512 on Unix.
const NAME_MOST: u64 = 4096;
/// `-mj`, six hexadecimal digits, `9` and two more.
const SUFFIX_BYTES: usize = 12;
/// A super-journal has a path for each database of a connection, of which there are at most 125.
const LIST_MOST: u64 = 1 << 20;

/// What a journal of `size` bytes says of a super-journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// Nothing that SQLite would have written: the transaction is this database's own.
    Nothing,
    /// One that is gone: the transaction is committed. The name and what follows it are as they lie in the journal.
    Gone(Vec<u8>),
    /// One that is there and lists this journal.
    There(Vec<u8>),
    /// Something else has the name: the transaction is not committed, and that is nothing to delete.
    Another(String),
}

/// Reads the end of a journal by `read`, and looks for what it names. `journal` is the journal's own name.
///
/// # Errors
/// Those of `read`; and where it cannot be told whether the file is there.
pub fn look(
    size: u64,
    journal: &Path,
    mut read: impl FnMut(&mut [u8], u64) -> std::io::Result<()>,
) -> std::io::Result<Named> {
    let Some(end_at) = size.checked_sub(END_BYTES as u64) else { return Ok(Named::Nothing) };
    let mut end = [0; END_BYTES];
    read(&mut end, end_at)?;
    let name_bytes = u64::from(page_number(&end));
    let fits = end[8..] == MAGIC && (1..=NAME_MOST).contains(&name_bytes);
    let Some(at) = end_at.checked_sub(name_bytes).filter(|at| fits && *at >= NUMBER_BYTES) else {
        return Ok(Named::Nothing);
    };
    let mut record = vec![0; name_bytes as usize];
    read(&mut record, at)?;
    // Behind a damaged length lie sealed records, which must not be taken for a name (pager.c, readSuperJournal).
    if !adds_up(&record, page_number(&end[4..])) {
        return Ok(Named::Nothing);
    }
    if !is_one(&record) {
        let name = String::from_utf8_lossy(&record);
        return Ok(Named::Another(format!("`{}` is no super-journal's name", name.escape_debug())));
    }
    let found = what_is_at(Path::new(OsStr::from_bytes(&record)), journal)?;
    record.extend_from_slice(&end);
    Ok(match found {
        Found::Nothing => Named::Gone(record),
        Found::SuperJournal => Named::There(record),
        Found::Another(what) => {
            let name = String::from_utf8_lossy(&record[..name_bytes as usize]);
            Named::Another(format!("the super-journal `{}` is {what}", name.escape_debug()))
        }
    })
}

/// The name that `vdbeCommit` makes: an absolute path and a suffix. SQLite takes a zero for its end.
fn is_one(name: &[u8]) -> bool {
    let Some((database, _)) = name.split_last_chunk::<SUFFIX_BYTES>() else { return false };
    let named = database.first() == Some(&b'/') && database.last() != Some(&b'/');
    is_super_journal(name) && named && !database.contains(&0)
}

/// Whether `stated` is the checksum of a name. SQLite adds C's `char`, which has a sign on some machines.
fn adds_up(name: &[u8], stated: u32) -> bool {
    let signed = name.iter().fold(0u32, |sum, byte| sum.wrapping_add(*byte as i8 as u32));
    let unsigned = name.iter().fold(0u32, |sum, byte| sum.wrapping_add(u32::from(*byte)));
    stated == signed || stated == unsigned
}

enum Found {
    Nothing,
    SuperJournal,
    Another(&'static str),
}

/// The file is looked at by its descriptor: nothing is waited for, and no link is followed.
fn what_is_at(path: &Path, journal: &Path) -> std::io::Result<Found> {
    let looked = match path.symlink_metadata() {
        Ok(looked) => looked,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Found::Nothing)
        }
        // Nothing can have such a name, so SQLite has committed no transaction by it.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENAMETOOLONG | libc::ELOOP)) => {
            return Ok(Found::Another("a name that no file can have"))
        }
        Err(error) => return Err(error),
    };
    if !looked.is_file() {
        return Ok(Found::Another("not a regular file"));
    }
    if looked.size() == 0 {
        // SQLite takes an empty file for none (`unixAccess`), and so deletes none.
        return Ok(Found::Nothing);
    }
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path);
    let Ok(file) = opened else { return Ok(Found::Another("not to be read")) };
    let mut list = Vec::new();
    let read = file.metadata().and_then(|metadata| match metadata.is_file() {
        true => file.take(LIST_MOST + 1).read_to_end(&mut list),
        false => Ok(0),
    });
    let journal = journal.as_os_str().as_bytes();
    let lists = |list: &[u8]| {
        list.split_last().is_some_and(|(last, names)| {
            let mut names = names.split(|byte| *byte == 0);
            *last == 0
                && names.clone().all(|name| name.first() == Some(&b'/'))
                && names.any(|name| name == journal)
        })
    };
    Ok(match read.is_ok() && list.len() as u64 <= LIST_MOST && lists(&list) {
        true => Found::SuperJournal,
        false => Found::Another("none of this journal"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_shape_that_sqlite_gives_it() {
        for name in ["/a/b.db-mj0123AF9F0", "/x-mj0000009FF", "/a b/\u{e9}-mjABCDEF900"] {
            assert!(is_one(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "-mj0123AF9F0",
            "/-mj0123AF9F0",
            "/a/-mj0123AF9F0",
            "a.db-mj0123AF9F0",
            "/a.db-mj0123af9F0",
            "/a.db-mj0123AF8F0",
            "/a.db-mj0123AF9F",
            "/a.db-mj0123AF9F0 ",
            "/a.db-mj0123AF9F0\0",
            "/etc/passwd\0/a.db-mj0123AF9F0",
            "/a.db-mjG123AF9F0",
            "/a.db_mj0123AF9F0",
            "/etc/passwd",
        ] {
            assert!(!is_one(name.as_bytes()), "{name:?}");
        }
    }

    #[test]
    fn under_a_name_that_no_file_can_have_nothing_is_committed() {
        let place = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("loop", place.path().join("loop")).unwrap();
        let place = place.path().display().to_string();
        let long = "x".repeat(300);
        let found = |name: String| {
            let sum = name.bytes().fold(0u32, |sum, byte| sum.wrapping_add(u32::from(byte)));
            let mut bytes = vec![0; 4];
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&(name.len() as u32).to_be_bytes());
            bytes.extend_from_slice(&sum.to_be_bytes());
            bytes.extend_from_slice(&MAGIC);
            look(bytes.len() as u64, Path::new("/x.db-journal"), |into, at| {
                into.copy_from_slice(&bytes[at as usize..][..into.len()]);
                Ok(())
            })
        };
        for name in
            [format!("{place}/{long}"), format!("{place}/{long}/b"), format!("{place}/loop/b")]
        {
            let named = found(format!("{name}.db-mj0123AF9F0")).unwrap();
            assert!(matches!(named, Named::Another(_)), "{name}: {named:?}");
        }
        let gone = found(format!("{place}/b.db-mj0123AF9F0")).unwrap();
        assert!(matches!(gone, Named::Gone(_)), "{gone:?}");
    }
}
