//! PVK, the private key file of SQL Server's `BACKUP CERTIFICATE`: a header, a salt, and a PRIVATEKEYBLOB that is
//! encrypted with RC4 under SHA-1 of salt and password.
//!
//! Source: "PVK file format" as openssl reads and writes it (`openssl rsa -outform PVK`); PRIVATEKEYBLOB: Microsoft's
//! "Base Provider Key BLOBs". Weak as it is, it is how existing certificates come; nothing is ever written in it.

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use pkcs8::der::asn1::UintRef;
use pkcs8::der::{Encode, Sequence};
use rc4::{KeyInit, Rc4, StreamCipher};
use zeroize::Zeroizing;

use super::{from_pkcs1, not_valid, wrong_password};
use pellucid::error::Result;
use pellucid::protector::Passphrase;

const MAGIC: u32 = 0xb0b5_f11e;
const HEADER_BYTES: usize = 24;
/// Type, version, reserved and algorithm of a BLOBHEADER; in clear also in an encrypted file.
const BLOB_HEADER_BYTES: usize = 8;
const RSA2: &[u8; 4] = b"RSA2";
const SALT_BYTES_MOST: usize = 256;
const BITS: std::ops::RangeInclusive<u32> = 384..=16384;

pub(super) fn is_pvk(bytes: &[u8]) -> bool {
    number(bytes, 0) == Some(MAGIC)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// The key as PKCS#8.
pub(super) fn read(bytes: &[u8], password: Option<&Passphrase>) -> Result<Zeroizing<Vec<u8>>> {
    let field = |at| number(bytes, at).ok_or_else(not_valid);
    let (encrypted, salt_bytes, key_bytes) =
        (field(12)? != 0, field(16)? as usize, field(20)? as usize);
    let body = &bytes[HEADER_BYTES.min(bytes.len())..];
    if salt_bytes > SALT_BYTES_MOST || body.len() != salt_bytes.saturating_add(key_bytes) {
        return Err(not_valid());
    }
    let (salt, blob) = body.split_at(salt_bytes);
    if !encrypted {
        return parse(blob).ok_or_else(not_valid);
    }
    let password = password.ok_or_else(wrong_password)?;
    let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(salt);
    hash.update(password.expose());
    let digest = hash.finish();
    let mut strong = Zeroizing::new([0; 16]);
    strong.copy_from_slice(&digest.as_ref()[..16]);
    // "Export" files keep 40 bits of the key.
    let mut weak = strong.clone();
    weak[5..].fill(0);
    for key in [strong, weak] {
        if let Some(opened) = open(blob, &key) {
            return parse(&opened).ok_or_else(not_valid);
        }
    }
    Err(wrong_password())
}

fn open(blob: &[u8], key: &[u8; 16]) -> Option<Zeroizing<Vec<u8>>> {
    let mut opened = Zeroizing::new(blob.to_vec());
    let secret = opened.get_mut(BLOB_HEADER_BYTES..)?;
    Rc4::new_from_slice(key).ok()?.apply_keystream(secret);
    (secret.get(..4)? == RSA2).then_some(opened)
}

/// RSAPrivateKey (RFC 8017, A.1.2).
#[derive(Sequence)]
struct Pkcs1<'a> {
    version: u8,
    modulus: UintRef<'a>,
    public_exponent: UintRef<'a>,
    private_exponent: UintRef<'a>,
    prime1: UintRef<'a>,
    prime2: UintRef<'a>,
    exponent1: UintRef<'a>,
    exponent2: UintRef<'a>,
    coefficient: UintRef<'a>,
}

fn parse(blob: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let rest = blob.get(BLOB_HEADER_BYTES..)?;
    let bits = number(rest, 4).filter(|_| rest.starts_with(RSA2))?;
    if !BITS.contains(&bits) || bits % 16 != 0 {
        return None;
    }
    let mut rest = rest.get(8..)?;
    // Little-endian numbers, each of a fixed length.
    let mut take = |bytes: usize| {
        let (part, behind) = rest.split_at_checked(bytes)?;
        rest = behind;
        Some(Zeroizing::new(part.iter().rev().copied().collect::<Vec<u8>>()))
    };
    let (whole, half) = ((bits / 8) as usize, (bits / 16) as usize);
    let public_exponent = take(4)?;
    let modulus = take(whole)?;
    let [prime1, prime2] = [take(half)?, take(half)?];
    let [exponent1, exponent2] = [take(half)?, take(half)?];
    let coefficient = take(half)?;
    let private_exponent = take(whole)?;
    let key = Pkcs1 {
        version: 0,
        modulus: UintRef::new(&modulus).ok()?,
        public_exponent: UintRef::new(&public_exponent).ok()?,
        private_exponent: UintRef::new(&private_exponent).ok()?,
        prime1: UintRef::new(&prime1).ok()?,
        prime2: UintRef::new(&prime2).ok()?,
        exponent1: UintRef::new(&exponent1).ok()?,
        exponent2: UintRef::new(&exponent2).ok()?,
        coefficient: UintRef::new(&coefficient).ok()?,
    };
    let der = Zeroizing::new(key.to_der().ok()?);
    from_pkcs1(&der).ok()
}
