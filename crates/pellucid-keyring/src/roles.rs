//! Who may have what from the broker: pairs of an account and a database.
//!
//! Layout: docs/format.md, "Keyring". Accounts are the machine's, so no bundle has them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};

use super::sealed_file::{Kind, SealedFile, CONTENT_BYTES_MOST};
use super::{Action, Event, Keyring};

const NAME: &str = "roles";
const VERSION: u8 = 1;
/// Role 1, file id 16, account's number 4, length of its name 1.
const HEAD_BYTES: usize = 22;

/// An account of this machine: by its number, and by the name that the number had when it was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub uid: u32,
    /// Its name, up to 255 bytes.
    pub name: String,
}

/// What an account may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// The data encryption key: it reads and writes the database.
    Opens = 1,
    /// Backups made for it. It gets no key, and reads neither the database nor its backups.
    BacksUp = 2,
}

/// Where backups go that are made for accounts: the number of a role that no account has.
const PLACE: u8 = 3;

impl Role {
    const ALL: [Self; 2] = [Self::Opens, Self::BacksUp];

    /// What it does with the database, for people.
    pub const fn does(self) -> &'static str {
        match self {
            Role::Opens => "opens",
            Role::BacksUp => "backs up",
        }
    }

    /// For the event log.
    pub const fn subject(self) -> &'static str {
        match self {
            Role::Opens => "account that opens",
            Role::BacksUp => "account that backs up",
        }
    }
}

/// An account, a database, and what the one may with the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// What.
    pub role: Role,
    /// Who.
    pub account: Account,
    /// The database's file id.
    pub file_id: [u8; 16],
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// In the order in which they were given.
    pub pairs: Vec<Pair>,
    /// The directory for backups that are made for accounts: up to 255 bytes.
    pub place: Option<PathBuf>,
    /// Roles of a newer version, kept as they are.
    others: Vec<Vec<u8>>,
}

impl Roles {
    /// Whether an account has a role.
    pub fn has(&self, role: Role, account: &Account, file_id: &[u8; 16]) -> bool {
        let is_it =
            |one: &Pair| one.role == role && one.account == *account && one.file_id == *file_id;
        self.pairs.iter().any(is_it)
    }

    /// The databases that an account opens.
    pub fn databases_of<'a>(
        &'a self,
        account: &'a Account,
    ) -> impl Iterator<Item = &'a [u8; 16]> + 'a {
        let is_it = |one: &&Pair| one.role == Role::Opens && one.account == *account;
        self.pairs.iter().filter(is_it).map(|one| &one.file_id)
    }

    /// The pairs of an account by its name, or by its number where that has no name any more.
    pub fn named<'a>(&'a self, account: &'a str) -> impl Iterator<Item = &'a Pair> + 'a {
        let number = account.parse().ok();
        let is_it =
            move |one: &&Pair| one.account.name == account || Some(one.account.uid) == number;
        self.pairs.iter().filter(is_it)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, mut rest) = bytes.split_first()?;
        if *version != VERSION {
            return None;
        }
        let mut roles = Self::default();
        while !rest.is_empty() {
            let (head, behind) = rest.split_first_chunk::<HEAD_BYTES>()?;
            let (name, behind) = behind.split_at_checked(usize::from(head[HEAD_BYTES - 1]))?;
            match Role::ALL.into_iter().find(|role| *role as u8 == head[0]) {
                Some(role) => roles.pairs.push(Pair {
                    role,
                    account: Account {
                        uid: u32::from_be_bytes(*head[17..].first_chunk()?),
                        name: std::str::from_utf8(name).ok()?.to_owned(),
                    },
                    file_id: *head[1..].first_chunk()?,
                }),
                None if head[0] == PLACE => {
                    roles.place = Some(PathBuf::from(OsStr::from_bytes(name)));
                }
                None => roles.others.push(rest[..HEAD_BYTES + name.len()].to_vec()),
            }
            rest = behind;
        }
        Some(roles)
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![VERSION];
        let mut put = |role: u8, file_id: &[u8; 16], uid: u32, name: &[u8]| {
            let length = u8::try_from(name.len()).map_err(|_| {
                Error::misuse(
                    Subject::Key("roles"),
                    "a name of an account or directory has up to 255 bytes",
                )
            })?;
            bytes.push(role);
            bytes.extend_from_slice(file_id);
            bytes.extend_from_slice(&uid.to_be_bytes());
            bytes.push(length);
            bytes.extend_from_slice(name);
            Ok(())
        };
        for Pair { role, account, file_id } in &self.pairs {
            put(*role as u8, file_id, account.uid, account.name.as_bytes())?;
        }
        if let Some(place) = &self.place {
            put(PLACE, &[0; 16], 0, place.as_os_str().as_bytes())?;
        }
        bytes.extend(self.others.iter().flatten());
        match bytes.len() <= CONTENT_BYTES_MOST {
            true => Ok(bytes),
            false => Err(Error::limit(
                Subject::Key("roles"),
                format!("they have {} bytes, and {CONTENT_BYTES_MOST} is the most: about 2,000 pairs of account and database", bytes.len()),
            )),
        }
    }
}

