//! Errors as typed facts, grouped by who must act.
//!
//! Wording: lower case, the thing first, no final stop (`page 17: authentication tag does not match`);
//! a text of several sentences has its stops.
//! No error carries key material or plaintext, and none says *why* a tag failed. Each is shown in one
//! line, without the control characters of the names in it ([`crate::shown`]).

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use crate::message::Message;
use crate::shown::{printable, Shown};

/// What an [`Error`] is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A file as a whole.
    File(PathBuf),
    /// The container. The caller knows the file's name and puts it before the text.
    Container,
    /// Sector 0 of a container (docs/format.md, "Sector 0").
    SectorZero,
    /// One of the two header copies, 0 or 1.
    HeaderCopy(u8),
    /// A wear sector.
    Wear,
    /// The archive of logs beside a database.
    LogArchive,
    /// A database page; numbers start at 1.
    Page(u32),
    /// The header of a WAL.
    WalHeader,
    /// A WAL frame; numbers start at 1.
    Frame(u32),
    /// The header of a rollback journal segment, by its offset in bytes.
    JournalHeader(u64),
    /// A rollback journal record, by the page that it keeps and its offset in bytes.
    JournalRecord { page: u32, offset: u64 },
    /// A block of a temporary file.
    TempBlock(u64),
    /// The media header of a media family.
    MediaHeader,
    /// A backup set, by its position on its media; positions start at 1.
    BackupSet(u32),
    /// A chunk of a backup set; numbers start at 0.
    Chunk(u64),
    /// The index of a backup set.
    Index,
    /// The list of commits of a log set.
    Commits,
    /// The padding of a backup set.
    Padding,
    /// The manifest at the end of a backup set, which commits the set.
    Manifest,
    /// A certificate of the keyring, by name.
    Certificate(String),
    /// A protector of a DEK, by its place in the header, from 1.
    Protector(usize),
    /// A named key of the keyring ("service master key", "database master key").
    Key(&'static str),
    /// An option or argument, by name.
    Option(Cow<'static, str>),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::File(path) => write!(f, "`{}`", path.shown()),
            Subject::Container => f.write_str("container"),
            Subject::SectorZero => f.write_str("sector 0"),
            Subject::HeaderCopy(n) => write!(f, "header copy {n}"),
            Subject::Wear => f.write_str("wear sector"),
            Subject::LogArchive => f.write_str("log archive"),
            Subject::Page(n) => write!(f, "page {n}"),
            Subject::WalHeader => f.write_str("WAL header"),
            Subject::Frame(n) => write!(f, "WAL frame {n}"),
            Subject::JournalHeader(offset) => write!(f, "journal header at byte {offset}"),
            Subject::JournalRecord { page, offset } => {
                write!(f, "journal record of page {page} at byte {offset}")
            }
            Subject::TempBlock(n) => write!(f, "temporary block {n}"),
            Subject::MediaHeader => f.write_str("media header"),
            Subject::BackupSet(n) => write!(f, "backup set {n}"),
            Subject::Chunk(n) => write!(f, "chunk {n}"),
            Subject::Index => f.write_str("index"),
            Subject::Commits => f.write_str("commits"),
            Subject::Padding => f.write_str("padding"),
            Subject::Manifest => f.write_str("manifest"),
            Subject::Certificate(name) => write!(f, "certificate `{}`", name.shown()),
            Subject::Protector(n) => write!(f, "protector {n}"),
            Subject::Key(name) => f.write_str(name),
            Subject::Option(name) => write!(f, "`{}`", name.shown()),
        }
    }
}

/// The text of a cause; static where it can be.
pub type Cause = Cow<'static, str>;

/// An error, by who must act on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write. An administrator looks at the disk, the
    /// permissions and the space.
    #[error("{subject}: {}", printable(&source.to_string()))]
    Io { subject: Subject, source: std::io::Error },
    /// The structure is wrong: the file is damaged, or not of this format.
    #[error("{subject}: {}", printable(cause))]
    Corrupt { subject: Subject, cause: Cause },
    /// The structure is right but a tag does not match: the file is damaged, or somebody changed it.
    #[error("{subject}: {}", printable(cause))]
    Unauthentic { subject: Subject, cause: Cause },
    /// The file is of another kind than the one asked for, and whole for all that is known: a wrong name. The caller knows the
    /// file's name and puts it before the text.
    #[error("{}{}", before_cause(.subject), printable(cause))]
    WrongKind { subject: Subject, cause: Cause },
    /// A newer format, an unknown algorithm, or a cost that this version refuses.
    #[error("{subject}: {}", printable(cause))]
    Unsupported { subject: Subject, cause: Cause },
    /// No protector could be opened with the keys at hand. The caller puts the file's name before the
    /// text, so that [`Subject::Container`] is left out.
    #[error("{}{}", before_cause(.subject), printable(cause))]
    MissingKey { subject: Subject, cause: Cause },
    /// Another file lies at a path than the keyring, or the caller, expects there: find out who put it there, or accept it.
    #[error("{}{}", before_cause(.subject), printable(cause))]
    Replaced { subject: Subject, cause: Cause },
    /// The wal-index in the machine's memory is not to be had here, or is not this connection's: another machine, container or
    /// account has the database open, or the memory cannot be used. The caller knows the file's name.
    #[error("{}", printable(cause))]
    IndexInMemory { cause: Cause },
    /// The caller's request is not allowed.
    #[error("{subject}: {}", printable(cause))]
    Misuse { subject: Subject, cause: Cause },
    /// A message of SQL Server's, which administrators know by its number.
    #[error("{}", printable(text))]
    Message { message: Message, text: Cause },
    /// A stated limit is reached, such as the number of protectors or of writes under one key.
    #[error("{subject}: {}", printable(cause))]
    LimitReached { subject: Subject, cause: Cause },
}

