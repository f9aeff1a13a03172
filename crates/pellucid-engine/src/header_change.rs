//! The next header of a database that is in use. It is made first, which may take a while (Argon2,
//! RSA), and then written under the locks that a header change needs.

use std::path::Path;
use std::time::Duration;

use pellucid::header::Header;
use pellucid::keys::ContainerKeys;
use pellucid::shown::Shown;
use pellucid::{Dek, Error, Result, Subject};
use pellucid_host::code::Code;
use pellucid_host::connection::{uri, Handle};
use pellucid_host::ffi;
use pellucid_host::patience::Patience;
use pellucid_host::{holders, DatabaseError};
use pellucid_vfs::container::Container;
use pellucid_vfs::opened;
use pellucid_vfs::seal_request::{later_sequence, remember};

/// The URI parameters of a header change. It may give a database under a retired key a new one.
const AS_CHANGE: &str = "vfs=pellucid&require=container&pellucid_renew=1";
/// The same, of a database that the marks of a restore keep everybody else out of.
const AS_RECOVERY: &str = "vfs=pellucid&require=container&pellucid_renew=1&pellucid_recover=1";
/// How long to wait for the locks of a header change, which are held for a short moment.
pub const TIMEOUT: Duration = Duration::from_secs(20);
/// The pause between two looks whether a checkpoint is over.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(2);

/// The next header of a database.
#[derive(Debug)]
pub struct Next {
    /// The header. Its sequence number is counted up when it is written.
    pub header: Header,
    /// The DEK it is under; `None` keeps the present one.
    pub dek: Option<Dek>,
}

impl From<Header> for Next {
    fn from(header: Header) -> Self {
        Self { header, dek: None }
    }
}

/// Changes the header of the database at `path`.
///
/// `make` makes the next header, or `None` if nothing is to be changed. It is called again if
/// another process changed the header meanwhile. `commit` is called before the header is written,
/// and may refuse.
///
/// # Errors
/// [`DatabaseError`]; the header was not changed then.
pub fn change(
    path: &Path,
    make: impl FnMut(&Container, &Header, &ContainerKeys) -> Result<Option<Next>>,
    commit: impl FnOnce() -> Result<()>,
) -> std::result::Result<Header, DatabaseError> {
    change_in(path, make, |_, _| Ok(commit()?))
}

/// Like [`change`]; `commit` gets the connection, which has the locks of a writer then, and the next header.
///
/// # Errors
/// As [`change`].
pub fn change_in(
    path: &Path,
    make: impl FnMut(&Container, &Header, &ContainerKeys) -> Result<Option<Next>>,
    commit: impl FnOnce(&Handle<'_>, &mut Header) -> std::result::Result<(), DatabaseError>,
) -> std::result::Result<Header, DatabaseError> {
    change_by(path, AS_CHANGE, make, commit)
}

/// Like [`change_in`], of a database that is being restored or a standby, too.
///
/// # Errors
/// As [`change`].
pub fn recover_in(
    path: &Path,
    make: impl FnMut(&Container, &Header, &ContainerKeys) -> Result<Option<Next>>,
    commit: impl FnOnce(&Handle<'_>, &mut Header) -> std::result::Result<(), DatabaseError>,
) -> std::result::Result<Header, DatabaseError> {
    change_by(path, AS_RECOVERY, make, commit)
}

fn change_by(
    path: &Path,
    parameters: &str,
    mut make: impl FnMut(&Container, &Header, &ContainerKeys) -> Result<Option<Next>>,
    commit: impl FnOnce(&Handle<'_>, &mut Header) -> std::result::Result<(), DatabaseError>,
) -> std::result::Result<Header, DatabaseError> {
    let handle = Handle::open(path, &uri(path, parameters), ffi::OPEN_READWRITE)?;
    handle.busy_timeout(TIMEOUT.as_millis() as std::ffi::c_int);
    // The first statement reads the header and rolls back an interrupted transaction.
    handle.run("SELECT 1 FROM sqlite_schema")?;
    let (lower, container) = opened::sealed(&handle)?.ok_or_else(|| {
        Error::misuse(Subject::File(path.to_owned()), "not an encrypted database")
    })?;
    let failed = |code| cannot_write(path, code);
    let patience = Patience::new(TIMEOUT, CHECKPOINT_PAUSE);
    let (mut made, mut commit): (Option<(u64, Next)>, _) = (None, Some(commit));
    loop {
        let header = container.header().ok_or(failed(Code(ffi::IOERR)))?;
        let keys = container.keys().map_err(failed)?;
        if made.as_ref().is_none_or(|(of, _)| *of != header.sequence) {
            header.flags.check_writable(Subject::File(path.to_owned()))?;
            if parameters == AS_CHANGE {
                header.check_writable()?;
            }
            let Some(next) = make(&container, &header, &keys)? else { return Ok(header) };
            made = Some((header.sequence, next));
        }
        let Some((of, next)) = &mut made else { continue };
        // This is EXCLUSIVE in rollback mode, and the write lock in WAL mode; the checkpoint lock
        // is taken below.
        handle.begin("BEGIN EXCLUSIVE", TIMEOUT).map_err(|error| in_use(path, error))?;
        if container.header().is_some_and(|now| now.sequence == *of) {
            let keys = container.keys().map_err(failed)?;
            let dek = next.dek.as_ref().or(keys.dek()).ok_or(failed(Code(ffi::IOERR)))?;
            // Encodes the header once before, for a typed error: too many protectors.
            next.header.encode(keys.header_key())?;
            next.header.sequence = later_sequence(&next.header)?;
            let mut refused = None;
            let written = container.with_header_locks(lower, || {
                let committed = commit.take().map(|commit| commit(&handle, &mut next.header));
                if let Some(Err(error)) = committed {
                    refused = Some(error);
                    return Err(Code(ffi::IOERR));
                }
                container.write_header(next.header.clone(), dek)
            });
            if let Some(error) = refused {
                return Err(error);
            }
            if written.map_err(failed)? {
                break;
            }
        }
        handle.run("ROLLBACK")?;
        // A checkpoint that must end with an empty log has its lock, and waits for the writers.
        if !patience.wait() {
            return Err(busy(path));
        }
    }
    let header = container.header().ok_or(failed(Code(ffi::IOERR)))?;
    // Remembered by its whole path, because the caller's name for it means another file in another
    // directory.
    remember(&header, container.path());
    container.keep();
    handle.run("COMMIT")?;
    Ok(header)
}

pub(crate) fn cannot_write(path: &Path, code: Code) -> DatabaseError {
    DatabaseError::Sqlite {
        file: path.shown().to_string(),
        code: code.0,
        message: "the header cannot be written".to_owned(),
    }
}

/// Turns SQLite's busy error into one that names the processes that hold locks.
pub fn in_use(path: &Path, error: DatabaseError) -> DatabaseError {
    match Handle::is_busy(&error) {
        true => busy(path),
        false => error,
    }
}

/// Makes the error for a file on which other processes hold locks.
pub fn busy(path: &Path) -> DatabaseError {
    DatabaseError::InUse { file: path.shown().to_string(), holders: holders::find(path) }
}
