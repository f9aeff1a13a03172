//! The service master key under a passphrase: `service.sealed`, a password file, in the place of `service.key`.
//!
//! The passphrase lies in a file elsewhere, which `PELLUCID_SERVICE_PASSPHRASE_FILE` names to each process that opens the
//! keyring. A `service.key` that is there comes first: binding removes it last.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use aws_lc_rs::digest;
use pellucid::error::{Error, Result, Subject};
use pellucid::protector::Passphrase;
use pellucid::secret::Secret32;
use pellucid::shown::Shown;
use pellucid_files::trusted::Guard;

use super::instance::{self, group};
use super::password_file::{self, MasterKey, FILE_BYTES};

/// Names the file with the passphrase.
pub const PASSPHRASE_FILE: &str = "PELLUCID_SERVICE_PASSPHRASE_FILE";

/// SHA-256 of a sealed file, and which passphrase opened it.
type Identity = ([u8; 32], [u8; 32]);

/// The key that was opened last: each open of a keyring asks for it, and the derivation is made to take long.
static OPENED: Mutex<Option<(Identity, Secret32)>> = Mutex::new(None);

/// Where it lies.
pub(super) fn path(home: &Path) -> PathBuf {
    home.join("service.sealed")
}

/// The key, by the passphrase that the environment names; none if there is no such file.
pub(super) fn read(home: &Path) -> Result<Option<Secret32>> {
    let Some(bytes) = read_bytes(home)? else { return Ok(None) };
    let Some(named) = std::env::var_os(PASSPHRASE_FILE).filter(|named| !named.is_empty()) else {
        return Err(Error::missing_key(
            Subject::Key("service master key"),
            format!(
                "it is bound to a passphrase (`{}`): name the file that has it in `{PASSPHRASE_FILE}`",
                path(home).shown()
            ),
        ));
    };
    open(&bytes, &pellucid_files::secrets::passphrase(Path::new(&named))?).map(Some)
}

fn read_bytes(home: &Path) -> Result<Option<Vec<u8>>> {
    let path = path(home);
    let guard = Guard::Secret { what: "the sealed service master key", group: group(home) };
    let Some(file) = instance::open(&path, guard)? else { return Ok(None) };
    let mut bytes = Vec::with_capacity(FILE_BYTES + 1);
    match file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) => Err(Error::io(Subject::File(path), error)),
    }
}

/// Opens what lies there by `passphrase`, whatever was opened before: the proof that it does.
pub(super) fn prove(home: &Path, passphrase: &Passphrase) -> Result<Option<Secret32>> {
    match read_bytes(home)? {
        Some(bytes) => password_file::open(MasterKey::Service, &bytes, passphrase).map(Some),
        None => Ok(None),
    }
}

fn open(bytes: &[u8], passphrase: &Passphrase) -> Result<Secret32> {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    let identity = (sum, passphrase.identity());
    let mut opened = OPENED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((known, key)) = opened.as_ref() {
        if *known == identity {
            return Ok(key.clone());
        }
    }
    let key = password_file::open(MasterKey::Service, bytes, passphrase)?;
    *opened = Some((identity, key.clone()));
    Ok(key)
}