pub(super) fn file(home: &Path) -> SealedFile {
    SealedFile::new(home.join("keyring").join(NAME), Kind::Roles, NAME)
}

impl Keyring {
    /// Who may have what from the broker.
    ///
    /// # Errors
    /// What is wrong with the file that it is in.
    pub fn roles(&self) -> Result<Roles> {
        let file = file(self.home());
        let Some(bytes) = self.read(&file)? else { return Ok(Roles::default()) };
        Roles::decode(&bytes).ok_or_else(|| {
            Error::corrupt(Subject::File(file.path().to_owned()), "its fields do not fit")
        })
    }

    /// Gives an account a role. False if it has it already.
    ///
    /// # Errors
    /// [`Error::LimitReached`], [`Error::Io`].
    pub fn allow(&self, pair: &Pair) -> Result<bool> {
        self.change_roles(pair_event(Action::Added, pair), |roles| {
            let is_new = !roles.pairs.contains(pair);
            if is_new {
                roles.pairs.push(pair.clone());
            }
            is_new
        })
    }

    /// Takes a role from an account. False if it did not have it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn deny(&self, pair: &Pair) -> Result<bool> {
        self.change_roles(pair_event(Action::Dropped, pair), |roles| {
            let before = roles.pairs.len();
            roles.pairs.retain(|one| one != pair);
            roles.pairs.len() < before
        })
    }

    /// Whoever has a role with `older` has it with `newer`, too: the same database under another file id.
    ///
    /// # Errors
    /// As [`Keyring::allow`].
    pub fn allow_as(&self, older: &[u8; 16], newer: &[u8; 16]) -> Result<()> {
        let roles = self.roles()?;
        for pair in roles.pairs.iter().filter(|one| one.file_id == *older) {
            self.allow(&Pair { file_id: *newer, ..pair.clone() })?;
        }
        Ok(())
    }

    /// Says where backups go that are made for accounts; none takes it back. False if it is so already.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a path of more than 255 bytes; [`Error::Io`].
    pub fn set_backup_place(&self, place: Option<&Path>) -> Result<bool> {
        let (action, shown) = match place {
            Some(place) => (Action::Changed, place.display().to_string()),
            None => (Action::Dropped, String::new()),
        };
        let event = Event::new(action, "place of backups for accounts").of(shown);
        self.change_roles(event, |roles| {
            let is_new = roles.place.as_deref() != place;
            roles.place = place.map(Path::to_owned);
            is_new
        })
    }

    fn change_roles(&self, event: Event, change: impl FnOnce(&mut Roles) -> bool) -> Result<bool> {
        let (_change, now) = self.begin_change()?;
        let mut roles = now.roles()?;
        if !change(&mut roles) {
            return Ok(false);
        }
        let content = roles.encode()?;
        event.record_by(self)?;
        file(self.home()).replace(now.key(), &content)?;
        Ok(true)
    }
}

