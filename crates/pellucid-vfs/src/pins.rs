//! What is expected at the path of a database: by the keyring's pins, and by the file ids that the caller names.
//!
//! A path where the keyring has seen an encrypted database does not become, unasked, less than that: no other file of whatever
//! kind, no earlier header, no key that a rekey retired. Each opening asks the keyring again; no cache stands before it. The
//! rule with its everyday cases: docs/guide/pinned-paths.md.

use std::cell::RefCell;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::header::Header;
use pellucid::{Error, Result, Subject};
use pellucid_host::code::note;
use pellucid_host::ffi;
use pellucid_keyring::policy::{Limit, Policy};
use pellucid_keyring::{Action, Event, Keyring, Pin};

use crate::seal_request::{recall_known, Request};

const SWITCHED_OFF: &str = "its encryption is switched off, where a sealed database is required; `pellucid encrypt` switches it on";
const RETIRED: &str =
    "its key was replaced by a rekey and seals no more here: `pellucid accept --rekey` gives it a new one";

/// What lies at a path that is not a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lesser {
    /// There is no file.
    Missing,
    /// A file without a byte, or one whose making was interrupted.
    Empty,
    /// A plain database, or a file that SQLite will refuse.
    Plain,
}

impl Lesser {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Lesser::Missing => "no file",
            Lesser::Empty => "an empty file",
            Lesser::Plain => "a file that is not encrypted",
        }
    }
}

/// The paths that lead to a database, and what is expected there.
#[derive(Debug, Default)]
pub struct Expectation {
    /// The path with its directory's links followed; then the paths that the caller took, where they differ.
    names: Vec<PathBuf>,
    /// The file ids that the caller allows; any if there are none.
    ids: Vec<[u8; 16]>,
    /// The header's pages have to be sealed.
    require: bool,
    /// The instances whose keyrings are asked; none for a conversion's copy, which no pin is about.
    homes: Vec<PathBuf>,
    /// Commits behind a damaged frame of the log are an error.
    strict_log: bool,
    /// The connection is a rekey's, which may begin under a retired key.
    may_renew: bool,
}

thread_local! {
    /// The name that was resolved last, and what it was resolved to: SQLite opens that next.
    static RESOLVED: RefCell<Option<(PathBuf, PathBuf)>> = const { RefCell::new(None) };
}

/// Notes that `name` leads to the path `resolved`, by symbolic links perhaps.
pub(crate) fn note_resolved(name: &Path, resolved: &Path) {
    RESOLVED.set(Some((name.to_owned(), resolved.to_owned())));
}

impl Expectation {
    /// What is expected of the file `path` that a connection opens.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a file id that is none.
    pub(crate) fn of_connection(path: &Path, request: &Request) -> Result<Self> {
        let is_copy = request.copy || request.plain;
        let mut ids = Vec::new();
        let variable = std::env::var_os("PELLUCID_PIN").unwrap_or_default();
        let variable = variable.to_str().ok_or_else(|| not_an_id("PELLUCID_PIN"))?;
        for (text, option) in [
            (request.file_id.as_deref().unwrap_or_default(), "file_id"),
            (variable, "PELLUCID_PIN"),
        ] {
            for id in text.split(',').filter(|id| !id.is_empty()) {
                ids.push(parse_id(id).ok_or_else(|| not_an_id(option))?);
            }
        }
        let mut names = vec![by_real_directory(path)];
        let named = RESOLVED.take().filter(|(_, resolved)| resolved == path).map(|(name, _)| name);
        let named = named.as_deref().unwrap_or(path);
        names.extend(std::path::absolute(named).ok().filter(|name| !is_of_a_process(name)));
        names.extend(std::path::absolute(path).ok());
        let mut seen = Vec::new();
        names.retain(|name| {
            let new = !seen.contains(name);
            seen.push(name.clone());
            new
        });
        Ok(Self {
            names,
            ids: if is_copy { Vec::new() } else { ids },
            require: request.require_sealed && !is_copy,
            homes: if is_copy { Vec::new() } else { Keyring::all_homes() },
            strict_log: request.strict_log,
            may_renew: request.renew,
        })
    }

    /// What the keyring expects at `path`, by whichever of its names, for a program that changes it.
    pub fn at(path: &Path) -> Self {
        let mut names = vec![by_real_directory(path)];
        for name in [std::path::absolute(path), path.canonicalize()].into_iter().flatten() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Self { names, homes: Keyring::all_homes(), ..Self::default() }
    }

