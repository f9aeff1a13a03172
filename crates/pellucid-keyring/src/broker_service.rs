//! What the broker answers: to whom, and out of which keyring. The other side of `broker.rs`.

use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};
use pellucid::certificate::Certificate;
use pellucid::error::{Error, Result, Subject};
use pellucid::hash::hex;
use pellucid::header::{Header, COPY_BYTES};
use pellucid::keys::HeaderKey;
use pellucid::protector::KeySource;
use pellucid::shown::Shown;
use zeroize::Zeroizing;

use crate::broker::wire::{self, Operation, Status};
use crate::broker::{Asked, BackupKind, Memory, Peer, Query};
use crate::policy::Policies;
use crate::{Account, Action, Event, Keyring, Pin, Role, Roles};

/// More paths, databases or keys than one opening asks about.
const ASKED_MOST: usize = 256;

/// An answer, and what of it the broker's own log has.
#[derive(Debug)]
pub struct Answer {
    /// As it goes over the socket.
    pub bytes: Zeroizing<Vec<u8>>,
    /// The database whose key was refused, and to whom.
    pub refused: Option<String>,
}

impl Answer {
    /// Whether the question is for a backup, which the caller of this makes ([`Order::of`]).
    pub fn is_order(magic: [u8; 4], operation: u8) -> bool {
        magic == wire::MAGIC && Operation::of(operation) == Some(Operation::BackUp)
    }

    /// What became of a backup: what was told, or why there is none.
    pub fn of_backup(done: std::result::Result<String, String>) -> Self {
        let (status, told) = match &done {
            Ok(told) => (Status::Done, told),
            Err(told) => (Status::Refused, told),
        };
        Self { bytes: wire::answer(status, told.as_bytes()), refused: None }
    }

    /// Answers the question of an operation, which the caller has read from the socket: the head without its length, and the bytes.
    pub fn to(home: &Path, peer: &Peer, magic: [u8; 4], operation: u8, bytes: &[u8]) -> Self {
        if magic != wire::MAGIC {
            return Self::misuse("another version of pellucid asks");
        }
        let done = match Operation::of(operation) {
            Some(Operation::Open) => open(home, peer, bytes),
            Some(Operation::Recall) => recall(home, peer, bytes),
            Some(Operation::BackUp) | None => Ok(None),
        };
        match done {
            Ok(Some(bytes)) => Self { bytes: wire::answer(Status::Done, &bytes), refused: None },
            Ok(None) => Self::misuse("no question of this version"),
            Err(refusal) => refusal.answer(),
        }
    }

    fn misuse(told: &str) -> Self {
        Self { bytes: wire::answer(Status::Misuse, told.as_bytes()), refused: None }
    }
}

impl Refusal {
    fn answer(self) -> Answer {
        match self {
            Refusal::Denied(refused) => {
                Answer { bytes: wire::answer(Status::Denied, &[]), refused }
            }
            Refusal::Failed(error) => {
                let status = match error {
                    Error::MissingKey { .. } => Status::MissingKey,
                    Error::Unauthentic { .. } => Status::Unauthentic,
                    _ => Status::Trouble,
                };
                let told = error.to_string();
                Answer { bytes: wire::answer(status, told.as_bytes()), refused: None }
            }
        }
    }
}

/// A backup to be made for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The database, as the keyring knows its path.
    pub database: PathBuf,
    /// The file id that it has to have when it is opened: another file may lie there by now.
    pub file_id: [u8; 16],
    /// The file of the backup, in the account's directory in the one that the keyring names.
    pub target: PathBuf,
    /// Of which kind.
    pub kind: BackupKind,
    /// Whether to append to media that are there.
    pub append: bool,
}

impl Order {
    /// What an account asks for, if it may have that. It is recorded then.
    ///
    /// # Errors
    /// The answer that refuses it.
    pub fn of(home: &Path, peer: &Peer, bytes: &[u8]) -> std::result::Result<Self, Answer> {
        let Some(asked) = Asked::decode(bytes) else {
            return Err(Answer::misuse("no question of this version"));
        };
        ordered(home, peer, asked).map_err(Refusal::answer)
    }
}

