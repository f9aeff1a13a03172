//! What the keyring remembers of a path: pins are made, raised, announced and taken away.
//!
//! A keyring that may only be read prevents no opening. A command that would make its own result refused by a pin it cannot
//! change ends before it begins.

use std::path::Path;

use pellucid::hash::hex;
use pellucid::header::{EncryptionState, Header};
use pellucid::{Error, Result, Subject};
use pellucid_host::code::note;
use pellucid_host::ffi;
use pellucid_keyring::{Action, Event, Keyring, Pin};

use super::{is_same, Expectation};

impl Expectation {
    /// The keyring that remembers, if there is one.
    pub(super) fn home(&self) -> Option<&Path> {
        self.homes.first().map(std::path::PathBuf::as_path).filter(|home| Keyring::is_at(home))
    }

    /// Remembers that the database of `header` was opened here. `pins` are those that it was checked against. Another
    /// database than the pinned one is told, and recorded once.
    ///
    /// A keyring that cannot be written prevents no opening.
    pub fn keep(&self, header: &Header, pins: &[Pin]) {
        let Some(home) = self.home() else { return };
        let mut other = None;
        for name in &self.names.all {
            let known = pins.iter().find(|pin| pin.path == *name);
            if next(known, name, header).as_ref() != known {
                let own = |own: Option<&Pin>| next(own.or(known), name, header);
                let _ = Keyring::open(home).and_then(|keyring| keyring.change_pin(name, own));
            }
            if let Some(replaced) = known.and_then(|pin| replaced_key(pin, header)) {
                // The process that replaced it may have been killed before it could.
                let _ = Keyring::open(home).and_then(|keyring| keyring.retire(&replaced));
            }
            let is_other = |pin: &&Pin| !is_same(pin, header) && pin.next != Some(header.file_id);
            other = other.or(known.filter(is_other));
        }
        let Some(pin) = other else { return };
        let told = format!(
            "another encrypted database, file id {}, has taken the place of file id {}; {}",
            hex(&header.file_id),
            hex(&pin.file_id),
            self.accepts()
        );
        note(ffi::NOTICE, &pin.path, &told);
        if pin.other != Some(header.file_id) {
            self.record_replaced(&pin.path);
        }
    }

    fn record_replaced(&self, path: &Path) {
        let event = Event::new(Action::Replaced, "database").of(path.display().to_string());
        let _ = event.record_here();
    }

    /// Pins the database of `header`, in the place of whatever was expected: it was made, restored or accepted here.
    ///
    /// # Errors
    /// [`Error::Io`] if the keyring cannot be written; what is wrong with it.
    pub fn put(&self, header: &Header, retired: Option<[u8; 32]>) -> Result<()> {
        self.change(|name, pin| {
            let former = pin.map(|pin| pin.file_id).filter(|id| *id != header.file_id);
            Some(Pin { retired, former, ..pinned(name, header) })
        })
    }

    /// Like [`Expectation::put`], where a keyring that cannot be written is no error: it is noted in the log, about `path`.
    /// A new database in the place of another one is told and recorded.
    pub fn put_if_writable(&self, path: &Path, header: &Header) {
        let before = self.pins().ok().and_then(|pins| pins.into_iter().next());
        if let Err(error) = self.put(header, None) {
            if !is_forbidden(&error) {
                let what = format!("the keyring does not expect the database here: {error}");
                note(ffi::OK, path, &what);
            }
        }
        if let Some(pin) = before {
            if pin.file_id != header.file_id && pin.next != Some(header.file_id) {
                let told = format!(
                    "a new encrypted database, file id {}, takes the place of file id {}",
                    hex(&header.file_id),
                    hex(&pin.file_id)
                );
                note(ffi::NOTICE, path, &told);
                self.record_replaced(path);
            }
        }
    }

    /// Lets the plain database with this SHA-256 take the place of the encrypted one, or no longer. A conversion says so before
    /// its commit point: nothing can be written once the file is plain.
    ///
    /// # Errors
    /// As [`Expectation::put`].
    pub fn let_go(&self, plain: Option<[u8; 32]>) -> Result<()> {
        self.change(|_, pin| pin.map(|pin| Pin { plain, ..pin.clone() }))?;
        let keeps = |pin: &Pin| pin.plain != plain;
        self.pins()?.iter().find(|pin| keeps(pin)).map_or(Ok(()), |pin| Err(elsewhere(pin)))
    }