    /// Like [`Expectation::at`], with every other pinned path that leads to the same file now, by a link or a mount: a
    /// conversion changes what is expected there, too.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if the keyring's pins cannot be read.
    pub fn at_all_names(path: &Path) -> Result<Self> {
        let mut found = Self::at(path);
        let pins = found.pins()?;
        let (Some(home), Ok(own)) = (found.home(), std::fs::metadata(path)) else {
            return Ok(found);
        };
        if pins.is_empty() {
            return Ok(found);
        }
        let all = Keyring::open(home).and_then(|keyring| keyring.each_pin());
        let leads_there = |pin: &Pin| {
            let is_known = pins.iter().any(|known| known.file_id == pin.file_id);
            is_known
                && std::fs::metadata(&pin.path)
                    .is_ok_and(|found| identity(&found) == identity(&own))
        };
        for (_, pin) in all.map_err(|error| unreadable(&error))? {
            if let Ok(pin) = pin {
                if leads_there(&pin) && !found.names.contains(&pin.path) {
                    found.names.push(pin.path);
                }
            }
        }
        Ok(found)
    }

    /// Whether commits behind a damaged frame of the log are an error.
    pub(crate) fn is_strict_about_logs(&self) -> bool {
        self.strict_log
    }

    /// The keyring's pins of these paths.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if there are some and they cannot be read.
    pub fn pins(&self) -> Result<Vec<Pin>> {
        Keyring::pins_at(&self.homes, &self.names).map_err(|error| unreadable(&error))
    }

    /// The keyring that remembers, if there is one.
    fn home(&self) -> Option<&Path> {
        self.homes.first().map(PathBuf::as_path).filter(|home| Keyring::is_at(home))
    }

    /// Refuses a file that is not a container where one is expected.
    ///
    /// # Errors
    /// [`Error::Replaced`], which names what is expected; those of [`Expectation::pins`].
    pub fn refuse_lesser(&self, found: Lesser) -> Result<()> {
        if let [id, ..] = &self.ids[..] {
            return Err(Error::replaced(
                Subject::Container,
                format!(
                    "the database with the file id {} is asked for, and there is {}",
                    hex(id),
                    found.text()
                ),
            ));
        }
        match self.pins()?.into_iter().find(|pin| !pin.may_go) {
            Some(pin) => Err(expected(&pin, found.text())),
            None => Ok(()),
        }
    }

    /// Compares an authenticated header with what is expected, and returns the pins.
    ///
    /// Another current database of the instance cannot be told from one that was renamed over the path. It is an error where
    /// the instance is strict, and is told otherwise.
    ///
    /// # Errors
    /// [`Error::Replaced`], which names what is expected and what is there; [`Error::Misuse`] where pages have to be
    /// sealed and encryption is switched off; those of [`Expectation::pins`].
    pub fn check(&self, header: &Header) -> Result<Vec<Pin>> {
        if !self.ids.is_empty() && !self.ids.contains(&header.file_id) {
            return Err(Error::replaced(
                Subject::Container,
                format!(
                    "the database with the file id {} is asked for, and this is {}",
                    self.ids.iter().map(|id| hex(id)).collect::<Vec<_>>().join(" or "),
                    hex(&header.file_id)
                ),
            ));
        }
        let pins = self.pins()?;
        for pin in &pins {
            self.check_pin(header, pin)?;
        }
        self.check_sealed(header, &pins)?;
        self.check_retired(header, &pins)?;
        Ok(pins)
    }

    fn check_pin(&self, header: &Header, pin: &Pin) -> Result<()> {
        let is_off = header.is_switched_off();
        if pin.next == Some(header.file_id) && !is_off {
            return Ok(());
        }
        let is_same = pin.file_id == header.file_id || header.scan.older_id == Some(pin.file_id);
        if is_same {
            let is_older = header.sequence < pin.sequence;
            if is_older || header.sequence == pin.sequence && pin.sealed && is_off {
                let found = format!("an older header, {}, of it", header.sequence);
                return Err(expected(pin, &found));
            }
            return Ok(());
        }
        if is_off {
            return Err(expected(pin, "another database, whose encryption is switched off"));
        }
        if recall_known(header)?.is_some_and(|known| known.sequence > header.sequence) {
            return Err(expected(pin, "an older header of another database"));
        }
        if is_strict()? {
            let found = format!("another encrypted database, file id {}", hex(&header.file_id));
            return Err(expected(pin, &found));
        }
        Ok(())
    }

