//! The chain of log backups of a database in use: its recovery model, where the chain begins, and the commits that nobody has
//! backed up yet.

mod changed;
mod kept;
mod tail;
mod waiting;

use std::path::Path;
use std::time::Duration;

use pellucid::header::{Header, RecoveryModel, Second};
use pellucid::keys::ContainerKeys;
use pellucid::log_archive::ArchiveState;
use pellucid::lsn::Lsn;
use pellucid::secret::fill_random;
use pellucid::shown::Shown;
use pellucid::wal::FRAME_HEADER_BYTES;
use pellucid::{Error, Subject};
use pellucid_files::paths::{full_name, resolved};
use pellucid_host::code::{note, Code};
use pellucid_host::connection::{uri, Handle};
use pellucid_host::{ffi, DatabaseError};
use pellucid_keyring::{Action, Event, Witness};
use pellucid_vfs::container::Container;
use pellucid_vfs::log_archive::{self, path_of, Archive, Locked};
use pellucid_vfs::{opened, witness};

use crate::header_change;

pub use changed::{changed, changed_since};
pub use kept::{Commit, KeptLog, Marked, Version};
pub use tail::Tail;
pub use waiting::{waiting, Waiting};

/// How long the first state of an archive waits for whoever changes the one that is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// The recovery model of a database by its header. SIMPLE where there is none.
pub fn model_of(header: &Header) -> RecoveryModel {
    header.second.as_ref().map_or(RecoveryModel::Simple, |second| second.model)
}

/// Whether a chain of log backups has begun, and its fork.
pub fn chain_of(header: &Header) -> Option<[u8; 16]> {
    header.second.as_ref().filter(|second| second.keeps_log()).map(|second| second.fork)
}

/// Whether the recovery model asks for a chain of log backups.
pub fn wants_chain(header: &Header) -> bool {
    model_of(header) != RecoveryModel::Simple
}

/// The fork of the chain of log backups of the database at `path`; none where none has begun.
///
/// # Errors
/// [`DatabaseError`].
pub fn fork_at(path: &Path) -> Result<Option<[u8; 16]>, DatabaseError> {
    let handle = look(path)?;
    let found = opened::sealed(&handle)?.and_then(|(_, container)| container.chain());
    Ok(found)
}

/// The last commit of the chain, once it is on disk. None where there is no chain.
///
/// # Errors
/// [`DatabaseError`].
pub fn moment(path: &Path) -> Result<Option<Lsn>, DatabaseError> {
    hand_out(path, &look(path)?)
}

/// A connection that has read, so that the log is recovered and open.
fn look(path: &Path) -> Result<Handle<'static>, DatabaseError> {
    let uri = uri(path, "vfs=pellucid&require=container");
    let handle = Handle::open(path, &uri, ffi::OPEN_READWRITE)?;
    handle.busy_timeout(PATIENCE.as_millis() as std::ffi::c_int);
    handle
        .run("BEGIN")
        .and_then(|()| handle.number("SELECT count(*) FROM sqlite_schema").map(drop))?;
    Ok(handle)
}

/// A connection that has read and waits. While it is open no other one of this process is the last that closes: that one takes the
/// database for itself, and a program that opens it at that moment is told that it is locked.
///
/// # Errors
/// [`DatabaseError`].
pub fn stay(path: &Path) -> Result<Handle<'static>, DatabaseError> {
    let handle = look(path)?;
    handle.run("COMMIT")?;
    Ok(handle)
}

/// Gives the database another recovery model. SIMPLE ends its chain. Returns whether that was a change.
///
/// # Errors
/// [`Error::Unsupported`] for a database of version 1; [`DatabaseError`] else.
pub fn set_model(path: &Path, model: RecoveryModel) -> Result<bool, DatabaseError> {
    let (mut is_change, mut had_chain) = (false, false);
    let header = header_change::change_in(
        path,
        |_, header, _| {
            let second = header.second.as_ref().ok_or_else(|| of_version_1(path))?;
            is_change = second.model != model;
            had_chain = second.has_chain;
            let mut second = second.clone();
            second.model = model;
            if model == RecoveryModel::Simple {
                (second.has_chain, second.fork) = (false, [0; 16]);
                (second.chain_begins, second.handed_out) = (0, 0);
            }
            Ok(is_change.then(|| Header { second: Some(second), ..header.clone() }.into()))
        },
        |_, _| {
            Ok(Event::new(Action::RecoveryModel, "database").of(full_name(path)).record_here()?)
        },
    )?;
    if had_chain && chain_of(&header).is_none() {
        log_archive::remove(&resolved(path)?)?;
        // One of a fork that is no more says nothing.
        let _ = witness::forget(path);
    }
    Ok(is_change)
}

