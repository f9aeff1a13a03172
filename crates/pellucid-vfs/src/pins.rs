//! What is expected at the path of a database: by the keyring's pins, and by the file ids that the caller names.
//!
//! A path where the keyring has seen an encrypted database does not become, unasked, less than that: no other file of whatever
//! kind, no earlier header, no key that a rekey retired. Each opening asks the keyring again; no cache stands before it. The
//! rule with its everyday cases: docs/guide/pinned-paths.md.

use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::header::Header;
use pellucid::{Error, Result, Subject};
use pellucid_host::code::is_out_of_files;
use pellucid_keyring::broker::Broker;
use pellucid_keyring::policy::{Limit, Policy};
use pellucid_keyring::{Keyring, Pin};

use crate::seal_request::{recall_known, Request};

pub(crate) mod names;
mod pages;
mod remember;

pub(crate) use names::note_resolved;
use names::Names;

const SWITCHED_OFF: &str = "its encryption is switched off, where a sealed database is required; `pellucid encrypt` switches it on";
const RETIRED: &str =
    "its key was replaced by a rekey and seals no more here: `pellucid accept --rekey` gives it a new one";

/// How often the keyring is asked again because another process changed what it expects meanwhile.
const ATTEMPTS: usize = 16;

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
#[derive(Debug, Default, Clone)]
pub struct Expectation {
    names: Names,
    /// The file ids that the caller allows; any if there are none.
    ids: Vec<[u8; 16]>,
    /// The header's pages have to be sealed.
    require: bool,
    /// The instances whose keyrings are asked; none for a conversion's copy, which no pin is about.
    homes: Vec<PathBuf>,
    /// Another database of the instance is refused, whatever the policy says.
    strict: bool,
    /// Commits behind a damaged frame of the log are an error.
    strict_log: bool,
    /// The connection is a rekey's, which may begin under a retired key.
    may_renew: bool,
    /// The connection ends a restore.
    may_recover: bool,
}

impl Expectation {
    /// What is expected of the file `path` that a connection opens.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a file id that is none, and for an instance that others could exchange.
    pub(crate) fn of_connection(path: &Path, request: &Request) -> Result<Self> {
        let (strict_log, may_renew) = (request.strict_log, request.renew);
        let may_recover = request.recover;
        if request.copy || request.plain || request.accept {
            return Ok(Self { strict_log, may_renew: true, may_recover, ..Self::default() });
        }
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
        let (names, homes) = (Names::of_connection(path), Keyring::all_homes()?);
        let (require, strict) = (request.require_sealed, request.own);
        Ok(Self { names, ids, require, homes, strict, strict_log, may_renew, may_recover })
    }

    /// Whether the marks of a restore keep the connection out.
    pub(crate) fn obeys_marks(&self) -> bool {
        !self.may_recover
    }

    /// What the keyring expects at `path`, by whichever of its names, for a program that looks at it.
    ///
    /// # Errors
    /// [`Error::Misuse`] for an instance that others could exchange.
    pub fn at(path: &Path) -> Result<Self> {
        Ok(Self { names: Names::of(path), homes: Keyring::all_homes()?, ..Self::default() })
    }

    /// Like [`Expectation::at`], with every other pinned path that leads to the same file now, by a link or a mount: a
    /// conversion changes what is expected there, too.
    ///
    /// # Errors
    /// As [`Expectation::at`]; [`Error::MissingKey`] if the keyring's pins cannot be read.
    pub fn at_all_names(path: &Path) -> Result<Self> {
        let mut found = Self::at(path)?;
        let pins = found.pins()?;
        let (Some(home), false) = (found.home(), pins.is_empty()) else { return Ok(found) };
        let all = Keyring::open(home).and_then(|keyring| keyring.each_pin());
        let all = all.map_err(unreadable)?;
        let ids: Vec<_> = pins.iter().map(|pin| pin.file_id).collect();
        let of_them = all.into_iter().filter_map(|(_, pin)| pin.ok());
        let of_them = of_them.filter(|pin| ids.contains(&pin.file_id)).map(|pin| pin.path);
        found.names.extend_by_those_of_the_same_file(path, of_them);
        Ok(found)
    }

