//! Errors for people and machines: what happened, what to do next, and with which exit status.

use std::borrow::Cow;
use std::fmt::Display;
use std::path::Path;

use pellucid::error::Subject;
use pellucid::message::{self, Message};
use pellucid::protector::ALLOW_COST;
use pellucid::shown::Shown;
use pellucid::Error;
use pellucid_files::paths::look;
use pellucid_host::DatabaseError;
use pellucid_keyring::Keyring;

use super::id::Id;
use crate::exit;

/// An error for the person at the terminal.
#[derive(Debug)]
pub struct Failure {
    /// What happened, to which file.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// The exit status.
    pub exit: u8,
    /// Which error it is, where SQL Server has no number for it.
    pub own: Id,
    /// SQL Server's number of the message, if it is one of its.
    pub number: Option<u16>,
}

impl Failure {
    /// An error that says what to do.
    pub fn new(own: Id, message: impl Display, hint: impl Display) -> Self {
        let hint = Some(hint.to_string());
        Self { message: message.to_string(), hint, exit: exit::FAILED, own, number: None }
    }

    /// SQL Server's number of the message.
    pub fn number(mut self, number: u16) -> Self {
        self.number = Some(number);
        self
    }

    /// The same with SQL Server's words behind it.
    pub fn tells(mut self, message: &Message, argument: &str) -> Self {
        self.message = format!("{}: {}", self.message, message.with(argument));
        self.number(message.number)
    }

    /// What a header that cannot be read is told: where both of its copies are damaged, no key is in it any more.
    pub fn of_header(error: Error) -> Self {
        let is_damage = matches!(error, Error::Corrupt { .. });
        let failure = Failure::from(error);
        match is_damage {
            true => failure.tells(&message::KEY_UNREADABLE, ""),
            false => failure,
        }
    }

    /// In a line of its own, with SQL Server's number.
    pub fn line(&self) -> String {
        match self.number {
            Some(number) => format!("{} ({number})", self.message),
            None => self.message.clone(),
        }
    }

    /// The same as another error.
    pub fn called(mut self, own: Id) -> Self {
        self.own = own;
        self
    }

    /// Whether it is that error, also where SQL Server's number stands for it.
    pub fn is(&self, own: Id) -> bool {
        self.own == own
    }

    /// The group that it belongs to, by its remedy.
    pub fn kind(&self) -> &'static str {
        self.own.kind()
    }

    /// What it is looked up by: SQL Server's number, or a word where it has none.
    pub fn id(&self) -> String {
        self.number.map_or_else(|| self.own.word().to_owned(), |number| number.to_string())
    }

    /// In a line of its own, with its id: a number as SQL Server's messages have it, a word in brackets.
    pub fn line_with_id(&self) -> String {
        match self.number {
            Some(_) => self.line(),
            None => format!("{} [{}]", self.message, self.own.word()),
        }
    }

    /// The same about `file`.
    pub fn about(mut self, file: &Path) -> Self {
        let name = format!("`{}`", file.shown());
        // The shim names files by their absolute paths; the person's own name for it is enough.
        if let Ok(absolute) = std::path::absolute(file) {
            let named = format!("`{}`: ", absolute.shown());
            if let Some(rest) = self.message.strip_prefix(&named) {
                self.message = rest.to_owned();
            }
        }
        if !self.message.contains(&name) {
            self.message = format!("{name}: {}", self.message);
        }
        self
    }
}

/// The file that an error is about.
fn subject_path(subject: &Subject) -> Option<&Path> {
    match subject {
        Subject::File(path) => Some(path),
        _ => None,
    }
}

const LOOK: &str = "look at the path";

