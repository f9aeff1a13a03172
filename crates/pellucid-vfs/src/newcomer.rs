//! The sealed databases that are open in this process, and the one of them that a new database is
//! sealed like.
//!
//! SQLite copies a database by filling an empty file: `VACUUM INTO`, the backup interface, an
//! attached file. The shim cannot tell a copy from another new database, so each new database
//! beside a sealed one becomes sealed, unless it is asked to be plain. Connections live in several
//! threads: what they know of their headers is repeated here, behind one lock.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use pellucid::header::Header;
use pellucid::protector::Protector;
use pellucid::unit::TAIL_BYTES;
use pellucid::{Error, Result, Subject};

use crate::seal_request::{Birth, Credentials};

/// The offset in page 1 of the byte that states the reserved bytes of each page (SQLite file
/// format, 1.3.4).
pub const RESERVED_AT: usize = 20;
/// That byte of a database with room for tails.
pub const RESERVED: u8 = TAIL_BYTES as u8;

/// How a copy is asked to be plain: the end of each refusal.
const INSTEAD: &str =
    "or let copies be plain: `pellucid run --plain-copies`, `PELLUCID_PLAIN_COPIES=1`, or \
                       `plain_copies=1` in the URI";
/// The most copies whose kin is remembered.
const MOST_COPIES: usize = 256;

/// A sealed database that a connection of this process has open.
#[derive(Debug)]
pub struct Sealed {
    /// The address of its link, which distinguishes the connections to one file.
    at: usize,
    path: PathBuf,
    header: Header,
    credentials: Arc<Credentials>,
    kin: Kin,
    /// Its copies are asked to be plain.
    plain_copies: bool,
}

/// What the DEK of a database is protected by. Two databases of one kin have the same keys.
type Kin = Vec<Vec<u8>>;

/// What is known of sealed databases in this process.
#[derive(Debug)]
struct Known {
    open: Vec<Arc<Sealed>>,
    /// Detached from a connection that goes on: it may have taken rows along.
    detached: Vec<Arc<Sealed>>,
    /// The kin of copies, by file id. A passphrase is wrapped in other bytes in each of them.
    copies: Vec<([u8; 16], Kin)>,
}

static KNOWN: Mutex<Known> =
    Mutex::new(Known { open: Vec::new(), detached: Vec::new(), copies: Vec::new() });

/// Whether a new database may have to be sealed: what [`Known`] says, to be read without its lock.
static ANY: AtomicBool = AtomicBool::new(false);

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Enters the sealed database of the link at `at`, or its changed header. A database whose
/// encryption is switched off is taken out, because its own pages are in clear.
pub fn announce(
    at: usize,
    path: &Path,
    header: &Header,
    credentials: &Arc<Credentials>,
    plain_copies: bool,
) {
    withdraw(at);
    if header.is_switched_off() {
        return;
    }
    let mut known = known();
    let inherited = known.copies.iter().find(|(id, _)| *id == header.file_id);
    let kin = inherited.map_or_else(|| kin_of(header, credentials), |(_, kin)| kin.clone());
    known.open.push(Arc::new(Sealed {
        at,
        path: path.to_owned(),
        header: header.clone(),
        credentials: credentials.clone(),
        kin,
        plain_copies,
    }));
    known.tell();
}

/// Takes out the database of the link at `at`, which is being closed.
pub fn withdraw(at: usize) {
    let mut known = known();
    known.open.retain(|sealed| sealed.at != at);
    known.tell();
}

impl Known {
    /// Brings [`ANY`] up to date.
    fn tell(&self) {
        let any = !self.detached.is_empty() || self.open.iter().any(|sealed| !sealed.plain_copies);
        ANY.store(any, Ordering::Release);
    }
}

/// Keeps the database of the link at `at` in mind after it was detached from a connection whose
/// main database is that of the link `main`. Its rows may be in a temporary table of the
/// connection, on the way to a new file. A sealed main database decides about those files anyway.
pub fn keep_detached(at: usize, main: Option<usize>) {
    let mut known = known();
    if known.open.iter().any(|sealed| Some(sealed.at) == main) {
        return;
    }
    let Some(sealed) = known.open.iter().find(|sealed| sealed.at == at).cloned() else { return };
    if !sealed.plain_copies && !known.detached.iter().any(|other| other.kin == sealed.kin) {
        known.detached.push(sealed);
        known.tell();
    }
}

/// Whether a new database may have to be sealed.
pub fn is_any() -> bool {
    ANY.load(Ordering::Acquire)
}

/// The databases of one connection, by the addresses of their links.
#[derive(Debug, Default)]
pub struct Connected {
    /// The link of the database `main`, unless that is in memory or of another VFS.
    pub main: Option<usize>,
    /// The links of all of its databases.
    pub all: Vec<usize>,
    /// Whether no statement of the connection that may write is being executed. If the connection
    /// writes, a backup does.
    pub is_idle: bool,
}

/// How a new database is made.
#[derive(Debug)]
pub enum Choice {
    /// Nothing speaks against a plain one.
    Plain,
    /// Sealed under the keys of this database.
    Like(Arc<Sealed>),
    /// There are databases with different keys, and nothing says whose copy it is.
    Unclear(Vec<PathBuf>),
}