    /// Other files than `path` that the keyring expects under the same data encryption key and that are there: copies,
    /// which a rekey of this one would stop.
    ///
    /// # Errors
    /// As [`Expectation::at_all_names`].
    pub fn copies_under(path: &Path, dek: &[u8; 32]) -> Result<Vec<PathBuf>> {
        let found = Self::at(path)?;
        let Some(home) = found.home() else { return Ok(Vec::new()) };
        let all = Keyring::open(home).and_then(|keyring| keyring.each_pin());
        let all = all.map_err(unreadable)?;
        let under = all.into_iter().filter_map(|(_, pin)| pin.ok()).filter(|pin| pin.dek == *dek);
        let mut copies: Vec<_> = under.map(|pin| pin.path).collect();
        copies.retain(|copy| names::is_another_file(copy, path));
        Ok(copies)
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
        Keyring::pins_at(&self.homes, &self.names.all).map_err(unreadable)
    }

    /// Refuses a file that is not a container where one is expected.
    ///
    /// # Errors
    /// [`Error::Replaced`], which names what is expected; those of [`Expectation::pins`].
    pub fn refuse_lesser(&self, found: Lesser) -> Result<()> {
        self.refuse_plain(found, || None)
    }

    /// Like [`Expectation::refuse_lesser`], but lets the very plain file pass that a decryption or restore was to put here. `hash`
    /// is asked for its SHA-256 then.
    ///
    /// # Errors
    /// As [`Expectation::refuse_lesser`].
    pub(crate) fn refuse_plain(
        &self,
        found: Lesser,
        hash: impl Fn() -> Option<[u8; 32]>,
    ) -> Result<()> {
        if let [id, ..] = &self.ids[..] {
            let asked = format!("the database with the file id {} is asked for", hex(id));
            let cause = format!("{asked}, and there is {}", found.text());
            return Err(Error::replaced(Subject::Container, cause));
        }
        let mut pins = self.pins()?;
        for _ in 0..ATTEMPTS {
            let Some(pin) = pins.first() else { return Ok(()) };
            let comes = pins.iter().map(|pin| pin.plain).collect::<Option<Vec<_>>>();
            let comes = comes.filter(|_| found == Lesser::Plain);
            if let (Some(comes), Some(hash)) = (comes, hash_if(&pins, &hash)) {
                if comes.iter().all(|plain| *plain == hash) {
                    self.release_if_writable();
                    return Ok(());
                }
            }
            // The decryption may have ended since they were read, and a program have written to the plain file.
            let again = self.pins()?;
            if again == pins {
                return Err(expected(pin, found.text()));
            }
            pins = again;
        }
        pins.first().map_or(Ok(()), |pin| Err(expected(pin, found.text())))
    }