    /// Where pages have to be sealed, one whose encryption was switched off here is still read. One that was switched off
    /// elsewhere is not: it may be any database of the instance.
    fn check_sealed(&self, header: &Header, pins: &[Pin]) -> Result<()> {
        let is_known = |pin: &Pin| !pin.sealed && is_same(pin, header);
        if !self.require || !header.is_switched_off() || pins.iter().any(is_known) {
            return Ok(());
        }
        Err(Error::misuse(Subject::Container, SWITCHED_OFF))
    }

    fn check_retired(&self, header: &Header, pins: &[Pin]) -> Result<()> {
        let accepted = |pin: &Pin| {
            pin.retired.is_some_and(|known| header.deks.iter().any(|row| row.commitment == known))
        };
        if pins.iter().any(accepted) {
            return Ok(());
        }
        for row in &header.deks {
            if self.is_retired(&row.commitment)? {
                return Err(Error::replaced(Subject::Container, format!(
                    "it is under a key that a rekey replaced: who has that key reads it, and could have put the file here; {}",
                    self.accepts()
                )));
            }
        }
        Ok(())
    }

    /// Why nothing may be written under this header: its encryption is switched off where pages have to be sealed, or a rekey
    /// replaced its key. The rekey that is begun to end that may.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if the keyring cannot be looked into.
    pub fn forbids_writing(&self, header: &Header) -> Result<Option<&'static str>> {
        if self.require && header.is_switched_off() {
            return Ok(Some(SWITCHED_OFF));
        }
        match header.current_dek() {
            Ok(row) if !self.may_renew && self.is_retired(&row.commitment)? => Ok(Some(RETIRED)),
            _ => Ok(None),
        }
    }

    fn is_retired(&self, commitment: &[u8; 32]) -> Result<bool> {
        Keyring::is_retired_at(&self.homes, commitment).map_err(|error| unreadable(&error))
    }

    /// The words that name the command which accepts what is at the path.
    fn accepts(&self) -> String {
        let path = self.names.first().cloned().unwrap_or_default();
        format!("`pellucid accept '{}'` takes it as it is", path.display())
    }

    /// Remembers that the database of `header` was opened here. `pins` are those that it was checked against. Another
    /// database than the pinned one is told, and recorded once.
    ///
    /// A keyring that cannot be written prevents no opening.
    pub fn keep(&self, header: &Header, pins: &[Pin]) {
        let Some(home) = self.home() else { return };
        let mut other = None;
        for name in &self.names {
            let known = pins.iter().find(|pin| pin.path == *name);
            if next(known, name, header).as_ref() != known {
                let _ = Keyring::open(home)
                    .and_then(|keyring| keyring.change_pin(name, |pin| next(pin, name, header)));
            }
            let is_other = |pin: &&Pin| !is_same(pin, header) && pin.next != Some(header.file_id);
            if let Some(pin) = known.filter(is_other) {
                other = Some(pin);
            }
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
            let event = Event::new(Action::Replaced, "database").of(pin.path.display().to_string());
            let _ = event.record_here();
        }
    }

    /// Pins the database of `header`, in the place of whatever was expected: it was made, restored or accepted here.
    ///
    /// # Errors
    /// [`Error::Io`] if the keyring cannot be written; what is wrong with it.
    pub fn put(&self, header: &Header, retired: Option<[u8; 32]>) -> Result<()> {
        self.change(|name, _| Some(Pin { retired, ..pinned(name, header) }))
    }

    /// Like [`Expectation::put`], where a keyring that cannot be written is no error: it is noted in the log, about `path`.
    pub fn put_if_writable(&self, path: &Path, header: &Header) {
        if let Err(error) = self.put(header, None) {
            if is_forbidden(&error) {
                return;
            }
            note(ffi::OK, path, &format!("the keyring does not expect the database here: {error}"));
        }
    }

    /// Lets a plain file take the place of the database, or no longer. A conversion says so before it begins: nothing can be
    /// written once the file is plain.
    ///
    /// # Errors
    /// As [`Expectation::put`].
    pub fn let_go(&self, may_go: bool) -> Result<()> {
        self.change(|_, pin| pin.map(|pin| Pin { may_go, ..pin.clone() }))
    }

    /// Lets the database of `header` take the place of the present one, which a restore says before it begins. Either is
    /// expected until one of them is opened.
    ///
    /// # Errors
    /// As [`Expectation::put`].
    pub fn announce(&self, header: &Header) -> Result<()> {
        let next = Some(header.file_id);
        match self.change(|_, pin| pin.map(|pin| Pin { next, ..pin.clone() })) {
            Err(error) if is_forbidden(&error) => Ok(()),
            announced => announced,
        }
    }

    /// Expects nothing here any more.
    ///
    /// # Errors
    /// [`Error::Io`] if the keyring cannot be written.
    pub fn release(&self) -> Result<()> {
        let Some(home) = self.home() else { return Ok(()) };
        if self.pins().is_ok_and(|pins| pins.is_empty()) {
            return Ok(());
        }
        let keyring = Keyring::open(home)?;
        self.names.iter().try_for_each(|name| keyring.unpin(name))
    }

    fn change(&self, change: impl Fn(&Path, Option<&Pin>) -> Option<Pin>) -> Result<()> {
        let Some(home) = self.home() else { return Ok(()) };
        let pins = self.pins()?;
        for name in &self.names {
            let known = pins.iter().find(|pin| pin.path == *name);
            if change(name, known).as_ref() != known {
                Keyring::open(home)?.change_pin(name, |pin| change(name, pin))?;
            }
        }
        Ok(())
    }
}

