//! The secret that a foreign database opens with: a passphrase, or a key that was never derived.

use zeroize::Zeroizing;

/// Bytes of the salt that is the beginning of most files.
pub const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 32;

/// What a database opens with.
#[derive(Clone)]
pub enum Secret {
    /// A passphrase, as bytes.
    Passphrase(Zeroizing<Vec<u8>>),
    /// A key that goes round the key derivation, as `PRAGMA key = "x'..'"` gives it.
    Raw(RawKey),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Passphrase(_) => "Passphrase(..)",
            Self::Raw(_) => "Raw(..)",
        })
    }
}

impl Secret {
    /// A passphrase. One of the form `x'..'` with as many digits as a raw key has is that key, as it is for SQLCipher.
    pub fn of_passphrase(bytes: &[u8]) -> Self {
        let quoted = |bytes: &[u8]| {
            let digits = bytes.strip_prefix(b"x'").or_else(|| bytes.strip_prefix(b"X'"))?;
            RawKey::of_digits(digits.strip_suffix(b"'")?)
        };
        match quoted(bytes) {
            Some(raw) => Self::Raw(raw),
            None => Self::Passphrase(Zeroizing::new(bytes.to_vec())),
        }
    }
}

/// A raw key: the key of the pages, perhaps with the key of their tags, perhaps with the salt.
#[derive(Clone)]
pub struct RawKey {
    /// 16 bytes for the AEGIS ciphers of 128 bits, else 32.
    pub(crate) key: Zeroizing<Vec<u8>>,
    pub(crate) hmac_key: Option<Zeroizing<[u8; KEY_BYTES]>>,
    pub(crate) salt: Option<[u8; SALT_BYTES]>,
}

impl std::fmt::Debug for RawKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawKey(..)")
    }
}

impl RawKey {
    /// Reads the content of a file: `x'..'`, the digits alone, or the bytes themselves. `None` if its length is none of a raw
    /// key: 32 bytes, 48 with the salt, 80 with the key of the tags and the salt.
    pub fn parse(content: &[u8]) -> Option<Self> {
        let text = content.trim_ascii();
        let digits = text.strip_prefix(b"x'").or_else(|| text.strip_prefix(b"X'"));
        let digits = digits.and_then(|rest| rest.strip_suffix(b"'")).unwrap_or(text);
        Self::of_digits(digits).or_else(|| Self::of_bytes(content))
    }

    fn of_digits(digits: &[u8]) -> Option<Self> {
        Self::of_bytes(&from_hex(digits)?)
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let salt_of = |rest: &[u8]| <[u8; SALT_BYTES]>::try_from(rest).ok();
        let key = Zeroizing::new(bytes.get(..KEY_BYTES)?.to_vec());
        let rest = bytes.get(KEY_BYTES..)?;
        match rest.len() {
            0 => Some(Self { key, hmac_key: None, salt: None }),
            SALT_BYTES => Some(Self { key, hmac_key: None, salt: salt_of(rest) }),
            48 => {
                let mut hmac_key = Zeroizing::new([0; KEY_BYTES]);
                hmac_key.copy_from_slice(&rest[..KEY_BYTES]);
                Some(Self { key, hmac_key: Some(hmac_key), salt: salt_of(&rest[KEY_BYTES..]) })
            }
            _ => None,
        }
    }
}

/// Hexadecimal digits as bytes; `None` for anything else.
pub fn from_hex(digits: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    if digits.is_empty() || digits.len() % 2 != 0 {
        return None;
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len() / 2));
    for pair in digits.chunks_exact(2) {
        bytes.push((value(pair[0])? * 16 + value(pair[1])?) as u8);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_key_has_32_48_or_80_bytes_in_any_of_three_notations() {
        for bytes in [32usize, 48, 80] {
            let raw: Vec<u8> = (0..bytes as u8).map(|byte| byte.wrapping_mul(7)).collect();
            let digits: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
            let quoted = format!("x'{}'\n", digits.to_uppercase());
            for content in [&raw[..], digits.as_bytes(), quoted.as_bytes()] {
                let key = RawKey::parse(content).unwrap();
                assert_eq!(key.key[..], raw[..32]);
                assert_eq!(key.salt.is_some(), bytes > 32);
                assert_eq!(key.hmac_key.is_some(), bytes == 80);
            }
            assert!(matches!(Secret::of_passphrase(quoted.trim().as_bytes()), Secret::Raw(_)));
        }
        for wrong in [&b"x'00'"[..], b"", b"x'zz'", &[0; 31], &[0; 49]] {
            assert!(RawKey::parse(wrong).is_none());
            assert!(matches!(Secret::of_passphrase(wrong), Secret::Passphrase(_)));
        }
    }

    #[test]
    fn nothing_of_it_is_shown() {
        let secret = Secret::of_passphrase(b"correct horse");
        assert_eq!(format!("{secret:?}"), "Passphrase(..)");
        let raw = RawKey::parse(&[7; 32]).unwrap();
        assert_eq!(format!("{raw:?} {:?}", Secret::Raw(raw.clone())), "RawKey(..) Raw(..)");
    }
}