/// What to do about a file that is not there or cannot be made: the first directory on the way to it that is missing is named.
pub fn no_folder_hint(path: &Path) -> Cow<'static, str> {
    let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    // A store's name has no directories that anybody makes.
    let is_url = path.to_str().is_some_and(|text| text.contains("://"));
    let is_missing =
        |folder: &&Path| look(folder).is_err_and(|error| Id::of_system(&error) == Id::NotFound);
    let missing = folders.take_while(is_missing).last();
    match missing.filter(|_| !is_url) {
        Some(folder) => {
            format!("there is no directory `{}`: make it, or look at the path", folder.shown())
                .into()
        }
        None => LOOK.into(),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (own, exit, hint) = match &error {
            Error::Io { subject, source } => {
                let hint = match source.raw_os_error() {
                    Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => {
                        return full(error.to_string())
                    }
                    Some(libc::ENAMETOOLONG) => {
                        return Self::new(Id::NameTooLong, &error, TOO_LONG)
                    }
                    Some(libc::ENOENT) => {
                        let hint = subject_path(subject).map_or_else(|| LOOK.into(), no_folder_hint);
                        return Self::new(Id::of_system(source), &error, hint);
                    }
                    Some(libc::EACCES) if of_the_machine(subject) => Some(
                        "the keyring belongs to the system instance: only root changes it, and members of its \
                         group open databases with it; use `sudo`, or an instance of your own in \
                         `PELLUCID_HOME`",
                    ),
                    Some(libc::EACCES) => Some("look at the permissions of the file"),
                    _ => None,
                };
                (Id::of_system(source), exit::FAILED, hint)
            }
            Error::Corrupt { .. } => (
                Id::Corrupt,
                exit::DAMAGE,
                Some("restore a backup; `pellucid check` names what is damaged"),
            ),
            Error::Unauthentic { .. } => (
                Id::Unauthentic,
                exit::DAMAGE,
                Some("somebody or something changed the file; restore a backup"),
            ),
            Error::WrongKind { .. } => (
                Id::NotADatabase,
                exit::FAILED,
                Some("look at the path; `pellucid restore` makes a database of a backup"),
            ),
            Error::Unsupported { cause, .. } => (Id::Unsupported, exit::FAILED, Some(newer(cause))),
            Error::MissingKey { .. } => (
                Id::MissingKey,
                exit::FAILED,
                Some(
                    "bring the key: `--key-file`, `--passphrase-file`, `--online` for a recovery \
                     certificate, or the instance directory with the certificate in `PELLUCID_HOME`",
                ),
            ),
            Error::Message { message, .. } => {
                let mut failure = Failure::new(Id::Message, error.to_string(), hint_for(message.number));
                failure.hint = failure.hint.filter(|hint| !hint.is_empty());
                return failure.number(message.number);
            }
            Error::Replaced { .. } => (Id::Replaced, exit::FAILED, Some(REPLACED)),
            Error::IndexInMemory { .. } => (Id::IndexInMemory, exit::FAILED, Some(INDEX_IN_MEMORY)),
            Error::Misuse { .. } => (Id::Misuse, exit::FAILED, None),
            Error::LimitReached { .. } => (Id::LimitReached, exit::FAILED, None),
            _ => (Id::Failed, exit::FAILED, None),
        };
        let number = error.number();
        let hint = number.map(hint_for).filter(|hint| !hint.is_empty()).or(hint);
        Self { message: error.to_string(), hint: hint.map(str::to_owned), exit, own, number }
    }
}

impl Id {
    /// Which error it is that the system, or a store, refused with.
    pub fn of_system(error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::NotFound => Id::NotFound,
            ErrorKind::PermissionDenied => Id::NoPermission,
            // Of the system's own this is a wrong call.
            ErrorKind::InvalidInput if error.raw_os_error().is_none() => Id::BadName,
            _ => Id::Io,
        }
    }
}

const TOO_LONG: &str =
    "take a shorter name: files beside it have names that are up to 17 bytes longer";

/// Whether SQLite's journal beside a database would have a name that the file system does not take.
fn has_no_room_for_journal(database: &str) -> bool {
    let journal = format!("{database}-journal");
    let looked = pellucid_files::paths::look_at_name(std::path::Path::new(&journal));
    looked.is_err_and(|error| error.raw_os_error() == Some(libc::ENAMETOOLONG))
}

const REPLACED: &str =
    "find out who put the file there; put the expected one back, or accept this one";

/// Whether it lies in the system instance.
fn of_the_machine(subject: &Subject) -> bool {
    let Subject::File(path) = subject else { return false };
    Keyring::configured().is_some_and(|home| path.starts_with(home))
}

