//! Secrets that lie in small files of their own: key files and passphrases.

use std::io::Read;
use std::path::Path;

use pellucid::protector::{KeyFile, Passphrase};
use pellucid::{Error, Result, Subject};
use zeroize::Zeroizing;

use crate::trusted::{self, Guard};

/// No secret file is longer.
const SECRET_FILE_BYTES: usize = 4096;

/// Reads a small secret file that nobody else can read or could have put there.
///
/// # Errors
/// [`Error::Misuse`] if somebody can, [`Error::Io`] if it cannot be read.
pub fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let io = |error| Error::io(Subject::File(path.to_owned()), error);
    let mut file = trusted::open(path, Guard::Secret { what: "this secret", group: None })?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(SECRET_FILE_BYTES));
    file.by_ref().take(SECRET_FILE_BYTES as u64).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// Reads a key file: 32 raw bytes, or 64 hexadecimal digits and at most a line end.
///
/// # Errors
/// [`Error::Misuse`] if others can read it or its length is another; [`Error::Io`] if it cannot be read.
pub fn key_file(path: &Path) -> Result<KeyFile> {
    KeyFile::parse(&read_private(path)?).ok_or_else(|| {
        Error::misuse(
            Subject::File(path.to_owned()),
            "not a key file: 32 raw bytes or 64 hexadecimal digits are expected",
        )
    })
}

/// Reads the first line of a file that nobody else can read.
///
/// # Errors
/// [`Error::Misuse`] if others can read it or it is empty; [`Error::Io`].
pub fn passphrase(path: &Path) -> Result<Passphrase> {
    let passphrase = Passphrase::new(&read_private(path)?);
    if passphrase.is_empty() {
        return Err(Error::misuse(Subject::File(path.to_owned()), "the passphrase is empty"));
    }
    Ok(passphrase)
}
