//! The plan of a backup. Each rule about it is here once, for the program and the statements.

use std::path::PathBuf;
use std::time::Duration;

use pellucid::header::Standing;
use pellucid::media::{Compression, ServerFacts};
use pellucid::{message, Algorithm, Error, Result};
use pellucid_keyring::Keyring;
use pellucid_vfs::seal_request::Protection;

use super::overwrite::{Existing, Rules};
use super::targets::Files;

const DAY_SECONDS: u64 = 86_400;

/// A backup to be made: of which database, to which files, and how.
#[derive(Debug, Clone)]
pub struct Job {
    /// The database.
    pub database: PathBuf,
    /// The file id that the database has to have, encrypted, when it is opened; `None` for whatever lies there.
    pub file_id: Option<[u8; 16]>,
    /// The database's name; `None` for that of its file, without the extension.
    pub database_name: Option<String>,
    /// The user who makes it; `None` for the one in the environment.
    pub user: Option<String>,
    /// The facts that a server adds.
    pub server: ServerFacts,
    /// The files of the media.
    pub files: Files,
    /// The rules for existing files.
    pub rules: Rules,
    /// The protectors of the set. If empty, those of a sealed database, and none for a plain one.
    pub protections: Vec<Protection>,
    /// The algorithm that seals the set, if it is sealed.
    pub algorithm: Algorithm,
    /// The compression.
    pub compression: Compression,
    /// The level of the compression.
    pub level: i32,
    /// Threads that compress and seal.
    pub workers: usize,
    /// The media of the full set that a differential is compared with; `None` for a full backup.
    pub differential: Option<Vec<PathBuf>>,
    /// Backs up the log; `None` for the database.
    pub log: Option<LogJob>,
    /// No differential will be based on it. Of a log: the next log backup has the same commits once more.
    pub copy_only: bool,
    /// Does not sign the set, so that new media of it are of version 1, which 0.1.0 reads.
    pub unsigned: bool,
    /// Pads the set to a size class.
    pub padded: bool,
    /// When the set expires, in seconds since 1970; 0 for never.
    pub expires: u64,
    /// The name of the set, for people.
    pub name: String,
    /// The description of the set, by the administrator.
    pub description: String,
    /// The name of a new media set.
    pub media_name: String,
    /// The description of a new media set.
    pub media_description: String,
    /// Reads through the transaction even if that keeps writers waiting.
    pub no_spool: bool,
    /// Continues at damaged pages, which become zeros and are listed.
    pub continue_after_error: bool,
    /// How long to wait for a lock.
    pub timeout: Duration,
}

/// What only a backup of the log is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogJob {
    /// Leaves the log as it is, as copy-only, and makes its tail of the log and its archive alone where the database file cannot be
    /// used.
    pub no_truncate: bool,
    /// Takes the tail: behind it nobody commits, because the database gets this standing.
    pub leave: Standing,
    /// Puts the set by one request, if its file is an object: nothing is asked before that.
    pub whole: bool,
    /// Is one of many: the event log gets no line of it.
    pub routine: bool,
}

/// The time for which the files may not be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// They may be overwritten at once.
    None,
    /// That many days from now.
    Days(u64),
    /// Through the whole of the day that begins then, in seconds since 1970.
    ThroughDay(i64),
    /// Until then, in seconds since 1970.
    Until(u64),
}

impl Retention {
    /// The end of the time in seconds since 1970. 0 if there is none.
    pub fn ends(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Days(days) => {
                pellucid::clock::now().saturating_add(days.saturating_mul(DAY_SECONDS))
            }
            Self::ThroughDay(day) => u64::try_from(day).unwrap_or(0) + DAY_SECONDS - 1,
            Self::Until(end) => end,
        }
    }
}

impl Job {
    /// Plans a full backup of `database` to `files`: compressed at level 1, sealed under the
    /// database's protectors, on as many threads as there are processors, over no existing file.
    pub fn new(database: PathBuf, files: Files) -> Self {
        Self {
            database,
            file_id: None,
            database_name: None,
            user: None,
            server: ServerFacts::default(),
            files,
            rules: Rules { existing: Existing::Refuse, skip: false, parity: false },
            protections: Vec::new(),
            algorithm: Algorithm::Aes256,
            compression: Compression::Zstd,
            level: 1,
            workers: processors(),
            differential: None,
            log: None,
            copy_only: false,
            unsigned: false,
            padded: false,
            expires: 0,
            name: String::new(),
            description: String::new(),
            media_name: String::new(),
            media_description: String::new(),
            no_spool: false,
            continue_after_error: false,
            timeout: Duration::from_secs(10),
        }
    }

    /// Protects the set by a certificate of the keyring. False if its private key was never backed
    /// up: if the keyring is lost, the set cannot be opened then.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if it or its private key is not in the keyring; the message of an
    /// expired certificate.
    pub fn seal_under(&mut self, keyring: &Keyring, name: &str) -> Result<bool> {
        let certificate = keyring.certificate(name)?;
        let now = i64::try_from(pellucid::clock::now()).unwrap_or(i64::MAX);
        if certificate.public().validity().1 < now {
            return Err(Error::message(message::BACKUP_CERTIFICATE_EXPIRED, ""));
        }
        self.protections.push(Protection::Certificate(Some(name.to_owned())));
        Ok(!certificate.needs_backup())
    }

    /// Sets for how long the files may not be overwritten.
    pub fn keep(&mut self, retention: Retention) {
        self.expires = retention.ends();
    }
}

/// The number of processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