/// What to do about one of SQL Server's messages, which say what happened only.
fn hint_for(number: u16) -> &'static str {
    match number {
        3095 | 3098 | 3215 | 3231 => "name another file, or make new media of it with `--format`",
        3241 => "name another file: this one is not a backup that pellucid made, and was not changed",
        4030 => "`--skip` overwrites a backup set that has not expired",
        15151 => "`pellucid cert list` shows the certificates of the keyring",
        15208 => "PEM, DER, PKCS#8, PFX and PVK are read",
        15232 => "choose another name, or drop the certificate that has it",
        15240 => "pellucid does not overwrite a file here: name one that does not exist",
        15317 => "the file is not a backup of that key, or it is damaged",
        15329 => "`--force` goes on and says what is lost",
        15465 => "give the password with `--password-file`",
        15466 => "put back the files of the instance that belong together, or restore a master key",
        15474 => "give the private key that belongs to the certificate",
        15507 => "restore the file from a backup of the instance, or the key from its own backup",
        33107 => "the database is encrypted already; see `pellucid status`",
        33108 => "the database is not encrypted; see `pellucid status`",
        33109 | 33110 => "`pellucid scan status` shows how far it is; try again once it is complete",
        33101 => "import the certificate with its private key",
        15581 => {
            "`pellucid key status` shows what opens the database master key; `pellucid key open` opens \
             it by a password"
        }
        33111 => {
            "bring the certificate: `pellucid cert import`, or the instance directory that has it in \
             `PELLUCID_HOME`"
        }
        _ => "",
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        let message = error.to_string();
        let (id, hint) = match error {
            DatabaseError::Typed(error) => return error.into(),
            DatabaseError::Sqlite { code, file, .. }
                if code & 0xff == 14 && has_no_room_for_journal(&file) =>
            {
                return Failure::new(Id::NameTooLong, format!("`{}`: the name is too long", file.shown()), TOO_LONG)
            }
            DatabaseError::Sqlite { code, .. } => return sqlite_failure(code, message),
            DatabaseError::InUse { .. } => {
                (Id::InUse, "close the other connections to the database, or wait longer with `--timeout`")
            }
            DatabaseError::Scanned { .. } => {
                (Id::Scanned, "`pellucid scan status` shows how far it is")
            }
            DatabaseError::Schema { .. } => (
                Id::Schema,
                "load it with `--load EXTENSION`, or have the application load the extension and call \
                 `SELECT pellucid_encrypt()`; nothing was changed",
            ),
            DatabaseError::Space { .. } => (Id::NoSpace, "make room on the disk and try again; nothing was changed"),
        };
        Failure::new(id, message, hint)
    }
}

/// What to do about something that this version does not read, or refuses for its cost.
fn newer(cause: &str) -> &'static str {
    match cause.contains(ALLOW_COST) {
        true => "if you made the file yourself at that cost, `--allow-cost` opens it; else somebody changed it: restore a backup",
        false => "a newer version of pellucid may read it",
    }
}

/// What to do about a wal-index in memory that is not to be had.
const INDEX_IN_MEMORY: &str =
    "close every connection to the database; `pellucid index DB file` then has the wal-index in the file `-shm`";

/// No room, whoever noticed.
fn full(message: String) -> Failure {
    Failure::new(Id::Full, message, "make room on the disk and try again")
}

/// SQLite's code back to the kinds of the one table.
fn sqlite_failure(code: i32, message: String) -> Failure {
    // What the shim itself reported last, if this is about it: SQLite may have cut the code to its first byte.
    let last = pellucid_host::code::last_report().filter(|last| last.code & 0xff == code & 0xff);
    let ours = last.is_some();
    let number = last.as_ref().and_then(|report| report.number);
    let (code, message) = last.map_or((code, message), |report| (report.code, report.line));
    let (id, exit, hint) = match code & 0xff {
        26 => (
            Id::NotADatabase,
            exit::FAILED,
            "the file is neither an SQLite database nor an encrypted one: look at the path",
        ),
        14 if code == pellucid_host::ffi::CANTOPEN_INDEX => {
            (Id::IndexInMemory, exit::FAILED, INDEX_IN_MEMORY)
        }
        23 if code == pellucid_host::ffi::AUTH_REPLACED => (Id::Replaced, exit::FAILED, REPLACED),
        23 => (
            Id::MissingKey,
            exit::FAILED,
            "bring the key: `--key-file`, `--passphrase-file`, `--online` for a recovery \
             certificate, or the instance directory with the certificate in `PELLUCID_HOME`",
        ),
        5 | 6 => (
            Id::InUse,
            exit::FAILED,
            "close the other connections to the database, or wait longer with `--timeout`",
        ),
        11 => {
            (Id::Corrupt, exit::DAMAGE, "restore a backup; `pellucid check` names what is damaged")
        }
        10 if code == pellucid_host::ffi::IOERR_DATA => (
            Id::Unauthentic,
            exit::DAMAGE,
            "somebody or something changed the file; restore a backup",
        ),
        13 => return full(message),
        14 if ours => (Id::Unsupported, exit::FAILED, newer(&message)),
        14 => (Id::CannotOpen, exit::FAILED, "look at the path and its permissions"),
        8 if ours => (Id::Unsupported, exit::FAILED, "a newer version of pellucid may change it"),
        8 => (Id::ReadOnly, exit::FAILED, "the file or its directory cannot be written"),
        _ => (Id::Sqlite, exit::FAILED, "nothing was changed"),
    };
    let hint = number.map(hint_for).filter(|hint| !hint.is_empty()).unwrap_or(hint);
    Failure { exit, number, ..Failure::new(id, message, hint) }
}
