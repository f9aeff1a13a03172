//! SQLCipher: AES-256-CBC under a random initialization vector, with an HMAC of ciphertext, vector and page number.
//!
//! Reserved bytes: the vector, the HMAC, and filling up to a whole block (`sqlcipher_page_cipher`).

use aws_lc_rs::cipher::{DecryptingKey, DecryptionContext, UnboundCipherKey, AES_256};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use zeroize::Zeroizing;

use super::{Pages, Unopened, MAGIC};
use crate::secret::SALT_BYTES;
use crate::settings::{Hash, Tag};

const BLOCK_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
/// What the salt of the HMAC's key is XORed with (`HMAC_SALT_MASK`).
const SALT_MASK: u8 = 0x3a;
/// Iterations of the derivation of the HMAC's key (`FAST_PBKDF2_ITER`).
const FAST_ITERATIONS: super::Iterations = match super::Iterations::new(2) {
    Some(count) => count,
    None => panic!("two iterations are not too many"),
};

/// The keys of a database.
#[derive(Clone)]
pub struct Keys {
    pub key: Zeroizing<[u8; KEY_BYTES]>,
    pub hmac_key: Zeroizing<[u8; KEY_BYTES]>,
}

impl Keys {
    /// The keys from that of the pages: that of the HMAC is derived of it unless it was given.
    pub fn new(
        key: &[u8; KEY_BYTES],
        given: Option<&[u8; KEY_BYTES]>,
        salt: &[u8; SALT_BYTES],
        kdf: Hash,
    ) -> Self {
        let mut hmac_key = Zeroizing::new([0; KEY_BYTES]);
        match given {
            Some(given) => hmac_key.copy_from_slice(given),
            None => {
                let salt = salt.map(|byte| byte ^ SALT_MASK);
                super::pbkdf2(kdf, FAST_ITERATIONS, &salt, key, &mut hmac_key[..]);
            }
        }
        Self { key: Zeroizing::new(*key), hmac_key }
    }
}

/// Opens the pages of a SQLCipher database.
pub struct SqlCipherPages {
    key: DecryptingKey,
    hmac: Option<(hmac::Key, usize)>,
    reserved: usize,
    /// Where the ciphertext of page 1 begins.
    first: usize,
    /// Whether the bytes before that are the database's own.
    has_plain_header: bool,
}

impl SqlCipherPages {
    /// `first`: where the ciphertext of page 1 begins. `None` if the key cannot be used.
    pub fn new(keys: &Keys, tag: Tag, first: usize, has_plain_header: bool) -> Option<Self> {
        let key = UnboundCipherKey::new(&AES_256, &keys.key[..]).ok()?;
        let hmac = match tag {
            Tag::None => None,
            Tag::Hmac(hash) => {
                let algorithm = match hash {
                    Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
                    Hash::Sha256 => hmac::HMAC_SHA256,
                    Hash::Sha512 => hmac::HMAC_SHA512,
                };
                Some((hmac::Key::new(algorithm, &keys.hmac_key[..]), hash.bytes()))
            }
        };
        Some(Self {
            key: DecryptingKey::cbc(key).ok()?,
            hmac,
            reserved: reserved_bytes(tag),
            first,
            has_plain_header,
        })
    }
}

impl SqlCipherPages {
    /// CBC. Where the length is not of whole blocks, which only SQLite3 Multiple Ciphers makes, the last two are swapped and the
    /// ciphertext is stolen from the last but one (`RijndaelBlockDecrypt`; NIST SP 800-38A, addendum, CS3).
    fn decrypt(&self, vector: &[u8; BLOCK_BYTES], bytes: &mut [u8]) -> Result<(), Unopened> {
        let part = bytes.len() % BLOCK_BYTES;
        if part == 0 {
            return self.decrypt_blocks(vector, bytes);
        }
        let last = (bytes.len() - part).checked_sub(BLOCK_BYTES).ok_or(Unopened::Length)?;
        let (blocks, end) = bytes.split_at_mut(last);
        let (full, rest) = end.split_at_mut(BLOCK_BYTES);
        self.decrypt_blocks(&[0; BLOCK_BYTES], full)?;
        for (stolen, cipher) in full.iter_mut().zip(rest.iter_mut()) {
            (*stolen, *cipher) = (*cipher, *stolen ^ *cipher);
        }
        let before = blocks.last_chunk().unwrap_or(vector);
        self.decrypt_blocks(before, full)?;
        self.decrypt_blocks(vector, blocks)
    }

    fn decrypt_blocks(&self, vector: &[u8; BLOCK_BYTES], bytes: &mut [u8]) -> Result<(), Unopened> {
        let context = DecryptionContext::Iv128(FixedLength::from(*vector));
        self.key.decrypt(bytes, context).map(|_| ()).map_err(|_| Unopened::Length)
    }
}

/// Reserved bytes of a page with such a tag.
pub fn reserved_bytes(tag: Tag) -> usize {
    let tag = match tag {
        Tag::Hmac(hash) => hash.bytes(),
        Tag::None => 0,
    };
    (BLOCK_BYTES + tag).next_multiple_of(BLOCK_BYTES)
}

impl Pages for SqlCipherPages {
    fn open(&self, number: u32, page: &mut [u8]) -> Result<(), Unopened> {
        let first = if number == 1 { self.first } else { 0 };
        let content = page.len() - self.reserved;
        let (sealed, rest) = page.split_at_mut(content);
        let (vector, tag) = rest.split_at(BLOCK_BYTES);
        if let Some((key, bytes)) = &self.hmac {
            let mut context = hmac::Context::with_key(key);
            context.update(&sealed[first..]);
            context.update(vector);
            context.update(&number.to_le_bytes());
            let computed = context.sign();
            aws_lc_rs::constant_time::verify_slices_are_equal(
                computed.as_ref(),
                tag.get(..*bytes).unwrap_or_default(),
            )
            .map_err(|_| Unopened::Unauthentic)?;
        }
        let vector = *vector.first_chunk().ok_or(Unopened::Length)?;
        self.decrypt(&vector, &mut sealed[first..])?;
        if number == 1 && !self.has_plain_header {
            sealed[..MAGIC.len()].copy_from_slice(MAGIC);
        }
        Ok(())
    }

    fn is_authenticated(&self) -> bool {
        self.hmac.is_some()
    }

    fn reserved_bytes(&self) -> usize {
        self.reserved
    }
}
