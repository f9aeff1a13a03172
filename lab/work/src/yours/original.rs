//! The user's database, as its first bytes show it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{beside, PLAIN_MAGIC};

/// The first bytes of a sealed one, and of one that is about to be plain (docs/format.md, "Sector 0").
const SEALED_MAGIC: [&[u8; 16]; 2] = [b"Pellucid sealed\0", b"Pellucid laying\0"];
/// Of a page size that does not fit its two bytes (sqlite.org/fileformat.html, 1.3.2).
const LARGEST_PAGE: (u16, u32) = (1, 65_536);
/// Write format version of a database in WAL mode (sqlite.org/fileformat.html, 1.3.3).
const WAL: u8 = 2;

/// A plain database.
#[derive(Debug)]
pub struct Original {
    /// Absolute.
    pub path: PathBuf,
    /// With its log.
    pub bytes: u64,
    pub page_size_bytes: u32,
    pub wal: bool,
}

impl Original {
    /// Looks at the database at `path`: its length, its pages, its journal.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Invalid`] for a database that is sealed, or for what is none.
    pub fn look(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let path = path.canonicalize().map_err(Error::io(name.clone()))?;
        let mut first = Vec::new();
        let mut file = File::open(&path).map_err(Error::io(name.clone()))?;
        file.by_ref().take(100).read_to_end(&mut first).map_err(Error::io(name.clone()))?;
        if SEALED_MAGIC.iter().any(|magic| first.starts_with(*magic)) {
            return Err(Error::invalid(format!(
                "`{name}` is sealed, and both sides are made from a plain database: make a copy of it, \
                 `pellucid decrypt` the copy where clear text may lie, and give that"
            )));
        }
        if !first.starts_with(PLAIN_MAGIC) || first.len() < 100 {
            return Err(Error::invalid(format!("`{name}` is no SQLite database, or an empty one")));
        }
        let page_size = u16::from_be_bytes([first[16], first[17]]);
        let page_size_bytes =
            if page_size == LARGEST_PAGE.0 { LARGEST_PAGE.1 } else { page_size.into() };
        let length = |path: &Path| path.metadata().map_or(0, |found| found.len());
        let bytes = length(&path) + length(&beside(&path, "-wal"));
        Ok(Self { bytes, page_size_bytes, wal: first[18] == WAL, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn a_database_is_told_by_its_first_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.db");
        for (journal, page_size) in [("WAL", 1024), ("DELETE", 65_536)] {
            let connection = Connection::open(&path).unwrap();
            connection
                .execute_batch(&format!(
                    "PRAGMA page_size={page_size}; PRAGMA journal_mode={journal}; CREATE TABLE t(a)"
                ))
                .unwrap();
            drop(connection);
            let found = Original::look(&path).unwrap();
            assert_eq!((found.page_size_bytes, found.wal), (page_size, journal == "WAL"));
            assert_eq!(found.bytes, std::fs::metadata(&path).unwrap().len());
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn what_is_no_plain_database_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.db");
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Original::look(&path).unwrap_err().to_string()
        };
        assert!(refused(b"Pellucid sealed\0\0\0").contains("pellucid decrypt"));
        for bytes in [&b""[..], b"SQLite format 3\0", &[7; 200]] {
            assert!(refused(bytes).contains("no SQLite database"));
        }
        assert!(Original::look(&dir.path().join("none.db")).is_err());
    }
}
