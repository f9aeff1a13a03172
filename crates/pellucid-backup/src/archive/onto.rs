//! Log sets written into a standby that programs read: by SQLite's own transactions, one or several sets each.
//!
//! The pages go through `sqlite_dbpage` of the program's own SQLite (dbpage vtab). In WAL mode readers keep the state that they began
//! with and keep nobody out; the next transaction of a reader has the new one.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::hash::hex;
use pellucid::header::Standing;
use pellucid::{Error, Subject};
use pellucid_files::paths::look_at_name;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::{ffi, DatabaseError};
use pellucid_vfs::opened;

use crate::restore::LogSet;

/// SQLite keeps this byte for its locks; the page that has it is never written (fileformat2.html, "The Lock-Byte Page").
const LOCK_BYTE: u64 = 0x4000_0000;
/// Bytes of page 1: the change counter, and the largest root page of a database that shrinks by itself (fileformat2.html).
const COUNTER: std::ops::Range<usize> = 24..28;
const LARGEST_ROOT: std::ops::Range<usize> = 52..56;

/// A connection that changes a standby.
#[derive(Debug)]
pub struct Onto {
    handle: Handle<'static>,
    path: PathBuf,
    file: Option<(u64, u64)>,
    page_bytes: usize,
    timeout: Duration,
}

/// What a standby is found as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Is {
    /// Who may open it.
    pub standing: Standing,
    /// Its file id, in hexadecimal.
    pub file_id: String,
    /// Its change counter.
    pub counter: u32,
}

