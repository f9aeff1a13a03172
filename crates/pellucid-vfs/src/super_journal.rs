//! The name of a super-journal at the end of a journal.
//!
//! It is in clear, so that a plain database in the same transaction finds it. Therefore any process
//! with access to the journal can change it, and SQLite deletes the file that it names.
//!
//! The shim believes only what SQLite itself writes (`vdbeCommit`, pager.c `writeSuperJournal`).
//! The file's place is not limited, because it is named after the connection's main database, which
//! may be anywhere. So the shim looks at the place: either no file is there, which is how SQLite
//! commits such a transaction, or one that lists this very journal, as every super-journal does.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pellucid::journal::{page_number, MAGIC};
use pellucid_files::paths::is_super_journal;

/// Bytes after a super-journal's name: length, checksum, magic.
pub const END_BYTES: usize = 16;
/// Bytes of the page number before the name.
const NUMBER_BYTES: u64 = 4;
/// The most bytes of a name. It is a path; SQLite's own limit is 512 on Unix.
const NAME_MOST: u64 = 4096;
/// Bytes of a name's suffix: `-mj`, six hexadecimal digits, `9` and two more.
const SUFFIX_BYTES: usize = 12;
/// The most bytes of a super-journal. It has a path for each database of a connection, of which
/// there are at most 125.
const LIST_MOST: u64 = 1 << 20;

/// The super-journal that a journal names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// The journal names none that SQLite would have written, so the transaction is this database's
    /// own.
    Nothing,
    /// The named file is gone: the transaction is committed. Has the name and what follows it as
    /// they lie in the journal.
    Gone(Vec<u8>),
    /// The named file is there and lists this journal. Has the same bytes.
    There(Vec<u8>),
    /// Another file has the name. The transaction is not committed, and that file must not be
    /// deleted.
    Another(String),
}

/// Reads the end of a journal of `size` bytes by `read`, and looks for the file that it names.
/// `journal` is the journal's own name.
///
/// # Errors
/// An error of `read`, or one of the look at the file, if it cannot say whether the file is there.
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
    // If the length is damaged, sealed records lie in its place and must not be taken for a name
    // (pager.c, readSuperJournal).
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

/// Whether `name` has the form that `vdbeCommit` gives it: an absolute path and a suffix. It must
/// have no zero byte, which SQLite takes for its end.
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

/// Looks at the file by its descriptor, without waiting and without following a link.
fn what_is_at(path: &Path, journal: &Path) -> std::io::Result<Found> {
    let looked = match pellucid_files::paths::look_at_name(path) {
        Ok(looked) => looked,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Found::Nothing)
        }
        // No file can have such a name, so SQLite has committed no transaction by it.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENAMETOOLONG | libc::ELOOP)) => {
            return Ok(Found::Another("a name that no file can have"))
        }
        Err(error) => return Err(error),
    };
    if !looked.is_file() {
        return Ok(Found::Another("not a regular file"));
    }
    if looked.size() == 0 {
        // SQLite counts an empty file as missing (`unixAccess`), and so does not delete it.
        return Ok(Found::Nothing);
    }
    let Ok(file) = pellucid_files::regular::open_named(path) else {
        return Ok(Found::Another("not to be read"));
    };
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