/// Chooses how a new database of `connected` is made: like the connection's `main`, else like the
/// only sealed one of the connection, else like the only one of the process.
pub fn choose(connected: &Connected) -> Choice {
    let known = known();
    let main = known.open.iter().find(|sealed| Some(sealed.at) == connected.main);
    if let Some(main) = main {
        return match main.plain_copies {
            true => Choice::Plain,
            false => Choice::Like(main.clone()),
        };
    }
    let wanted = || known.open.iter().filter(|sealed| !sealed.plain_copies);
    match only(wanted().filter(|sealed| connected.all.contains(&sealed.at))) {
        Choice::Plain => only(wanted().chain(&known.detached)),
        choice => choice,
    }
}

fn only<'a>(found: impl Iterator<Item = &'a Arc<Sealed>>) -> Choice {
    let mut kins: Vec<&Arc<Sealed>> = Vec::new();
    for sealed in found {
        if !kins.iter().any(|other| other.kin == sealed.kin) {
            kins.push(sealed);
        }
    }
    match kins[..] {
        [] => Choice::Plain,
        [sealed] => Choice::Like(sealed.clone()),
        _ => Choice::Unclear(kins.iter().map(|sealed| sealed.path.clone()).collect()),
    }
}

impl Sealed {
    /// The keys that its connection was opened with.
    pub fn credentials(&self) -> Arc<Credentials> {
        self.credentials.clone()
    }

    /// Makes the keys of a copy: a fresh DEK and file id under the same protectors. Returns also
    /// the line for the log, which names the protectors that are left out.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if no protector could be made again.
    pub fn birth(&self) -> Result<(Birth, String)> {
        let made = Birth::like(&self.header, &self.credentials);
        let (birth, missing) = made.map_err(|error| match error {
            Error::MissingKey { cause, .. } => Error::missing_key(
                Subject::Container,
                format!(
                    "a copy of a sealed database is sealed, and no protector of `{}` can be made again: {cause}; bring \
                     that key, {INSTEAD}",
                    self.path.display()
                ),
            ),
            error => error,
        })?;
        let mut line = format!(
            "new beside the sealed `{}`, so it is sealed, under the same protectors and a data encryption key of its own",
            self.path.display()
        );
        for error in missing {
            line.push_str(&format!("; left out: {error}"));
        }
        let mut known = known();
        if known.copies.len() >= MOST_COPIES {
            known.copies.remove(0);
        }
        known.copies.push((*birth.file_id(), self.kin.clone()));
        Ok((birth, line))
    }
}

/// Makes the error for a new database beside databases of different keys.
pub fn unclear(paths: &[PathBuf]) -> Error {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    Error::missing_key(
        Subject::Container,
        format!(
            "a copy of a sealed database is sealed, and it cannot be told under which keys, because databases with \
             different keys are open: {}; make the copy in a connection whose main database it is to be sealed like, name \
             a key in its URI, {INSTEAD}",
            names.join(", ")
        ),
    )
}

/// Makes the error for a new database that has plain pages already, or whose transaction began
/// before the sealed database was opened.
pub fn begun_in_clear() -> Error {
    Error::misuse(
        Subject::Container,
        format!(
            "a new database beside a sealed one is sealed, and its first transaction began before that one was open: roll \
             back and open the file again, {INSTEAD}"
        ),
    )
}

/// Makes the error for a page 1 that reserves `reserved` bytes, which is too few for a tail.
pub fn unreserved(reserved: u8) -> Error {
    Error::misuse(
        Subject::Page(1),
        format!(
            "reserves {reserved} bytes a page and not {}: a new database beside a sealed one is sealed, and a plain one \
             cannot be copied into it page by page; use `VACUUM INTO`, open the file again if it was open before the \
             sealed one, {INSTEAD}",
            TAIL_BYTES
        ),
    )
}

/// Makes the error for a page 1 by which the backup interface copies a sealed database over a
/// plain one.
pub fn copied_over() -> Error {
    Error::misuse(
        Subject::Page(1),
        format!(
            "a copy of a sealed database is sealed, and this file is a plain one: remove it first, or copy to another \
             name, {INSTEAD}"
        ),
    )
}

fn kin_of(header: &Header, credentials: &Credentials) -> Kin {
    let by_protector = |bytes: &Vec<u8>| match Protector::decode(bytes) {
        Ok((Protector::Certificate(own), _)) => own.thumbprint().to_vec(),
        _ => bytes.clone(),
    };
    if let [bytes] = &header.protectors[..] {
        return vec![opened_by(bytes, credentials).unwrap_or_else(|| by_protector(bytes))];
    }
    let mut kin: Kin = header.protectors.iter().map(by_protector).collect();
    kin.sort();
    kin
}

/// The key file or passphrase that a database's only protector has to have been opened by.
fn opened_by(bytes: &[u8], credentials: &Credentials) -> Option<Vec<u8>> {
    match (Protector::decode(bytes).ok()?.0, credentials.identities()) {
        (Protector::KeyFile(_), ([key], _)) => Some(key.to_vec()),
        (Protector::Passphrase(_), (_, [passphrase])) => Some(passphrase.to_vec()),
        _ => None,
    }
}
