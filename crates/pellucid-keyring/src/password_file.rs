//! A key under a password: backups of the master keys, and the database master key's own passwords.
//!
//! Layout: docs/format.md, "Password file". Needs no keyring to be opened, so it may lie anywhere.

use std::path::Path;

use aws_lc_rs::digest;

use super::sealed_file::{check_value, CHECK_BYTES};
use pellucid::algorithm::Algorithm;
use pellucid::cipher::Cipher;
use pellucid::error::{Error, Result, Subject};
use pellucid::flags::check_zeros;
use pellucid::message;
use pellucid::protector::{Argon2Cost, Budget, Passphrase};
use pellucid::secret::{fill_random, Secret32};

const MAGIC: &[u8; 16] = b"Pellucid secret\0";
const VERSION: u16 = 1;
const SALT_AT: usize = 48;
const NONCE_AT: usize = 64;
const HEADER_BYTES: usize = 76;
const TAG_AT: usize = HEADER_BYTES + 32;
const SUM_AT: usize = TAG_AT + 16;
/// The whole file.
pub const FILE_BYTES: usize = SUM_AT + 32;

/// Which key is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum MasterKey {
    /// The service master key.
    Service = 1,
    /// The database master key.
    Database = 2,
}

impl MasterKey {
    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            MasterKey::Service => "service master key",
            MasterKey::Database => "database master key",
        }
    }
}

/// Seals `key` under `password`.
pub(super) fn seal(
    kind: MasterKey,
    key: &Secret32,
    password: &Passphrase,
    cost: Argon2Cost,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&[kind as u8, 0]);
    bytes.extend_from_slice(&check_value(key)?);
    for number in [cost.memory_kib, cost.passes, cost.lanes] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    let (mut salt, mut nonce) = ([0; 16], [0; 12]);
    fill_random(&mut salt)?;
    fill_random(&mut nonce)?;
    bytes.extend_from_slice(&salt);
    bytes.extend_from_slice(&nonce);
    let kek = cost.stretch(password, &salt)?;
    let (mut ciphertext, mut tag) = ([0; 32], [0; 16]);
    Cipher::new(Algorithm::Aes256, kek.expose())?.seal(
        &nonce,
        &bytes,
        key.expose(),
        &mut ciphertext,
        &mut tag,
    )?;
    bytes.extend_from_slice(&ciphertext);
    bytes.extend_from_slice(&tag);
    bytes.extend_from_slice(digest::digest(&digest::SHA256, &bytes).as_ref());
    Ok(bytes)
}

/// The check value of the key in it, which anybody may read.
pub(super) fn stated_check(bytes: &[u8]) -> Option<[u8; CHECK_BYTES]> {
    bytes.get(20..20 + CHECK_BYTES)?.try_into().ok()
}

/// Opens the file's bytes. Damage (15317) is told from a wrong password (15465) by a checksum, which anybody can make: the
/// cost that the file asks for has a limit.
pub(super) fn open(kind: MasterKey, bytes: &[u8], password: &Passphrase) -> Result<Secret32> {
    let invalid = || Error::message(message::MASTER_KEY_FILE, "");
    if bytes.len() != FILE_BYTES || bytes[..16] != MAGIC[..] || bytes[18] != kind as u8 {
        return Err(invalid());
    }
    let (body, sum) = bytes.split_at(SUM_AT);
    if digest::digest(&digest::SHA256, body).as_ref() != sum {
        return Err(invalid());
    }
    let version = u16::from_be_bytes([body[16], body[17]]);
    if version != VERSION {
        return Err(Error::unsupported(
            Subject::Key("master key file"),
            format!("version {version} is newer than {VERSION}"),
        ));
    }
    check_zeros(body, std::iter::once(19..20), || Subject::Key("master key file"))?;
    let number = |at: usize| body[at..].first_chunk().map_or(0, |n| u32::from_be_bytes(*n));
    let cost = Argon2Cost { memory_kib: number(36), passes: number(40), lanes: number(44) };
    let (Some(salt), Some(nonce), Some(tag)) = (
        body[SALT_AT..].first_chunk(),
        body[NONCE_AT..].first_chunk(),
        body[TAG_AT..].first_chunk(),
    ) else {
        return Err(invalid());
    };
    Budget::new(super::is_cost_allowed()).spend(cost, || Subject::Key("master key file"))?;
    let kek = cost.stretch(password, salt)?;
    let mut key = [0; 32];
    Cipher::new(Algorithm::Aes256, kek.expose())?
        .open(nonce, &body[..HEADER_BYTES], &body[HEADER_BYTES..TAG_AT], tag, &mut key)
        .map_err(|_| Error::message(message::PASSWORD_INVALID, ""))?;
    let key = Secret32::new(&mut key);
    match stated_check(body) == Some(check_value(&key)?) {
        true => Ok(key),
        false => Err(invalid()),
    }
}

/// Reads such a file from wherever it was put.
pub(super) fn read(kind: MasterKey, path: &Path, password: &Passphrase) -> Result<Secret32> {
    use std::io::Read;
    let mut bytes = Vec::with_capacity(FILE_BYTES + 1);
    let read = pellucid_files::regular::open_given(path)
        .and_then(|file| file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => open(kind, &bytes, password),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::message(message::MASTER_KEY_FILE, ""))
        }
        Err(error) => Err(Error::io(Subject::File(path.to_owned()), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };

    #[test]
    fn a_wrong_password_and_each_damaged_byte_are_told_apart() {
        let key = Secret32::random().unwrap();
        let password = Passphrase::new(b"right");
        let bytes = seal(MasterKey::Service, &key, &password, CHEAP).unwrap();
        assert_eq!(bytes.len(), FILE_BYTES);
        assert_eq!(open(MasterKey::Service, &bytes, &password).unwrap(), key);
        let number = |kind, bytes: &[u8], password: &[u8]| match open(
            kind,
            bytes,
            &Passphrase::new(password),
        )
        .unwrap_err()
        {
            Error::Message { message, .. } => message.number,
            other => panic!("{other}"),
        };
        assert_eq!(number(MasterKey::Service, &bytes, b"wrong"), 15465);
        assert_eq!(number(MasterKey::Database, &bytes, b"right"), 15317);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            assert_eq!(number(MasterKey::Service, &damaged, b"right"), 15317, "byte {at}");
            assert_eq!(number(MasterKey::Service, &bytes[..at], b"right"), 15317, "cut at {at}");
        }
    }
}
