//! Read-only connections to a database that other processes may use. They roll back what a killed
//! process left.

use std::ffi::c_int;
use std::path::Path;
use std::time::Duration;

use pellucid_host::connection::Handle;
use pellucid_host::patience::Patience;
use pellucid_host::{ffi, DatabaseError, Options};
use pellucid_vfs::laying::is_copy_beside;

use crate::header_change::in_use;

const BETWEEN_OPENINGS: Duration = Duration::from_millis(20);
const ANY_READ: &str = "PRAGMA schema_version";
/// The most interrupted transactions that are rolled back, one after the other, before a look gives
/// up.
const RECOVERIES: u32 = 20;

/// Opens `uri` read-only, in a read transaction, after interrupted transactions were rolled back.
///
/// In the transaction all reads are of one state, and no process that is killed meanwhile leaves a
/// journal that would have to be played back before the next read. The connection is read-only
/// because one that may write checkpoints when it closes. One that may write is opened only to roll
/// back an interrupted transaction, or to finish an interrupted conversion or restore.
///
/// # Errors
/// SQLite's, a busy one too: a caller that tries again asks [`Handle::is_busy`].
pub fn look<'a>(file: &Path, uri: &str, options: &Options) -> Result<Handle<'a>, DatabaseError> {
    try_by(file, options, |flags| Handle::open(file, uri, flags))
}

/// Like [`look`], over connections that `connect` opens with the flags it gets. The processes that do not give way are named.
pub fn look_by<'a>(
    file: &Path,
    options: &Options,
    connect: impl Fn(c_int) -> Result<Handle<'a>, DatabaseError>,
) -> Result<Handle<'a>, DatabaseError> {
    try_by(file, options, connect).map_err(|error| in_use(file, error))
}

fn try_by<'a>(
    file: &Path,
    options: &Options,
    connect: impl Fn(c_int) -> Result<Handle<'a>, DatabaseError>,
) -> Result<Handle<'a>, DatabaseError> {
    let patience = Patience::new(options.timeout, BETWEEN_OPENINGS);
    // SQLite waits for a lock, but not where the opening itself needs one, to finish what a conversion left.
    let open = |flags| loop {
        match connect(flags) {
            Ok(handle) => {
                handle.busy_timeout(options.timeout_ms());
                return Ok(handle);
            }
            Err(error) if Handle::is_busy(&error) && patience.wait() => {}
            Err(error) => return Err(error),
        }
    };
    let look = || {
        let reader = open(ffi::OPEN_READONLY)?;
        reader.run("BEGIN")?;
        reader.number(ANY_READ).map(|_| reader)
    };
    let recover = || open(ffi::OPEN_READWRITE).and_then(|writer| writer.number(ANY_READ));
    let mut looked = look();
    if looked.is_err() && is_copy_beside(file) {
        recover()?;
        looked = look();
    }
    // Another process may be killed between a rollback and the next try.
    for _ in 0..RECOVERIES {
        match &looked {
            Err(error) if wants_a_writer(error) => {}
            _ => break,
        }
        recover()?;
        looked = look();
    }
    looked
}

/// Whether an interrupted transaction has to be rolled back first.
fn wants_a_writer(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Sqlite { code: ffi::READONLY_ROLLBACK, .. })
}