/// Begins a chain behind the commits that there are, if the recovery model asks for one and none has begun. Returns the fork of the
/// chain that there is then.
///
/// # Errors
/// [`DatabaseError`]. There is no chain then, as before.
pub fn begin(path: &Path) -> Result<Option<[u8; 16]>, DatabaseError> {
    let handle =
        Handle::open(path, &uri(path, "vfs=pellucid&require=container"), ffi::OPEN_READWRITE)?;
    let is_wal = handle.text("PRAGMA journal_mode")? == "wal";
    drop(handle);
    let mut fork = [0; 16];
    fill_random(&mut fork)?;
    let header = header_change::change_in(
        path,
        |_, header, _| {
            let begins = |second: &Second| {
                is_wal && second.model != RecoveryModel::Simple && !second.has_chain
            };
            let mut next = header.clone();
            let Some(second) = next.second.as_mut().filter(|second| begins(second)) else {
                return Ok(None);
            };
            (second.has_chain, second.fork) = (true, fork);
            Ok(Some(next.into()))
        },
        |handle, next| {
            let log = opened::wal(handle)?.ok_or_else(|| {
                Error::misuse(Subject::File(path.to_owned()), "it has left the journal mode WAL")
            })?;
            let (_, container) = opened::sealed(handle)?.ok_or_else(|| {
                Error::misuse(Subject::File(path.to_owned()), "not an encrypted database")
            })?;
            let keys = container.keys().map_err(|code| header_change::cannot_write(path, code))?;
            let state = log.begin_chain(fork)?;
            if let Some(second) = &mut next.second {
                second.chain_begins = state.backed_up.word();
            }
            Archive::make(container.path(), &state, &keys, PATIENCE)?;
            Event::new(Action::LogChainBegun, "database").of(full_name(path)).record_here()?;
            Ok(())
        },
    )?;
    Ok(chain_of(&header))
}

/// Says that everything that counts now is handed out by a backup of this snapshot, whose connection `handle` is. Returns its last
/// commit; none where there is no chain.
///
/// # Errors
/// [`DatabaseError`].
pub fn hand_out(path: &Path, handle: &Handle<'_>) -> Result<Option<Lsn>, DatabaseError> {
    let Some((_, container)) = opened::sealed(handle)? else { return Ok(None) };
    let (Some(_), Some(log)) = (container.chain(), opened::wal(handle)?) else { return Ok(None) };
    let archive = Archive::open(container.path()).map_err(|error| no_archive(path, error))?;
    let locked = archive.lock(PATIENCE)?;
    let mut standing = log.hand_out(&locked)?;
    if let Some(witness) = witness::ahead(container.path(), &standing.state)? {
        // A full backup goes on: it is what mends that.
        let keys = container.keys().map_err(|code| header_change::cannot_write(path, code))?;
        put_back(&container, &locked, (&witness, &keys))?;
        standing = log.hand_out(&locked)?;
    }
    Ok(Some(standing.state.live.lsn(standing.counted)))
}

/// Breaks the chain of an archive that knows less than its witness, and says so.
fn put_back(
    container: &Container,
    locked: &Locked<'_>,
    (witness, keys): (&Witness, &ContainerKeys),
) -> Result<ArchiveState, DatabaseError> {
    let path = container.path();
    Event::new(Action::LogChainPutBack, "database").of(full_name(path)).record_here()?;
    let state = witness::break_behind(locked, witness, keys)?;
    container.note(ffi::NOTICE, &witness::put_back(path, witness).to_string());
    Ok(state)
}

/// What the archive of the database at `path` says of its chain, a broken one included, and the header beside it. None where no chain
/// has begun. Nothing is kept, synced or written.
///
/// # Errors
/// [`DatabaseError`].
pub fn state_at(path: &Path) -> Result<Option<(Header, ArchiveState)>, DatabaseError> {
    let handle = look(path)?;
    let Some((_, container)) = opened::sealed(&handle)? else { return Ok(None) };
    let (Some(_), Some(header)) = (container.chain(), container.header()) else { return Ok(None) };
    let keys = container.keys().map_err(|code| header_change::cannot_write(path, code))?;
    let archive = Archive::open(container.path()).map_err(|error| no_archive(path, error))?;
    Ok(Some((header, archive.state(&keys)?)))
}

/// Breaks the chain of a database whose archive knows less than a witness that was kept elsewhere, and lets the keyring remember that
/// witness, so that everybody who asks is told.
///
/// # Errors
/// [`DatabaseError`]. The chain is as it was then.
pub fn break_by(path: &Path, witness: &Witness) -> Result<(), DatabaseError> {
    let handle = look(path)?;
    let Some((_, container)) = opened::sealed(&handle)? else { return Ok(()) };
    let keys = container.keys().map_err(|code| header_change::cannot_write(path, code))?;
    let archive = Archive::open(container.path()).map_err(|error| no_archive(path, error))?;
    let locked = archive.lock(PATIENCE)?;
    let state = archive.state(&keys)?;
    if witness.is_ahead_of(&state) {
        // Without a keyring, or with one that may only be read, the archive says it alone.
        let _ = witness::remember_other(witness);
        put_back(&container, &locked, (witness, &keys))?;
    }
    Ok(())
}