fn ordered(home: &Path, peer: &Peer, asked: Asked) -> std::result::Result<Order, Refusal> {
    let keyring = Keyring::open(home)?;
    let roles = keyring.roles()?;
    let account = account_of(peer, &roles)?;
    let may = |id: &[u8; 16]| {
        account.as_ref().is_some_and(|account| roles.has(Role::BacksUp, account, id))
    };
    // By what the keyring knows of the path, so that no account has another file read. Several may have lain there.
    let mut found: Vec<[u8; 16]> = Vec::new();
    for pair in roles.pairs.iter().filter(|one| may(&one.file_id)) {
        let memory = keyring.recall(&hex(&pair.file_id))?;
        if memory.is_some_and(|memory| memory.path == asked.database) {
            found.push(pair.file_id);
        }
    }
    let pins = Keyring::pins_at(&[home.to_owned()], std::slice::from_ref(&asked.database))?;
    let is_pinned = |id: &&[u8; 16]| pins.iter().any(|pin| pin.file_id == **id);
    let found = found.iter().find(is_pinned).or(found.last()).copied();
    let Some((file_id, account)) = found.zip(account.as_ref()) else {
        let who = account.map_or_else(|| peer.uid.to_string(), |account| account.name);
        let shown = asked.database.shown();
        return Err(Refusal::Denied(Some(format!("{who} may not back up `{shown}`"))));
    };
    let misuse = |cause: String| Error::misuse(Subject::Key("broker"), cause);
    let place = roles.place.ok_or_else(|| {
        misuse("there is no place for backups: `pellucid broker media DIRECTORY`, as root".into())
    })?;
    if !is_name(&asked.name) {
        return Err(misuse(format!(
            "`{}` is no name for a backup: letters, digits, `.`, `_` and `-`, up to 200, and a letter or digit first",
            asked.name.shown()
        ))
        .into());
    }
    pellucid_files::trusted::check(&place)?;
    let event = Event::new(Action::BackedUp, "database").of(asked.database.display().to_string());
    event.file_id(&file_id).by(peer).record_by(&keyring)?;
    Ok(Order {
        target: place.join(folder_of(account)).join(&asked.name),
        database: asked.database,
        file_id,
        kind: asked.kind,
        append: asked.append,
    })
}

/// An account's own directory among backups.
fn folder_of(account: &Account) -> String {
    match is_name(&account.name) {
        true => account.name.clone(),
        false => account.uid.to_string(),
    }
}

/// Without a slash it is a name in the directory; without a brace and a colon it is nothing else than a name.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.len() <= 200
        && name.bytes().all(is_plain)
        && name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
}

/// The answer where too many ask at once.
pub fn refuse_for_now() -> Zeroizing<Vec<u8>> {
    wire::answer(Status::Busy, &[])
}

enum Refusal {
    Denied(Option<String>),
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Failed(error)
    }
}

/// Private keys stay behind this: it is handed to no caller of the broker.
struct Held<'a>(&'a Keyring);

impl KeySource for Held<'_> {
    fn certificate(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        self.0.certificate_by_thumbprint(thumbprint)
    }
}

/// The account that asks, if it has a name.
///
/// # Errors
/// Where names cannot be looked up now, or the number has no name, or another one than roles were given to: nobody knows then whether
/// it is the account that was let in, and neither yes nor no would be true.
fn account_of(peer: &Peer, roles: &Roles) -> Result<Option<Account>> {
    let trouble = |cause: String| Error::io(Subject::Key("broker"), std::io::Error::other(cause));
    let user = User::from_uid(Uid::from_raw(peer.uid)).map_err(|error| {
        trouble(format!("the name of the account {} cannot be looked up: {error}", peer.uid))
    })?;
    let account = user.map(|user| Account { uid: peer.uid, name: user.name });
    let mut known = roles.pairs.iter().filter(|pair| pair.account.uid == peer.uid);
    match known.find(|pair| account.as_ref() != Some(&pair.account)) {
        None => Ok(account),
        Some(pair) => Err(trouble(format!(
            "the account {} is not called `{}` any more, as it was when it was let in: `pellucid broker deny {} ..`, and `allow` by its \
             new name",
            peer.uid,
            pair.account.name.shown(),
            peer.uid
        ))),
    }
}