    /// Refuses to make a sealed database where the caller names file ids, which no new one has, or where the instance is
    /// strict and a file was emptied.
    ///
    /// # Errors
    /// As [`Expectation::refuse_lesser`].
    pub(crate) fn refuse_birth(&self, found: Lesser) -> Result<()> {
        if !self.ids.is_empty() || found == Lesser::Empty && self.is_strict()? {
            return self.refuse_lesser(found);
        }
        Ok(())
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
        let (is_off, id) = (header.is_switched_off(), Some(header.file_id));
        if pin.next == id && !is_off {
            return Ok(());
        }
        if pin.former == id {
            return Err(expected(pin, "the database that was here before"));
        }
        if is_same(pin, header) {
            if header.sequence < pin.sequence {
                let found = format!("an older header, {}, of it", header.sequence);
                return Err(expected(pin, &found));
            }
            if is_off && pin.sealed && !pin.may_off {
                return Err(expected(
                    pin,
                    "a copy of it, or an older header, whose encryption is switched off",
                ));
            }
            return Ok(());
        }
        if is_off {
            return Err(expected(pin, "another database, whose encryption is switched off"));
        }
        if recall_known(header)?.is_some_and(|known| known.sequence > header.sequence) {
            return Err(expected(pin, "an older header of another database"));
        }
        if self.is_strict()? {
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
        Keyring::is_retired_at(&self.homes, commitment).map_err(unreadable)
    }

    /// The words that name the command which accepts what is at the path.
    fn accepts(&self) -> String {
        accepts(self.names.all.first().map_or(Path::new(""), PathBuf::as_path))
    }

    /// Whether the caller or an instance refuses another of its databases at a pinned path. One that cannot say so does.
    fn is_strict(&self) -> Result<bool> {
        if self.strict {
            return Ok(true);
        }
        for home in self.homes.iter().filter(|home| Keyring::is_at(home)) {
            let policies = Keyring::policies_at(home);
            if policies.map_or(true, |policies| policies.limit(Policy::StrictPaths) == Limit::On) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn hash_if(pins: &[Pin], hash: impl Fn() -> Option<[u8; 32]>) -> Option<[u8; 32]> {
    pins.iter().any(|pin| pin.plain.is_some()).then(hash).flatten()
}

fn is_same(pin: &Pin, header: &Header) -> bool {
    pin.file_id == header.file_id
}

fn expected(pin: &Pin, found: &str) -> Error {
    let id = hex(&pin.file_id);
    let cause = format!(
        "the keyring expects the encrypted database with the file id {id}, header {}, here, and there is {found}; {}",
        pin.sequence,
        accepts(&pin.path)
    );
    Error::replaced(Subject::Container, cause)
}

/// The words that name the command which accepts what is at `path`, to be typed as they are.
fn accepts(path: &Path) -> String {
    let name = path.to_str().filter(|name| !name.contains(|c: char| c.is_control()));
    match name {
        Some(name) => {
            format!("`pellucid accept '{}'` takes it as it is", name.replace('\'', "'\\''"))
        }
        None => "`pellucid accept` with its path takes it as it is".to_owned(),
    }
}

fn unreadable(error: Error) -> Error {
    if is_out_of_files(&error) || Broker::all().map_or(true, |all| !all.is_empty()) {
        return error;
    }
    Error::missing_key(Subject::Container, format!(
        "what is expected at this path is said by the keyring, which cannot be read: {error}; put that file back, or let this \
         account read it"
    ))
}

/// A file id of 32 hexadecimal digits.
pub fn parse_id(text: &str) -> Option<[u8; 16]> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 16] = [7; 16];
    const PLAIN: [u8; 32] = [1; 32];
    const WRITTEN_TO: [u8; 32] = [2; 32];

    fn expecting(home: &Path, plain: Option<[u8; 32]>) -> Expectation {
        let (keyring, _) = Keyring::open_or_create(home).unwrap();
        let path = home.join("app.db");
        let pin = Pin {
            path: path.clone(),
            file_id: ID,
            sequence: 1,
            sealed: true,
            plain,
            ..Pin::default()
        };
        keyring.change_pin(&path, |_| Some(pin)).unwrap();
        Expectation {
            names: Names::of(&path),
            homes: vec![home.to_owned()],
            ..Expectation::default()
        }
    }

    #[test]
    fn a_plain_file_that_was_written_to_once_its_decryption_ended_is_opened() {
        let home = tempfile::tempdir().unwrap();
        let expected = expecting(home.path(), Some(PLAIN));
        let released_meanwhile = || {
            expected.release().unwrap();
            Some(WRITTEN_TO)
        };
        expected.refuse_plain(Lesser::Plain, released_meanwhile).unwrap();
    }

    #[test]
    fn a_plain_file_that_no_decryption_put_there_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let expected = expecting(home.path(), Some(PLAIN));
        let told = expected.refuse_plain(Lesser::Plain, || Some(WRITTEN_TO)).unwrap_err();
        assert!(matches!(told, Error::Replaced { .. }), "{told}");
        let told = expecting(home.path(), None).refuse_plain(Lesser::Plain, || Some(PLAIN));
        assert!(matches!(told, Err(Error::Replaced { .. })), "{told:?}");
    }
}