/// Lets the keyring remember what the archive says. A group may only read the machine's: then nobody remembers.
fn remember(path: &Path, header: &Header, state: &ArchiveState) {
    if let Err(error) = witness::remember(path, header, state) {
        let what = format!("the keyring does not remember this backup, so that nobody tells what is put back: {error}");
        note(ffi::NOTICE, path, &what);
    }
}

/// Notes that a full backup begins the chain: logs behind `first` are applied to it, and its snapshot is `last`. One that was begun
/// behind a break of the chain lets it go on.
///
/// # Errors
/// [`DatabaseError`].
pub fn has_base(
    path: &Path,
    (fork, first, last): ([u8; 16], Lsn, Lsn),
    set: [u8; 32],
) -> Result<(), DatabaseError> {
    let handle =
        Handle::open(path, &uri(path, "vfs=pellucid&require=container"), ffi::OPEN_READWRITE)?;
    handle.run("SELECT 1 FROM sqlite_schema")?;
    let Some((_, container)) = opened::sealed(&handle)? else { return Ok(()) };
    // It may have ended meanwhile, and another one have begun.
    if container.chain() != Some(fork) {
        return Ok(());
    }
    let keys = container.keys().map_err(|code| header_change::cannot_write(path, code))?;
    let archive = Archive::open(container.path())?;
    let locked = archive.lock(PATIENCE)?;
    let mut state = archive.state(&keys)?;
    if !state.broken_at.is_none() && first.epoch >= state.broken_epoch {
        state.backed_up = state.backed_up.max(first);
        (state.broken_at, state.broken_epoch) = (Lsn::NONE, 0);
    }
    // A differential compares every page where this fails.
    let _ = changed::begin((&archive, &locked), &keys, &state, (first, set));
    (state.has_base, state.base, state.last_set) = (true, last, set);
    let state = locked.write(&state, &keys)?;
    drop(locked);
    if let Some(header) = container.header() {
        remember(container.path(), &header, &state);
    }
    mend_header_copy(&handle, &container, &archive)
}

/// Gives the archive the present header where a change of it could not be written there. No header change is under way
/// meanwhile.
fn mend_header_copy(
    handle: &Handle<'_>,
    container: &Container,
    archive: &Archive,
) -> Result<(), DatabaseError> {
    let present = || {
        let failed = |code| header_change::cannot_write(container.path(), code);
        let keys = container.keys().map_err(failed)?;
        let header = container.header().ok_or(failed(Code(ffi::IOERR)))?;
        Ok::<_, DatabaseError>(header.encode(keys.header_key())?)
    };
    if matches!(archive.header_copy(), Ok(Some(copy)) if copy == present()?) {
        return Ok(());
    }
    // Whoever has the write lock may be changing the header, and writes the copy then. The next backup looks again.
    match handle.begin("BEGIN IMMEDIATE", Duration::ZERO) {
        Err(error) if Handle::is_busy(&error) => return Ok(()),
        begun => begun?,
    }
    let kept = present().and_then(|copy| Ok(log_archive::keep_header(container.path(), &copy)?));
    handle.run("ROLLBACK")?;
    kept
}

/// Seals what the archive has under an older key anew, so that nothing of it needs that key.
///
/// # Errors
/// [`DatabaseError`]. The older key has to stay then.
pub fn renew(path: &Path, container: &Container) -> Result<(), DatabaseError> {
    if container.chain().is_none() {
        return Ok(());
    }
    let keys = container.keys().map_err(|code| header_change::cannot_write(path, code))?;
    let page_bytes = container.page_size().unwrap_or(0);
    let archive = Archive::open(container.path()).map_err(|error| no_archive(path, error))?;
    if !archive.lock_backups(PATIENCE)? {
        let what = "a log backup of it is being made";
        return Err(Error::limit(Subject::File(path.to_owned()), what).into());
    }
    for segment in archive.segments()? {
        archive.lock(PATIENCE)?.renew(segment, &keys, page_bytes + FRAME_HEADER_BYTES)?;
    }
    let locked = archive.lock(PATIENCE)?;
    if let Ok(Some(changed)) = archive.changed_pages(&keys) {
        locked.write_changed_pages(&changed, &keys)?;
    }
    locked.write(&archive.state(&keys)?, &keys)?;
    Ok(())
}

/// The error of a database whose header has no room for a recovery model.
pub fn of_version_1(path: &Path) -> Error {
    Error::unsupported(
        Subject::File(path.to_owned()),
        "format version 1 has no log backups; `pellucid upgrade` gives the database version 2",
    )
}

fn no_archive(path: &Path, error: Error) -> DatabaseError {
    let what = format!(
        "its chain of log backups is broken: its archive cannot be read ({error}); `{}` has it",
        path_of(path).shown()
    );
    Error::corrupt(Subject::LogArchive, format!("`{}`: {what}", path.shown())).into()
}