/// The pin after the database of `header` was opened at `name`. Its sequence number grows only.
fn next(known: Option<&Pin>, name: &Path, header: &Header) -> Option<Pin> {
    let known = match known {
        Some(known) if known.next != Some(header.file_id) => known,
        _ => return Some(pinned(name, header)),
    };
    if !is_same(known, header) {
        return Some(Pin { other: Some(header.file_id), ..known.clone() });
    }
    if header.sequence < known.sequence {
        return Some(known.clone());
    }
    // A conversion that was asked for and did not happen is over once the header goes on.
    let may_go = known.may_go && header.sequence == known.sequence;
    Some(Pin { may_go, retired: known.retired, ..pinned(name, header) })
}

fn is_same(pin: &Pin, header: &Header) -> bool {
    pin.file_id == header.file_id || header.scan.older_id == Some(pin.file_id)
}

fn pinned(name: &Path, header: &Header) -> Pin {
    Pin {
        path: name.to_owned(),
        file_id: header.file_id,
        sequence: header.sequence,
        sealed: !header.is_switched_off(),
        ..Pin::default()
    }
}

fn expected(pin: &Pin, found: &str) -> Error {
    Error::replaced(Subject::Container, format!(
        "the keyring expects the encrypted database with the file id {}, header {}, here, and there is {found}; `pellucid accept \
         '{}'` takes it as it is",
        hex(&pin.file_id), pin.sequence, pin.path.display()
    ))
}

/// Whether the instance refuses another of its databases at a pinned path. One that cannot say so does.
fn is_strict() -> Result<bool> {
    let home = Keyring::locate()?;
    if !Keyring::is_at(&home) {
        return Ok(false);
    }
    let policies = Keyring::open(&home).and_then(|keyring| keyring.policies());
    Ok(policies.map_or(true, |policies| policies.limit(Policy::StrictPaths) == Limit::On))
}

fn unreadable(error: &Error) -> Error {
    Error::missing_key(Subject::Container, format!(
        "what is expected at this path is said by the keyring, which cannot be read: {error}; put that file back, or let this \
         account read it"
    ))
}

fn by_real_directory(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (whole.parent().and_then(|parent| parent.canonicalize().ok()), whole.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => whole,
    }
}

/// Whether the keyring may only be read: whoever opens databases by it cannot change what it expects.
fn is_forbidden(error: &Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error, Error::Io { source, .. } if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem))
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Whether a path means another file in another process.
fn is_of_a_process(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev/fd")
}

fn parse_id(text: &str) -> Option<[u8; 16]> {
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| digits)?;
    Some(number.to_be_bytes())
}

fn not_an_id(option: &'static str) -> Error {
    Error::misuse(
        Subject::Option(option.into()),
        "is a file id, 32 hexadecimal digits, as `pellucid status` shows it, or several with commas between them",
    )
}
