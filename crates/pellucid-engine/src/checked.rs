//! Lets the keyring remember what a check has found. An audit itself writes nothing.

use std::path::Path;

use pellucid::Result;
use pellucid_keyring::{Check, CheckFound, Keyring};

use crate::audit::Audit;
use crate::inspect::Kind;

/// The findings of an audit, as the keyring remembers them.
pub fn found(audit: &Audit, pages_only: bool) -> CheckFound {
    let of_content = audit.integrity.len() + audit.orphans.len();
    let damaged =
        audit.damaged_pages.len() + audit.damaged_frames.len() + audit.damaged_records.len();
    CheckFound {
        pages_only,
        in_part: !audit.unchecked.is_empty(),
        findings: u32::try_from(of_content + damaged).unwrap_or(u32::MAX),
        of_content: of_content > 0,
        pages: audit.damaged_pages.iter().map(|page| page.page).collect(),
    }
}

/// The file id that the keyring remembers a check under; none of a file whose header cannot be read: `status` tells of that
/// by itself.
pub fn identity(kind: &Kind) -> Option<[u8; 16]> {
    match kind {
        Kind::Sealed(sealed) => Some(sealed.header.file_id),
        Kind::Plain => Some([0; 16]),
        _ => None,
    }
}

/// A check that has begun, with what the keyring knew then: it says nothing of damage that another one finds meanwhile.
#[derive(Debug)]
pub struct Begun(Option<Check>);

impl Begun {
    /// A check of the database at `path` that looks at it from now on.
    pub fn now(path: &Path) -> Self {
        let keyring = Keyring::locate().ok().filter(|home| Keyring::is_at(home));
        let keyring = keyring.and_then(|home| Keyring::open(&home).ok());
        Self(keyring.and_then(|keyring| keyring.begin_check(path)))
    }

    /// Remembers that it has ended now, and was of this [`identity`]; false if there is no keyring.
    ///
    /// # Errors
    /// What keeps the keyring from being read or written. That is no reason for a check to fail.
    pub fn remember(self, path: &Path, identity: &[u8; 16], found: &CheckFound) -> Result<bool> {
        let home = Keyring::locate()?;
        if !Keyring::is_at(&home) {
            return Ok(false);
        }
        let (begun, now) = (self.0.as_ref(), pellucid::clock::now());
        Keyring::open(&home)?.remember_check(path, identity, begun, found, now)?;
        Ok(true)
    }
}
