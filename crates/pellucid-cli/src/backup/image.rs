//! The database that a backup would give, for SQLite to check: never in clear on a disk.
//!
//! What was a sealed database becomes one again, in a temporary file under a key that exists only here. The pages of a
//! plain one have no room for tags, so that it is checked in memory.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pellucid::protector::KeyFile;
use pellucid::shown::Shown;
use pellucid::{Algorithm, Error, Result as Outcome, Subject};
use pellucid_backup::job::{processors, Chain};
use pellucid_backup::restore::{PageTarget, SealedTarget};
use pellucid_engine::audit::available;
use pellucid_host::connection::uri;
use pellucid_vfs::seal_request::{offer, Birth, Offer, Protection};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::exit;
use crate::output::{Failure, Id, Output, Unit};

/// At most so many of SQLite's findings are shown.
const SHOWN: usize = 20;

/// Restores it to nowhere that stays, and lets SQLite check it.
///
/// # Errors
/// What the backup says; with exit status 3 what SQLite finds.
pub fn check(chain: &Chain<'_>, load: &[PathBuf], output: &Output) -> Result<(), Failure> {
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    let bar = output.progress("restoring to a copy", Unit::Pages);
    let mut progress = |done: u32, all: u32| {
        bar.set_length(u64::from(all));
        bar.set_position(u64::from(done));
    };
    let found = match chain.header().sealed_source {
        true => {
            let directory = tempfile::tempdir().map_err(no_room)?;
            let path = directory.path().join("image.db");
            let key = KeyFile::random()?;
            let birth = Birth::new(Algorithm::Aes256, &[Protection::KeyFile(key.clone())])?;
            let header = birth.header(chain.header().page_size)?;
            let target = SealedTarget::create(&path, header, birth.keys()?)?;
            chain.fill(&target, processors(), &mut progress)?;
            target.finish(chain.header().pages)?;
            offer(Offer::KeyFile(key));
            // Nothing is expected at a path that is gone in a moment.
            let name = uri(&path, "vfs=pellucid&require=container&pellucid_accept=1");
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI;
            let opened = Connection::open_with_flags(&name, flags);
            match opened {
                Ok(connection) => {
                    equip(&connection, load)?;
                    findings(&connection)
                }
                Err(error) => Err(error),
            }
        }
        false => findings_in_memory(chain, load, &mut progress)?,
    };
    bar.finish_and_clear();
    let found = found.or_else(|error| match error.sqlite_error_code() {
        // It comes no further: that is what it finds.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Ok(vec![error.to_string()]),
        _ => Err(error),
    });
    let found = found.map_err(|error| {
        Failure::new(Id::RestoredUnchecked,
            format!("SQLite cannot check the restored database: {error}"),
            "`--load FILE` loads an extension that has the collations and functions of the application; the backup itself \
             is as it was made",
        )
    })?;
    if found.is_empty() {
        return Ok(());
    }
    let mut shown = found.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if found.len() > SHOWN {
        shown += &format!("; and {} more", found.len() - SHOWN);
    }
    let hint = "the database had this damage when it was backed up: take an older backup, or use `pellucid salvage`";
    let failure = Failure::new(Id::SqliteFoundDamage, format!("SQLite finds in it: {shown}"), hint);
    Err(Failure { exit: exit::DAMAGE, ..failure })
}

fn no_room(error: std::io::Error) -> Failure {
    Failure::new(
        Id::NoTemporaryDirectory,
        format!("no temporary directory can be made: {error}"),
        "name another one in `TMPDIR`",
    )
}

/// Loads the extensions that the schema needs.
fn equip(connection: &Connection, load: &[PathBuf]) -> Result<(), Failure> {
    for extension in load {
        pellucid_files::trusted::check_extension(extension)?;
        pellucid_bundled::load(connection, extension).map_err(|error| {
            Failure::new(
                Id::ExtensionNotLoaded,
                format!("`{}` cannot be loaded: {error}", extension.shown()),
                "`--load` takes an extension of SQLite's",
            )
        })?;
    }
    Ok(())
}

/// What SQLite's own checks say; nothing if all is well.
fn findings(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut check = connection.prepare("PRAGMA integrity_check")?;
    let rows = check.query_map([], |row| row.get::<_, String>(0))?;
    for row in rows {
        found.push(row?);
    }
    if found == ["ok"] {
        found.clear();
    }
    Ok(found)
}

struct Memory {
    bytes: Mutex<Vec<u8>>,
    page_bytes: usize,
}

impl PageTarget for Memory {
    fn write(&self, first: u32, pages: &[u8]) -> Outcome<()> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (first as usize - 1) * self.page_bytes;
        // A full set may have been longer than the differential that follows.
        let end = bytes.len().min(at + pages.len());
        if let Some(place) = bytes.get_mut(at..end) {
            place.copy_from_slice(&pages[..end - at]);
        }
        Ok(())
    }
}

fn findings_in_memory(
    chain: &Chain<'_>,
    load: &[PathBuf],
    progress: &mut dyn FnMut(u32, u32),
) -> Result<rusqlite::Result<Vec<String>>, Failure> {
    let header = chain.header();
    let bytes = header.pages as usize * header.page_size as usize;
    // The image, and SQLite's own copy of it.
    if let Some(free) = available().filter(|free| *free < 2 * bytes as u64) {
        return Err(Error::limit(
            Subject::BackupSet(header.position),
            format!(
                "its check takes {} bytes of memory, and {free} are free: restore it",
                2 * bytes
            ),
        )
        .into());
    }
    let image = Memory { bytes: Mutex::new(vec![0; bytes]), page_bytes: header.page_size as usize };
    chain.fill(&image, processors(), progress)?;
    let mut image = image.bytes.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(formats) = image.get_mut(18..20) {
        // No log in memory (SQLite file format, 1.3.3).
        formats.fill(1);
    }
    let opened = Connection::open_in_memory().and_then(|mut connection| {
        // What the check would spill has pages of the image, and would be in clear.
        connection.execute_batch("PRAGMA temp_store = MEMORY")?;
        connection.deserialize_read_exact(c"main", Cursor::new(image), bytes, true)?;
        Ok(connection)
    });
    let connection = match opened {
        Ok(connection) => connection,
        Err(error) => return Ok(Err(error)),
    };
    equip(&connection, load)?;
    Ok(findings(&connection))
}
