//! The next header of a database that is in use, by whoever administers it: made first, which may take a
//! while (Argon2, RSA), and then written under the locks that allow it.

use std::path::Path;
use std::time::Duration;

use pellucid::header::Header;
use pellucid::keys::ContainerKeys;
use pellucid::{Dek, Error, Result, Subject};
use pellucid_host::code::Code;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::patience::Patience;
use pellucid_host::{holders, DatabaseError};
use pellucid_vfs::link::Link;
use pellucid_vfs::opened;
use pellucid_vfs::seal_request::{later_sequence, remember};

/// How long to wait for the short moment that a change takes.
pub const TIMEOUT: Duration = Duration::from_secs(20);
/// How often to look whether a checkpoint is over.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(2);

/// What a header is to become.
#[derive(Debug)]
pub struct Next {
    /// The header; its sequence is counted up when it is written.
    pub header: Header,
    /// The DEK it is under; none if that stays.
    pub dek: Option<Dek>,
}

impl From<Header> for Next {
    fn from(header: Header) -> Self {
        Self { header, dek: None }
    }
}

/// Changes the header of the database at `path`. `make` is called again if somebody else changed it meanwhile;
/// none says that nothing is to be changed. `commit` is called before it is written, and may refuse.
///
/// # Errors
/// [`DatabaseError`]; nothing was changed then.
pub fn change(
    path: &Path,
    mut make: impl FnMut(&Link, &Header, &ContainerKeys) -> Result<Option<Next>>,
    commit: impl FnOnce() -> Result<()>,
) -> std::result::Result<Header, DatabaseError> {
    let handle =
        Handle::open(path, &uri(path, "vfs=pellucid&require=sealed"), ffi::OPEN_READWRITE)?;
    handle.busy_timeout(TIMEOUT.as_millis() as std::ffi::c_int);
    // The first statement reads the header, and takes back what was interrupted.
    handle.run("SELECT 1 FROM sqlite_schema")?;
    let (lower, link) = opened::sealed(&handle)?.ok_or_else(|| {
        Error::misuse(Subject::File(path.to_owned()), "not an encrypted database")
    })?;
    let failed = |code| cannot_write(path, code);
    let mut next = loop {
        let header = link.header().ok_or(failed(Code(ffi::IOERR)))?;
        let keys = link.keys().map_err(failed)?;
        header.flags.check_writable(Subject::File(path.to_owned()))?;
        let Some(next) = make(&link, &header, &keys)? else { return Ok(header) };
        // In rollback mode EXCLUSIVE, in WAL mode the writer's lock; the checkpoint's is taken below.
        handle.begin("BEGIN EXCLUSIVE", TIMEOUT).map_err(|error| in_use(path, error))?;
        if link.header().is_some_and(|now| now.sequence == header.sequence) {
            break next;
        }
        handle.run("ROLLBACK")?;
    };
    let keys = link.keys().map_err(failed)?;
    let dek = next.dek.as_ref().or(keys.dek()).ok_or(failed(Code(ffi::IOERR)))?;
    // An earlier look, for a typed error: too many protectors.
    next.header.encode(keys.header_key())?;
    next.header.sequence = later_sequence(&next.header)?;
    commit()?;
    let patience = Patience::new(TIMEOUT, CHECKPOINT_PAUSE);
    loop {
        let write = || link.write_header(next.header.clone(), dek);
        if link.with_header_locks(lower, write).map_err(failed)? {
            break;
        }
        if !patience.wait() {
            return Err(busy(path));
        }
    }
    let header = link.header().ok_or(failed(Code(ffi::IOERR)))?;
    // By its whole path: the caller's own name for it means something else in another directory.
    remember(&header, link.path());
    handle.run("COMMIT")?;
    Ok(header)
}

fn cannot_write(path: &Path, code: Code) -> DatabaseError {
    DatabaseError::Sqlite {
        file: path.display().to_string(),
        code: code.0,
        message: "the header cannot be written".to_owned(),
    }
}

/// An error of SQLite's, or who keeps the database locked.
pub fn in_use(path: &Path, error: DatabaseError) -> DatabaseError {
    match Handle::is_busy(&error) {
        true => busy(path),
        false => error,
    }
}

/// Others hold locks on it.
pub fn busy(path: &Path) -> DatabaseError {
    DatabaseError::InUse { file: path.display().to_string(), holders: holders::find(path) }
}
