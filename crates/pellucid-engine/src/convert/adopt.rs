//! A database of another program becomes a container of its own: SQLite reads it page by page out of memory and writes the
//! sealed file.
//!
//! Nothing is in clear on a disk at any moment. The new database has its name only once it is complete; the old one is not
//! changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pellucid::header::Header;
use pellucid::shown::Shown;
use pellucid::unit::TAIL_BYTES;
use pellucid::{Error, Subject};
use pellucid_files::paths::{belongs_beside, full_name, BELONGS_BESIDE};
use pellucid_files::way::Way;
use pellucid_host::connection::{literal, uri, Handle};
use pellucid_host::folder::{name_of, Folder};
use pellucid_host::{ffi, DatabaseError, Options};
use pellucid_keyring::{Action, Event};
use pellucid_vfs::copy::CopyFile;
use pellucid_vfs::lent_pages::{LentPages, Pages};
use pellucid_vfs::pins::Expectation;
use pellucid_vfs::seal_request::{prepare_birth, remember, Birth};

use crate::convert::encrypt::{expected_bytes, finish_copy, AS_COPY};
use crate::convert::switch::check_space;
use crate::convert::{schema, unfinished, Progress, Stage};

/// A database to adopt.
pub struct Adoption<'a> {
    /// Its file, which errors name and whose owner and permissions the new one gets.
    pub from: &'a Path,
    /// Its pages.
    pub pages: Arc<dyn Pages>,
    /// Whether it was in WAL mode, as the new one will be.
    pub was_wal: bool,
    /// Whether SQLite's check of the content has to find nothing: pages without a tag may have been changed by anybody.
    pub check: bool,
    /// The new database.
    pub to: &'a Path,
}

impl std::fmt::Debug for Adoption<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adoption").field("from", &self.from).field("to", &self.to).finish()
    }
}

/// The new database's place.
struct Place {
    to: PathBuf,
    folder: Folder,
}

impl Place {
    fn find(to: &Path) -> Result<Self, Error> {
        let io = |error| Error::io(Subject::File(to.to_owned()), error);
        let way = Way::of(to).map_err(io)?;
        let place =
            Self { to: way.path().to_owned(), folder: Folder::at_end_of(&way).map_err(io)? };
        if belongs_beside(&place.to) {
            return Err(Error::misuse(Subject::File(to.to_owned()), BELONGS_BESIDE));
        }
        place.assert_free()?;
        Ok(place)
    }

    /// Neither a database nor a log is there, which SQLite would take for the new one's.
    fn assert_free(&self) -> Result<(), Error> {
        for suffix in ["", "-wal", "-journal", "-shm"] {
            let path = pellucid_files::paths::beside(&self.to, suffix);
            if self.folder.has(&name_of(&path)) {
                return Err(Error::misuse(
                    Subject::File(path),
                    "it is there already: name a new database with `--to`; nothing was changed",
                ));
            }
        }
        Ok(())
    }
}

/// Refuses a place for a new database that is taken or has the name of another file's part.
///
/// # Errors
/// [`Error::Misuse`], [`Error::Io`].
pub fn check_place(to: &Path) -> Result<(), Error> {
    Place::find(to).map(|_| ())
}

/// Makes the new database and returns its header. `birth` is asked once nothing else stands in the way, since it may have to make keys.
///
/// # Errors
/// [`DatabaseError`]; there is no new database then.
pub fn adopt(
    job: &Adoption<'_>,
    birth: impl FnOnce() -> Result<Birth, DatabaseError>,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<Header, DatabaseError> {
    let place = Place::find(job.to)?;
    let expected = Expectation::at_all_names(&place.to)?;
    let lent = LentPages::new(job.from.to_owned(), job.pages.clone())?;
    // SQLite has only a number for a page that does not open.
    let made = make(job, &place, &expected, &lent, birth, options, progress);
    made.map_err(|error| match (lent.failure(), error) {
        (Some(page), _) => page.into(),
        // SQLite names the lent database, whose name says nothing.
        (None, DatabaseError::Sqlite { code, message, .. }) => {
            DatabaseError::Sqlite { file: job.from.shown().to_string(), code, message }
        }
        (None, error) => error,
    })
}

fn make(
    job: &Adoption<'_>,
    place: &Place,
    expected: &Expectation,
    lent: &LentPages,
    birth: impl FnOnce() -> Result<Birth, DatabaseError>,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<Header, DatabaseError> {
    let connect = || Handle::open(job.from, &lent.uri(), ffi::OPEN_READONLY);
    let reader = connect()?;
    options.equip(&reader)?;
    schema::check(job.from, &reader, options)?;
    let order = schema::order(&reader)?;
    let page_bytes = reader.number("PRAGMA page_size")? as usize;
    let pages = reader.number("PRAGMA page_count")?.max(0) as u64;
    let bytes = expected_bytes(pages, page_bytes);
    check_space(&place.to, bytes + bytes / 16)?;
    if job.check {
        assert_sound(job.from, &reader)?;
    }

    drop(reader);

    let birth = birth()?;
    let (keys, header) = (birth.keys()?, birth.header(page_bytes as u32)?);
    let path = unfinished::beside(&place.to);
    let folder = place.folder.try_clone();
    let folder = folder.map_err(|error| Error::io(Subject::File(path.clone()), error))?;
    let file = unfinished::create(&folder, &path)?;
    let file = CopyFile::made(file, folder, path.clone());
    Event::new(Action::Encrypted, "database").of(full_name(&place.to)).record_here()?;
    let token = prepare_birth(birth)?;
    let copy = file.lend(false);
    let target = format!("{AS_COPY}&reserve={TAIL_BYTES}&pellucid_birth={token}");
    let mut reader = connect()?;
    options.equip(&reader)?;
    reader.on_progress(|| {
        let done = file.file().metadata().map_or(0, |found| found.len());
        progress(Stage::Copying, done, bytes);
    });
    reader.run(&format!("VACUUM INTO {}", literal(&uri(&path, &target))))?;
    drop(reader);
    schema::restore_order(&place.to, &uri(&path, AS_COPY), &order, options)?;
    drop(copy);
    let mut counter = [0; 4];
    job.pages.read(&mut counter, 24)?;
    let counter = u32::from_be_bytes(counter).wrapping_add(1);
    finish_copy(&file, &keys, page_bytes, counter, job.was_wal)?;

    let original = Way::of(job.from).and_then(|way| way.look());
    let original =
        original.map_err(|error| Error::io(Subject::File(job.from.to_owned()), error))?;
    job.pages.assert_unchanged()?;
    place.assert_free()?;
    expected.announce(Some(header.file_id))?;
    let named = file.permit_as(&original).and_then(|()| file.become_file(&place.to));
    if let Err(error) = named {
        let _ = expected.announce(None);
        return Err(error.into());
    }
    remember(&header, &place.to);
    expected.put_if_writable(&place.to, &header);
    Ok(header)
}

/// Refuses a database in which SQLite finds something wrong.
fn assert_sound(path: &Path, reader: &Handle<'_>) -> Result<(), DatabaseError> {
    let mut found = Vec::new();
    reader.rows("PRAGMA integrity_check(3)", |row| found.push(row.text(0)))?;
    if found == ["ok"] {
        return Ok(());
    }
    let cause = format!("SQLite's check found: {}", found.join("; "));
    Err(Error::corrupt(Subject::File(path.to_owned()), cause).into())
}
