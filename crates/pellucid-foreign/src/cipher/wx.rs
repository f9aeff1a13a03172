//! What wxSQLite3 and System.Data.SQLite did: AES-CBC under a key for each page, or RC4, and no tag at all.
//!
//! (`cipher_wxaes128.c`, `cipher_wxaes256.c`, `cipher_sds_rc4.c`.)

use aws_lc_rs::cipher::{DecryptingKey, DecryptionContext, UnboundCipherKey, AES_128, AES_256};
use aws_lc_rs::digest;
use aws_lc_rs::iv::FixedLength;
use md5::{Digest, Md5};
use rc4::{KeyInit, Rc4, StreamCipher};
use zeroize::Zeroizing;

use super::initial::initial_vector;
use super::{Pages, Unopened, MAGIC};
use crate::looks::header;

/// What a password is filled up with to 32 bytes, as PDF does (ISO 32000-1, 7.6.3.3).
const PADDING: [u8; 32] = *b"\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\
                             \x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A";
/// Behind key and page number in what a page's key is the hash of.
const SALT: &[u8; 4] = b"sAlT";
const SHA256_ROUNDS: u32 = 4001;

/// AES-CBC of wxSQLite3.
pub struct AesPages {
    /// 16 bytes for AES-128, 32 for AES-256.
    key: Zeroizing<Vec<u8>>,
}

impl AesPages {
    /// AES-128-CBC: the key as PDF derives it, with an empty owner's password.
    pub fn aes128(password: &[u8]) -> Option<Self> {
        let user = padded(password);
        let owner = rounds(&PADDING);
        let mut owner_key = Zeroizing::new(*user);
        for round in 0..20 {
            let key = Zeroizing::new(owner.map(|byte| byte ^ round));
            Rc4::new_from_slice(&key[..]).ok()?.apply_keystream(&mut owner_key[..]);
        }
        let mut both = Zeroizing::new(user.to_vec());
        both.extend_from_slice(&owner_key[..]);
        Some(Self { key: Zeroizing::new(rounds(&both).to_vec()) })
    }

    /// AES-256-CBC: SHA-256 over and over.
    pub fn aes256(password: &[u8]) -> Self {
        let mut key = Zeroizing::new(sha256(&padded(password)[..]));
        for _ in 0..SHA256_ROUNDS {
            key = Zeroizing::new(sha256(&key));
        }
        Self { key }
    }

    fn decrypt(&self, number: u32, bytes: &mut [u8]) -> Result<(), Unopened> {
        let mut seed = self.key.clone();
        seed.extend_from_slice(&number.to_le_bytes());
        seed.extend_from_slice(SALT);
        let (algorithm, key) = match self.key.len() {
            16 => (&AES_128, Zeroizing::new(Md5::digest(&seed[..]).to_vec())),
            _ => (&AES_256, Zeroizing::new(sha256(&seed))),
        };
        let vector = FixedLength::from(initial_vector(number));
        UnboundCipherKey::new(algorithm, &key)
            .and_then(DecryptingKey::cbc)
            .and_then(|key| key.decrypt(bytes, DecryptionContext::Iv128(vector)).map(|_| ()))
            .map_err(|_| Unopened::Length)
    }
}

impl Pages for AesPages {
    fn open(&self, number: u32, page: &mut [u8]) -> Result<(), Unopened> {
        // The first version encrypted page 1 as any other. Later ones leave a part of its header in clear, and what
        // stood there 8 bytes before it.
        if number != 1 || header(page).is_none() {
            return self.decrypt(number, page);
        }
        let mut clear = [0; 8];
        clear.copy_from_slice(&page[16..24]);
        page.copy_within(8..16, 16);
        self.decrypt(number, &mut page[16..])?;
        if page[16..24] != clear {
            return Err(Unopened::Unauthentic);
        }
        page[..MAGIC.len()].copy_from_slice(MAGIC);
        Ok(())
    }

    fn is_authenticated(&self) -> bool {
        false
    }

    fn reserved_bytes(&self) -> usize {
        0
    }
}

/// RC4 of System.Data.SQLite: each page under the same key stream.
pub struct Rc4Pages {
    key: Zeroizing<[u8; 16]>,
}

impl Rc4Pages {
    /// The key is a hash of the password.
    pub fn new(password: &[u8]) -> Self {
        let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, password);
        let mut key = Zeroizing::new([0; 16]);
        key.iter_mut().zip(hash.as_ref()).for_each(|(to, from)| *to = *from);
        Self { key }
    }
}

impl Pages for Rc4Pages {
    fn open(&self, _: u32, page: &mut [u8]) -> Result<(), Unopened> {
        let mut stream = Rc4::new_from_slice(&self.key[..]).map_err(|_| Unopened::Length)?;
        stream.apply_keystream(page);
        Ok(())
    }

    fn is_authenticated(&self) -> bool {
        false
    }

    fn reserved_bytes(&self) -> usize {
        0
    }
}

fn padded(password: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut padded = Zeroizing::new([0; 32]);
    let bytes = password.iter().chain(&PADDING);
    padded.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    padded
}

/// MD5, and fifty times again.
fn rounds(bytes: &[u8]) -> [u8; 16] {
    (0..50).fold(Md5::digest(bytes).into(), |hash: [u8; 16], _| Md5::digest(hash).into())
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}
