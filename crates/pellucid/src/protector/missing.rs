//! The key that a protector lacks, and the error text that names each way to open the file.

use super::Purpose;
use crate::error::Error;
use crate::message::CERTIFICATE_NOT_FOUND;

/// Why a protector does not open.
#[derive(Debug)]
pub(super) enum Closed {
    /// Its key is not at hand, or another one is. The next protector is tried.
    Missing(Missing),
    /// What has its key does not answer as it should. The next protector is tried, and this is told if none opens.
    Trouble(Error),
    /// Any other error.
    Failed(Error),
}

impl From<Error> for Closed {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The key that a protector lacks.
#[derive(Debug)]
pub(super) enum Missing {
    /// No key file was given.
    KeyFile,
    /// None of the given key files opens the protector.
    WrongKeyFile,
    /// No passphrase was given.
    Passphrase,
    /// None of the given passphrases opens the protector.
    WrongPassphrase,
    /// The certificate is for recovery, and the caller did not allow recovery. The name is a hint.
    NotAllowed { name: String },
    /// The keyring lacks the certificate.
    Certificate { name: String, thumbprint: [u8; 32], recovery: bool },
    /// The keyring has the certificate without the companion of this SHA-256 thumbprint, or with an `other` one.
    Companion { name: String, companion: [u8; 32], other: Option<[u8; 32]> },
    /// The keyring has the certificate, or may have it, and cannot use it for this reason.
    Unusable { name: String, recovery: bool, cause: String },
}

impl Missing {
    /// Describes what is wrong with a key that was given.
    fn wrong(&self) -> Option<&'static str> {
        match self {
            Self::WrongKeyFile => Some("wrong key: the key file given does not open it"),
            Self::WrongPassphrase => {
                Some("wrong passphrase: the passphrase given does not open it")
            }
            _ => None,
        }
    }

    /// Names the key that opens the protector, and how a user gives it. `None` for a key that was
    /// given and is wrong.
    fn way(&self, purpose: Purpose) -> Option<String> {
        let way = match self {
            Self::WrongKeyFile | Self::WrongPassphrase => return None,
            Self::KeyFile => {
                "a key file (`--key-file`, `PELLUCID_KEY_FILE` or the URI's `key_file=`)".into()
            }
            Self::Passphrase if purpose == Purpose::Bundle => {
                "a password (`--password-file`)".into()
            }
            Self::Passphrase => {
                "a passphrase (`--passphrase-file`, `PELLUCID_PASSPHRASE_FILE` or the URI's \
                 `passphrase_file=`)"
                    .into()
            }
            Self::NotAllowed { name } => {
                format!("recovery certificate `{name}` (`--online` or `PELLUCID_RECOVERY=1`)")
            }
            Self::Certificate { name, recovery, .. } => {
                format!("{} `{name}`, which is not in the keyring", kind(*recovery))
            }
            Self::Companion { name, other: None, .. } => {
                format!("hybrid certificate `{name}`, whose companion key is not in the keyring")
            }
            Self::Companion { name, .. } => {
                format!("hybrid certificate `{name}` with another companion key than the keyring's")
            }
            Self::Unusable { name, recovery, .. } => {
                format!("{} `{name}`, which cannot be used", kind(*recovery))
            }
        };
        Some(way)
    }

    /// Says why the keyring does not hand out the certificate.
    fn reason(&self) -> Option<String> {
        match self {
            Self::Certificate { thumbprint, .. } => Some(not_found(thumbprint)),
            Self::Companion { name, companion, other } => {
                Some(no_companion(name, companion, other))
            }
            Self::Unusable { name, recovery: false, cause } => {
                Some(sentence(&format!("Certificate `{name}`: {cause}")))
            }
            Self::Unusable { name, recovery: true, cause } => {
                Some(sentence(&format!("Recovery certificate `{name}`: {cause}")))
            }
            _ => None,
        }
    }

    /// Describes the key that this protector lacks, for an error about it alone.
    pub(super) fn of_one(&self, purpose: Purpose) -> String {
        match self {
            Self::Certificate { name, thumbprint, .. } => {
                format!("certificate `{name}` is not in the keyring: {}", not_found(thumbprint))
            }
            Self::Unusable { cause, .. } => cause.clone(),
            _ => text(std::slice::from_ref(self), purpose),
        }
    }
}

/// Writes the text of the error for a file or backup set that no protector opens: the wrong keys
/// first, or that there is no key, then each other key that opens it.
pub(super) fn text(missing: &[Missing], purpose: Purpose) -> String {
    if missing.is_empty() {
        return "the header has no protector".to_owned();
    }
    let wrong: Vec<&str> = missing.iter().filter_map(Missing::wrong).collect();
    let mut text = match wrong.is_empty() {
        true => "no key for it".to_owned(),
        false => wrong.join("; "),
    };
    let mut ways = Vec::new();
    for way in missing.iter().filter_map(|one| one.way(purpose)) {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    if ways.is_empty() {
        return text;
    }
    text.push_str(if wrong.is_empty() { ". It opens with " } else { ". It also opens with " });
    text.push_str(&ways.join(", or with "));
    let reasons = missing.iter().filter_map(Missing::reason);
    let mut missing = missing.iter().filter(|one| one.wrong().is_none());
    if let (Some(Missing::Unusable { cause, .. }), None) = (missing.next(), missing.next()) {
        return sentence(&format!("{text}: {cause}"));
    }
    text.push('.');
    for reason in reasons {
        text.push(' ');
        text.push_str(&reason);
    }
    text
}

fn kind(recovery: bool) -> &'static str {
    if recovery {
        "recovery certificate"
    } else {
        "certificate"
    }
}

/// SQL Server's message 33111.
fn not_found(thumbprint: &[u8; 32]) -> String {
    let thumbprint = format!("0x{}", crate::hash::hex(thumbprint).to_uppercase());
    CERTIFICATE_NOT_FOUND.with_all(&["certificate", &thumbprint]).into_owned()
}

/// Names the companion that is missing, and where it is to be had.
fn no_companion(name: &str, companion: &[u8; 32], other: &Option<[u8; 32]>) -> String {
    let way = match other {
        // A certificate has one companion: two were made, on two instances.
        Some(other) => format!(
            "The keyring's has another one, {}: a copy of the certificate exported where the set was made opens it in an instance of \
             its own (`PELLUCID_HOME=DIRECTORY pellucid cert import {name}`).",
            crate::hash::hex(other)
        ),
        None => format!(
            "Only a copy of the certificate exported after that key was added opens it: `pellucid cert import {name}` with both its \
             files, or `pellucid instance import`."
        ),
    };
    format!(
        "The ML-KEM-768 key with SHA-256 thumbprint {} is missing. {way}",
        crate::hash::hex(companion)
    )
}

fn sentence(text: &str) -> String {
    match text.ends_with('.') {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}
