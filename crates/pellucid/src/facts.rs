//! The facts that a header states about a database's key, for every part that shows them: in the
//! names and numbers of SQL Server's `sys.dm_database_encryption_keys`, and the protectors in words.
//!
//! Reading them needs no key, and nothing here is authenticated: a program that can write the file
//! can write any facts into it.

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::hash::hex;
use crate::header::{Dates, Header};
use crate::protector::Protector;
use crate::shown::Shown;

/// A row of the view.
#[derive(Debug)]
pub struct KeyFacts {
    /// `encryption_state`; 0 for a plain database.
    pub state: u8,
    /// `encryption_state_desc`.
    pub state_description: &'static str,
    /// `create_date` and the others; `None` for a plain database.
    pub dates: Option<Dates>,
    /// `key_algorithm` and `key_length`; `None` for a plain database and for an algorithm that this
    /// version does not know.
    pub key: Option<(&'static str, u16)>,
    /// `encryptor_type` and `encryptor_thumbprint`; `None` if no protector is of a type that this
    /// version knows.
    pub encryptor: Option<Encryptor>,
    /// `percent_complete`.
    pub percent: f32,
    /// `encryption_scan_state`.
    pub scan_state: u8,
    /// `encryption_scan_state_desc`.
    pub scan_description: &'static str,
    /// Its protectors, in the order of the header.
    pub openers: Vec<Opener>,
}

/// The protector that the view shows for the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encryptor {
    /// `CERTIFICATE`, `PASSPHRASE` or `KEY FILE`.
    pub kind: &'static str,
    /// The SHA-256 thumbprint of a certificate.
    pub thumbprint: Option<[u8; 32]>,
}

/// One protector of a header.
#[derive(Debug)]
pub struct Opener(Result<Protector, Error>);

impl KeyFacts {
    /// The facts of a container. `percent` is the progress of its scan, if one is under way.
    pub fn of(header: &Header, percent: Option<f32>) -> Self {
        let openers: Vec<Opener> = header
            .protectors
            .iter()
            .map(|bytes| Opener(Protector::decode(bytes).map(|(protector, _)| protector)))
            .collect();
        Self {
            state: header.state as u8,
            state_description: header.state.description(),
            dates: Some(header.dates()),
            key: header.algorithm().ok().map(key),
            encryptor: encryptor(&openers),
            percent: percent.unwrap_or(0.0),
            scan_state: header.scan.state as u8,
            scan_description: header.scan.state.description(),
            openers,
        }
    }

    /// The facts of a database without a key.
    pub const fn of_plain() -> Self {
        Self {
            state: 0,
            state_description: "NONE",
            dates: None,
            key: None,
            encryptor: None,
            percent: 0.0,
            scan_state: 0,
            scan_description: "NONE",
            openers: Vec::new(),
        }
    }
}

/// `key_algorithm` and `key_length` of `algorithm`.
pub const fn key(algorithm: Algorithm) -> (&'static str, u16) {
    match algorithm {
        Algorithm::Aes128 => ("AES", 128),
        Algorithm::Aes192 => ("AES", 192),
        Algorithm::Aes256 => ("AES", 256),
        Algorithm::TripleDes3Key => (algorithm.name(), 192),
        Algorithm::Aegis256 => ("AEGIS", 256),
    }
}

/// Returns the first certificate, else the first other protector. A recovery protector opens only
/// on request, so it counts only if there is nothing else.
fn encryptor(openers: &[Opener]) -> Option<Encryptor> {
    let known = openers.iter().filter_map(|opener| opener.0.as_ref().ok());
    let first = known.min_by_key(|protector| match protector {
        Protector::Certificate(found) if found.is_recovery() => 2,
        Protector::Certificate(_) => 0,
        Protector::KeyFile(_) | Protector::Passphrase(_) => 1,
    })?;
    Some(match first {
        Protector::Certificate(found) => {
            Encryptor { kind: found.encryptor_type(), thumbprint: Some(*found.thumbprint()) }
        }
        Protector::KeyFile(_) => Encryptor { kind: "KEY FILE", thumbprint: None },
        Protector::Passphrase(_) => Encryptor { kind: "PASSPHRASE", thumbprint: None },
    })
}

impl Opener {
    /// Whether it opens the database only on request.
    pub fn is_recovery(&self) -> bool {
        matches!(&self.0, Ok(Protector::Certificate(found)) if found.is_recovery())
    }

    /// Describes it in one line with all facts, for a list of protectors.
    pub fn describe(&self) -> String {
        self.told(Protector::describe)
    }

    /// Describes it in one short line, for a column.
    pub fn describe_shortly(&self) -> String {
        self.told(|protector| match protector {
            Protector::Certificate(found) => {
                let print = hex(&found.thumbprint()[..8]);
                format!("{} `{}` ({print}..)", protector.kind_name(), found.name().shown())
            }
            other => other.describe(),
        })
    }

    fn told(&self, words: impl Fn(&Protector) -> String) -> String {
        match &self.0 {
            Ok(protector) if self.is_recovery() => format!("for recovery: {}", words(protector)),
            Ok(protector) => words(protector),
            Err(error) => error.to_string(),
        }
    }
}