fn pair_event(action: Action, pair: &Pair) -> Event {
    Event::new(action, pair.role.subject()).of(pair.account.name.as_str()).file_id(&pair.file_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(uid: u32, name: &str) -> Account {
        Account { uid, name: name.to_owned() }
    }

    fn pair(uid: u32, name: &str, file_id: [u8; 16]) -> Pair {
        Pair { role: Role::Opens, account: account(uid, name), file_id }
    }

    #[test]
    fn what_is_written_is_read_again_and_roles_of_a_newer_version_are_kept() {
        let newer = [&[9][..], &[1; 16], &[0, 0, 0, 5], &[3], b"abc"].concat();
        let opens = pair(1001, "n\u{e4}", [7; 16]);
        let backs_up = Pair { role: Role::BacksUp, ..opens.clone() };
        let (pairs, place) = (vec![opens, backs_up], Some("/var/backups/\u{e4}".into()));
        let roles = Roles { pairs, place, others: vec![newer] };
        let bytes = roles.encode().unwrap();
        assert_eq!(Roles::decode(&bytes), Some(roles));
        assert_eq!(Roles::decode(&bytes[..bytes.len() - 1]), None, "cut");
        assert_eq!(Roles::decode(&[2]), None, "a newer version");
        assert_eq!(Roles::decode(&[]), None);
        let long = Roles { place: Some("/".repeat(256).into()), ..Roles::default() };
        assert!(matches!(long.encode(), Err(Error::Misuse { .. })));
        let many = Roles { pairs: vec![pair(1, "name", [1; 16]); 3_000], ..Roles::default() };
        assert!(matches!(many.encode(), Err(Error::LimitReached { .. })));
    }

    #[test]
    fn an_account_has_the_roles_that_it_was_given_and_no_other() {
        let home = tempfile::tempdir().unwrap();
        let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
        let (ada, eve) = (account(1001, "ada"), account(1002, "eve"));
        let own = pair(1001, "ada", [1; 16]);
        assert!(keyring.allow(&own).unwrap());
        assert!(!keyring.allow(&own).unwrap(), "it has it already");
        let roles = keyring.roles().unwrap();
        assert!(roles.has(Role::Opens, &ada, &[1; 16]));
        assert!(!roles.has(Role::BacksUp, &ada, &[1; 16]));
        assert!(!roles.has(Role::Opens, &ada, &[2; 16]));
        assert!(!roles.has(Role::Opens, &eve, &[1; 16]));
        // The number was given to somebody else meanwhile.
        assert!(!roles.has(Role::Opens, &account(1001, "eve"), &[1; 16]));
        keyring.allow_as(&[1; 16], &[2; 16]).unwrap();
        assert_eq!(keyring.roles().unwrap().databases_of(&ada).count(), 2);
        assert!(keyring.deny(&own).unwrap());
        assert!(!keyring.deny(&own).unwrap());
        assert_eq!(keyring.roles().unwrap().databases_of(&ada).count(), 1);
        let backs_up = Pair { role: Role::BacksUp, ..pair(1002, "eve", [2; 16]) };
        keyring.allow(&backs_up).unwrap();
        assert_eq!(keyring.roles().unwrap().databases_of(&eve).count(), 0);
        keyring.set_backup_place(Some(Path::new("/var/backups"))).unwrap();
        // With a new master key they are the same.
        let change = crate::Change::begin(home.path()).unwrap();
        change.replace_database_key(Some(&keyring), None, None, false).unwrap();
        drop(change);
        let roles = Keyring::open(home.path()).unwrap().roles().unwrap();
        assert!(roles.has(Role::Opens, &ada, &[2; 16]) && roles.has(Role::BacksUp, &eve, &[2; 16]));
        assert_eq!(roles.place.as_deref(), Some(Path::new("/var/backups")));
    }
}
