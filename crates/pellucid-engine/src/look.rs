//! A look at a database that others may be using: read-only, and past what killed processes have left.

use std::ffi::c_int;
use std::path::Path;

use pellucid_host::connection::Handle;
use pellucid_host::{ffi, DatabaseError, Options};
use pellucid_vfs::laying::is_copy_beside;

const ANY_READ: &str = "PRAGMA schema_version";
/// So many transactions of killed processes are taken back, one after the other, before a database can be looked at.
const RECOVERIES: u32 = 20;

/// Opens `uri` to look at it, in a read transaction: what is read of it is of one state, and no process that is killed
/// meanwhile leaves a journal that would have to be played back before the next read. Read-only, because a connection
/// that may write checkpoints when it closes; one that may is opened only to take back a transaction that was
/// interrupted, or to finish a conversion or a restore that was.
pub fn look<'a>(file: &Path, uri: &str, options: &Options) -> Result<Handle<'a>, DatabaseError> {
    look_by(file, options, |flags| Handle::open(file, uri, flags))
}

/// The same by connections that `connect` opens with the flags it is given.
pub fn look_by<'a>(
    file: &Path,
    options: &Options,
    connect: impl Fn(c_int) -> Result<Handle<'a>, DatabaseError>,
) -> Result<Handle<'a>, DatabaseError> {
    let open = |flags| {
        let handle = connect(flags)?;
        handle.busy_timeout(options.timeout_ms());
        Ok::<_, DatabaseError>(handle)
    };
    let look = || {
        let reader = open(ffi::OPEN_READONLY)?;
        reader.run("BEGIN")?;
        reader.number(ANY_READ).map(|_| reader)
    };
    let mut looked = look();
    if looked.is_err() && is_copy_beside(file) {
        open(ffi::OPEN_READWRITE)?.number(ANY_READ)?;
        looked = look();
    }
    // Between a recovery and the next look another process may be killed.
    for _ in 0..RECOVERIES {
        match &looked {
            Err(error) if wants_a_writer(error) => {}
            _ => break,
        }
        open(ffi::OPEN_READWRITE)?.number(ANY_READ)?;
        looked = look();
    }
    looked
}

/// Whether an interrupted transaction has to be taken back first.
fn wants_a_writer(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Sqlite { code: ffi::READONLY_ROLLBACK, .. })
}