impl Onto {
    /// Opens a standby.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn open(path: &Path, timeout: Duration) -> Result<Self, DatabaseError> {
        let parameters = uri(path, "vfs=pellucid&require=container&pellucid_recover=1");
        let handle = Handle::open(path, &parameters, ffi::OPEN_READWRITE)?;
        handle.busy_timeout(timeout.as_millis().try_into().unwrap_or(i32::MAX));
        // A power cut that takes a commit takes what is written down of it, or nothing.
        handle.run("PRAGMA synchronous = FULL")?;
        let mode = handle.text("PRAGMA journal_mode")?;
        if mode != "wal" {
            let what = format!(
                "its journal mode is `{mode}`, in which readers would keep new commits out"
            );
            return Err(Error::unsupported(Subject::File(path.to_owned()), what).into());
        }
        let page_bytes = usize::try_from(handle.number("PRAGMA page_size")?).unwrap_or(0);
        let file = identity(path);
        Ok(Self { handle, path: path.to_owned(), file, page_bytes, timeout })
    }

    /// Whether the file that it has open is still the one of that name.
    pub fn is_of(&self, path: &Path) -> bool {
        self.file.is_some() && self.file == identity(path)
    }

    /// What the database is at this moment.
    ///
    /// # Errors
    /// [`DatabaseError`], also where another connection writes for longer than the timeout.
    pub fn look(&self) -> Result<Is, DatabaseError> {
        self.begin()?;
        let found = self.found();
        self.handle.run("ROLLBACK")?;
        found
    }

    fn begin(&self) -> Result<(), DatabaseError> {
        // Page 1 is read again, and its counter counted up from what is there (`pager_write_changecounter`).
        self.handle.run("PRAGMA shrink_memory")?;
        self.handle
            .begin("BEGIN IMMEDIATE", self.timeout)
            .map_err(|error| pellucid_engine::header_change::in_use(&self.path, error))
    }

    /// The same, of a transaction that is begun: nobody changes the header meanwhile.
    fn found(&self) -> Result<Is, DatabaseError> {
        let none = || Error::misuse(Subject::File(self.path.clone()), "not an encrypted database");
        let (_, container) = opened::sealed(&self.handle)?.ok_or_else(none)?;
        let header = container.header().ok_or_else(none)?;
        let first = self.page(1)?;
        Ok(Is {
            standing: header.standing(),
            file_id: hex(&header.file_id),
            counter: word(&first, COUNTER),
        })
    }

    fn page(&self, number: u32) -> Result<Vec<u8>, DatabaseError> {
        let mut page = vec![0; self.page_bytes];
        let read = self.handle.prepared("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
        match read.blob(number.into(), &mut page)? {
            true => Ok(page),
            false => Err(Error::corrupt(Subject::Page(number), "it cannot be read").into()),
        }
    }

    /// Applies all of some log sets, each behind the one before, in one transaction. `may` is asked once the transaction is begun, and
    /// before it is committed; false leaves the database as it is.
    ///
    /// # Errors
    /// What reading the sets says; [`DatabaseError`]. The database is as it was then.
    pub fn apply(
        &self,
        sets: &[LogSet<'_, '_>],
        may: &mut dyn FnMut(&Is) -> Result<bool, DatabaseError>,
    ) -> Result<bool, DatabaseError> {
        self.begin()?;
        let applied = self.found().and_then(|found| match may(&found)? {
            true => self.write(sets).map(|()| true),
            false => Ok(false),
        });
        match applied {
            Ok(true) => match self.handle.run("COMMIT") {
                Ok(()) => Ok(true),
                Err(error) => {
                    let _ = self.handle.run("ROLLBACK");
                    Err(error)
                }
            },
            other => {
                // The first error is the one to tell.
                let _ = self.handle.run("ROLLBACK");
                other
            }
        }
    }

    fn write(&self, sets: &[LogSet<'_, '_>]) -> Result<(), DatabaseError> {
        let had = u32::try_from(self.handle.number("PRAGMA page_count")?).unwrap_or(u32::MAX);
        let mut first = self.page(1)?;
        if word(&first, LARGEST_ROOT) != 0 {
            // A commit of SQLite's moves pages of such a database, which the sets have moved already. This connection leaves that; the
            // mark of it in page 1 is written over below.
            self.handle.run("PRAGMA auto_vacuum = INCREMENTAL")?;
        }
        let put = self.handle.prepared("INSERT INTO sqlite_dbpage(pgno, data) VALUES (?1, ?2)")?;
        let lock_page = LOCK_BYTE / self.page_bytes.max(1) as u64 + 1;
        let zeros = vec![0; self.page_bytes];
        let mut size = had;
        for set in sets {
            let Some(last) = set.commits().last() else { continue };
            let pages = last.pages;
            let mut new: BTreeSet<u32> = (size + 1..=pages).collect();
            let mut failed = None;
            let read = set.apply(set.commits().len(), &mut |number, page| {
                if number > pages {
                    return Ok(());
                }
                new.remove(&number);
                if number == 1 {
                    first.copy_from_slice(page);
                    return Ok(());
                }
                put.run_with(number.into(), page).map_err(|error| {
                    let told =
                        Error::io(Subject::Page(number), std::io::Error::other(error.to_string()));
                    failed = Some(error);
                    told
                })
            });
            match failed {
                Some(error) => return Err(error),
                None => read?,
            }
            // SQLite leaves such gaps (`sqlite3PagerDontWrite`).
            for number in new.into_iter().filter(|number| u64::from(*number) != lock_page) {
                put.run_with(number.into(), &zeros)?;
            }
            size = pages;
        }
        // Always, so that each transaction counts the counter up.
        put.run_with(1, &first)?;
        drop(put);
        if size < had {
            // Deletes that page and all behind it, if nothing is written after that.
            self.handle.run(&format!(
                "INSERT INTO sqlite_dbpage(pgno, data) VALUES ({}, NULL)",
                size + 1
            ))?;
        }
        Ok(())
    }
}

fn word(page: &[u8], at: std::ops::Range<usize>) -> u32 {
    let bytes = page.get(at).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_be_bytes)
}

/// Device and inode of what has a name.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = look_at_name(path).ok()?;
    Some((found.dev(), found.ino()))
}