/// The beginning of the text of an error that is about the file as a whole.
fn before_cause(subject: &Subject) -> String {
    match subject {
        Subject::Container | Subject::MediaHeader => String::new(),
        _ => format!("{subject}: "),
    }
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes the error of a wrong structure.
    pub fn corrupt(subject: Subject, cause: impl Into<Cause>) -> Self {
        Error::Corrupt { subject, cause: cause.into() }
    }

    /// Makes the error of a tag that does not match. The cause never says why it does not match.
    pub fn unauthentic(subject: Subject, cause: impl Into<Cause>) -> Self {
        Error::Unauthentic { subject, cause: cause.into() }
    }

    /// Makes the error of a file of another kind.
    pub fn wrong_kind(subject: Subject, cause: impl Into<Cause>) -> Self {
        Error::WrongKind { subject, cause: cause.into() }
    }

    /// Makes the error of an unknown version or algorithm, or of a refused cost.
    pub fn unsupported(subject: Subject, cause: impl Into<Cause>) -> Self {
        Error::Unsupported { subject, cause: cause.into() }
    }

    /// Makes the error of a `what` with a `number` that this version does not know. `reserved` are
    /// the numbers that a later version gives a meaning.
    pub(crate) fn unknown(subject: Subject, what: &str, number: u8, reserved: &[u8]) -> Self {
        let why = match reserved.contains(&number) {
            true => "reserved: a newer version of pellucid made it",
            false => "not known to this version",
        };
        Self::unsupported(subject, format!("{what} {number} is {why}"))
    }

    /// Makes the error of a file that no key at hand opens.
    pub fn missing_key(subject: Subject, cause: impl Into<Cause>) -> Self {
        Error::MissingKey { subject, cause: cause.into() }
    }

    /// Makes the error of another file than the expected one.
    pub fn replaced(subject: Subject, cause: impl Into<Cause>) -> Self {
        Error::Replaced { subject, cause: cause.into() }
    }

    /// Names the file at `path` where the error of another file than the expected one names no file. A caller that opens none
    /// knows which one it is.
    #[must_use]
    pub fn of_file(self, path: &std::path::Path) -> Self {
        match self {
            Error::Replaced { subject: Subject::Container, cause } => {
                Error::Replaced { subject: Subject::File(path.to_owned()), cause }
            }
            error => error,
        }
    }

    /// Makes the error of SQL Server's message, with its argument.
    pub fn message(message: Message, argument: &str) -> Self {
        Error::Message { message, text: message.with(argument) }
    }

    /// Returns SQL Server's number, if the error is one of its messages or its text contains one.
    /// The text of a missing key contains one beside others if several protectors lack a key.
    pub fn number(&self) -> Option<u16> {
        match self {
            Error::Message { message, .. } => Some(message.number),
            Error::MissingKey { cause, .. } | Error::Unauthentic { cause, .. } => {
                let told = crate::message::TOLD_WITHIN.iter();
                told.copied().find(|message| message.is_told_by(cause)).map(|found| found.number)
            }
            _ => None,
        }
    }

    /// Makes the error of a wal-index in memory that this connection cannot use.
    pub fn index_in_memory(cause: impl Into<Cause>) -> Self {
        Error::IndexInMemory { cause: cause.into() }
    }

    /// Makes the error of a request that is not allowed.
    pub fn misuse(subject: Subject, cause: impl Into<Cause>) -> Self {
        Error::Misuse { subject, cause: cause.into() }
    }

    /// Makes the error of a limit that is reached.
    pub fn limit(subject: Subject, cause: impl Into<Cause>) -> Self {
        Error::LimitReached { subject, cause: cause.into() }
    }

    /// Makes the error of the operating system about `subject`.
    pub fn io(subject: Subject, source: std::io::Error) -> Self {
        Error::Io { subject, source }
    }
}
