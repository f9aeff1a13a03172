//! What a backup is to be. Each rule about that is here once, for the program and the statements.

use std::path::PathBuf;
use std::time::Duration;

use pellucid::media::{Compression, ServerFacts};
use pellucid::{message, Algorithm, Error, Result};
use pellucid_keyring::Keyring;
use pellucid_vfs::seal_request::Protection;

use super::overwrite::{Existing, Rules};
use super::targets::Files;

const DAY_SECONDS: u64 = 86_400;

/// What is to be backed up, and how.
#[derive(Debug, Clone)]
pub struct Job {
    /// The database.
    pub database: PathBuf,
    /// What it is called; none: as its file, without the extension.
    pub database_name: Option<String>,
    /// Who makes it; none: as the environment says.
    pub user: Option<String>,
    /// What a server knows of it.
    pub server: ServerFacts,
    /// Where to.
    pub files: Files,
    /// What to do with files that are there.
    pub rules: Rules,
    /// Who can open the set; none: who can open a sealed database, and nobody needs to for a plain one.
    pub protections: Vec<Protection>,
    /// How it is sealed, if it is.
    pub algorithm: Algorithm,
    /// How it is compressed.
    pub compression: Compression,
    /// The level of that.
    pub level: i32,
    /// Threads that compress and seal.
    pub workers: usize,
    /// The media of the full set that a differential is compared with; none: a full backup.
    pub differential: Option<Vec<PathBuf>>,
    /// No differential will be based on it.
    pub copy_only: bool,
    /// Seconds since 1970; 0 for never.
    pub expires: u64,
    /// Names for people: of the set, and of the media set if it is new.
    pub name: String,
    /// What the administrator says of it.
    pub description: String,
    /// The name of a new media set.
    pub media_name: String,
    /// The description of a new media set.
    pub media_description: String,
    /// Read through the transaction even where it keeps writers waiting.
    pub no_spool: bool,
    /// Damaged pages become zeros and are listed.
    pub continue_after_error: bool,
    /// How long to wait for a lock.
    pub timeout: Duration,
}

/// How long files may not be overwritten for this backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// They may be at once.
    None,
    /// So many days from now.
    Days(u64),
    /// Through the whole of the day that begins then, in seconds since 1970.
    ThroughDay(i64),
    /// Until then, in seconds since 1970.
    Until(u64),
}

impl Retention {
    /// When it ends, in seconds since 1970; 0 for never begun.
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
    /// A full backup of `database` to `files`: compressed at level 1, sealed for whoever can open the database, on as many
    /// threads as there are processors, over nothing that is there.
    pub fn new(database: PathBuf, files: Files) -> Self {
        Self {
            database,
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
            copy_only: false,
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

    /// Has a certificate of the keyring open the set. False if its private key was never backed up: then nobody can open the
    /// set once the keyring is lost.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if it or its private key is not in the keyring; the message that it has expired.
    pub fn seal_under(&mut self, keyring: &Keyring, name: &str) -> Result<bool> {
        let certificate = keyring.certificate(name)?;
        let now = i64::try_from(pellucid::clock::now()).unwrap_or(i64::MAX);
        if certificate.public().validity().1 < now {
            return Err(Error::message(message::BACKUP_CERTIFICATE_EXPIRED, ""));
        }
        self.protections.push(Protection::Certificate(Some(name.to_owned())));
        Ok(certificate.backed_up().is_some())
    }

    /// Keeps its files from being overwritten.
    pub fn keep(&mut self, retention: Retention) {
        self.expires = retention.ends();
    }
}

/// How many processors there are.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