    /// Lets encryption of the database be switched off, or no longer. The command says so before it writes the header.
    ///
    /// # Errors
    /// As [`Expectation::put`].
    pub fn let_off(&self, may_off: bool) -> Result<()> {
        self.change(|_, pin| pin.map(|pin| Pin { may_off, ..pin.clone() }))?;
        let keeps = |pin: &Pin| pin.sealed && pin.may_off != may_off;
        self.pins()?.iter().find(|pin| keeps(pin)).map_or(Ok(()), |pin| Err(elsewhere(pin)))
    }

    /// Lets the database with the file id `next` take the place of the present one, which a restore or a rekey says before it
    /// begins. Either is expected until it is done.
    ///
    /// # Errors
    /// As [`Expectation::put`], but for a keyring that may only be read.
    pub fn announce(&self, next: Option<[u8; 16]>) -> Result<()> {
        match self.change(|_, pin| pin.map(|pin| Pin { next, ..pin.clone() })) {
            Err(error) if is_forbidden(&error) => Ok(()),
            announced => announced,
        }
    }

    /// Takes back what a conversion or restore has announced that is not under way any more. `pins` are the present ones.
    pub fn end_announced(&self, pins: &[Pin]) {
        if pins.iter().any(|pin| pin.plain.is_some() || pin.next.is_some()) {
            let none = |_: &Path, pin: Option<&Pin>| {
                pin.map(|pin| Pin { plain: None, next: None, ..pin.clone() })
            };
            let _ = self.change(none);
        }
    }

    /// Expects nothing here any more.
    ///
    /// # Errors
    /// [`Error::Io`] if the keyring cannot be written; [`Error::Misuse`] if another instance expects the database, too.
    pub fn release(&self) -> Result<()> {
        let Some(home) = self.home() else { return Ok(()) };
        if self.pins().is_ok_and(|pins| pins.is_empty()) {
            return Ok(());
        }
        let keyring = Keyring::open(home)?;
        self.names.all.iter().try_for_each(|name| keyring.unpin(name))?;
        self.pins()?.first().map_or(Ok(()), |pin| Err(elsewhere(pin)))
    }

    pub(super) fn release_if_writable(&self) {
        let _ = self.release();
    }

    pub(super) fn change(&self, change: impl Fn(&Path, Option<&Pin>) -> Option<Pin>) -> Result<()> {
        let Some(home) = self.home() else { return Ok(()) };
        let pins = self.pins()?;
        for name in &self.names.all {
            let known = pins.iter().find(|pin| pin.path == *name);
            if change(name, known).as_ref() != known {
                let own = |own: Option<&Pin>| change(name, own);
                Keyring::open(home)?.change_pin(name, own)?;
            }
        }
        Ok(())
    }
}

/// The pin after the database of `header` was opened at `name`. Its sequence number grows only.
fn next(known: Option<&Pin>, name: &Path, header: &Header) -> Option<Pin> {
    let Some(known) = known else { return Some(pinned(name, header)) };
    if known.next == Some(header.file_id) {
        let former = Some(known.file_id).filter(|id| *id != header.file_id);
        return Some(Pin { former, ..pinned(name, header) });
    }
    if !is_same(known, header) {
        return Some(Pin { other: Some(header.file_id), ..known.clone() });
    }
    if header.sequence < known.sequence {
        return Some(known.clone());
    }
    let is_unchanged = header.sequence == known.sequence;
    Some(Pin {
        // What was announced is for the header that was there then.
        may_off: known.may_off && is_unchanged,
        next: known.next.filter(|_| is_unchanged),
        plain: known.plain.filter(|_| is_unchanged),
        former: known.former,
        retired: known.retired,
        has_pages: known.has_pages,
        ..pinned(name, header)
    })
}

/// The key of the pinned header, if a rekey of this database has replaced it since and no page is under it any more.
fn replaced_key(known: &Pin, header: &Header) -> Option<[u8; 32]> {
    let is_gone = header.deks.iter().all(|row| row.commitment != known.dek);
    let is_settled = header.state == EncryptionState::Encrypted && known.sealed;
    (is_same(known, header) && header.sequence > known.sequence && is_gone && is_settled)
        .then_some(known.dek)
}

fn pinned(name: &Path, header: &Header) -> Pin {
    Pin {
        path: name.to_owned(),
        file_id: header.file_id,
        sequence: header.sequence,
        dek: header.current_dek().map_or([0; 32], |row| row.commitment),
        sealed: !header.is_switched_off(),
        ..Pin::default()
    }
}

/// Whether the keyring may only be read: the account that opens databases by it cannot change what it expects.
fn is_forbidden(error: &Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error, Error::Io { source, .. } if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem))
}

fn elsewhere(pin: &Pin) -> Error {
    Error::misuse(
        Subject::File(pin.path.clone()),
        "another instance than the caller's expects an encrypted database here, too: whoever may write that one has to do this",
    )
}