fn open(
    home: &Path,
    peer: &Peer,
    bytes: &[u8],
) -> std::result::Result<Option<Zeroizing<Vec<u8>>>, Refusal> {
    let Some((copy, bytes)) = bytes.split_first() else { return Ok(None) };
    let Ok(bytes) = <&[u8; COPY_BYTES]>::try_from(bytes) else { return Ok(None) };
    let keyring = Keyring::open(home)?;
    let header = Header::parse(bytes, *copy)?;
    let roles = keyring.roles()?;
    let account = account_of(peer, &roles)?;
    if !account.as_ref().is_some_and(|account| roles.has(Role::Opens, account, &header.file_id)) {
        let who = account.map_or_else(|| peer.uid.to_string(), |account| account.name);
        let refused = format!("{who} was not let into the database {}", hex(&header.file_id));
        return Err(Refusal::Denied(Some(refused)));
    }
    // The binding has purpose and file id: a wrap of another database does not open, whatever stands around it.
    let dek = header.unwrap(&Held(&keyring))?;
    Header::authenticate(bytes, &HeaderKey::derive(&dek, &header.file_id)?, *copy)?;
    // On disk before the key leaves: what cannot be recorded is not done.
    let mut event = Event::new(Action::Opened, "database").file_id(&header.file_id).by(peer);
    if let Some(memory) = keyring.recall(&hex(&header.file_id)).ok().flatten() {
        event = event.of(memory.path.display().to_string());
    }
    event.record_by(&keyring)?;
    Ok(Some(Zeroizing::new(dek.expose().to_vec())))
}

fn recall(
    home: &Path,
    peer: &Peer,
    bytes: &[u8],
) -> std::result::Result<Option<Zeroizing<Vec<u8>>>, Refusal> {
    let Some(query) = Query::decode(bytes) else { return Ok(None) };
    let names = query.witnesses.as_ref().map_or(0, Vec::len);
    let asked = query.paths.len() + query.file_ids.len() + query.commitments.len() + names;
    if asked > ASKED_MOST {
        let told = format!("more than {ASKED_MOST} questions at once");
        return Err(Error::limit(Subject::Key("broker"), told).into());
    }
    let keyring = Keyring::open(home)?;
    let homes = [home.to_owned()];
    let recalled = |id: &[u8; 16]| {
        let memory = keyring.recall(&hex(id))?;
        Ok(memory.map(|memory| memory.encode()).unwrap_or_default())
    };
    let retired = |commitment: &[u8; 32]| Keyring::is_retired_at(&homes, commitment);
    let pins = Keyring::pins_at(&homes, &query.paths)?;
    let policies = match query.policies {
        true => keyring.policies()?,
        false => Policies::default(),
    };
    let policies = policies.iter();
    let policies = policies.map(|(policy, limit)| (policy.name().to_owned(), limit.to_string()));
    let mut memory = Memory {
        pins: pins.iter().map(Pin::encode).collect(),
        databases: query.file_ids.iter().map(recalled).collect::<Result<_>>()?,
        retired: query.commitments.iter().map(retired).collect::<Result<_>>()?,
        policies: policies.collect(),
        witnesses: Vec::new(),
        home: home.to_owned(),
    };
    if let Some(names) = query.witnesses {
        let roles = keyring.roles()?;
        let account = account_of(peer, &roles)?;
        let own: Vec<_> = account.iter().flat_map(|account| roles.databases_of(account)).collect();
        // Of the names, what cannot be read is an error.
        let all = keyring.witnesses_at(&names, &|_| true)?.into_iter();
        let told = all.filter(|one| names.contains(&one.path) || own.contains(&&one.file_id));
        memory.witnesses = told.map(|one| one.encode()).collect();
    }
    Ok(Some(memory.encode()))
}

#[cfg(test)]
mod tests;
