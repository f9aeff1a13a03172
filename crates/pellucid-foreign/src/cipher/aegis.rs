//! AEGIS of SQLite3 Multiple Ciphers: a key and a nonce for each page from the page's nonce and number (`cipher_aegis.c`).
//!
//! Reserved bytes: the tag, then the nonce.

use aegis::aegis128l::Aegis128L;
use aegis::aegis256::Aegis256;
use zeroize::Zeroizing;

use super::{Pages, Unopened, MAGIC};

const TAG_BYTES: usize = 32;

/// Opens the pages of such a database.
pub struct AegisPages {
    /// 16 bytes for AEGIS-128L, 32 for AEGIS-256.
    pub key: Zeroizing<Vec<u8>>,
    /// Where the ciphertext of page 1 begins.
    pub first: usize,
    /// Whether page 1 begins with the salt.
    pub begins_with_salt: bool,
}

impl Pages for AegisPages {
    fn open(&self, number: u32, page: &mut [u8]) -> Result<(), Unopened> {
        let first = if number == 1 { self.first } else { 0 };
        let (sealed, rest) = page.split_at_mut(page.len() - self.reserved_bytes());
        let (tag, nonce) = rest.split_at(TAG_BYTES);
        let tag: &[u8; TAG_BYTES] = tag.first_chunk().ok_or(Unopened::Length)?;
        let half = self.key.len();
        let mut keys = Zeroizing::new(vec![0; 2 * half]);
        let opened = match half {
            16 => {
                stream_128l(&self.key, nonce, &mut keys)?;
                keys[2 * half - 4..].copy_from_slice(&number.to_be_bytes());
                let (key, nonce) = halves::<16>(&keys)?;
                Aegis128L::<TAG_BYTES>::new(key, nonce).decrypt_in_place(
                    &mut sealed[first..],
                    tag,
                    &[],
                )
            }
            _ => {
                stream_256(&self.key, nonce, &mut keys)?;
                keys[2 * half - 4..].copy_from_slice(&number.to_be_bytes());
                let (key, nonce) = halves::<32>(&keys)?;
                Aegis256::<TAG_BYTES>::new(key, nonce).decrypt_in_place(
                    &mut sealed[first..],
                    tag,
                    &[],
                )
            }
        };
        opened.map_err(|_| Unopened::Unauthentic)?;
        if number == 1 && self.begins_with_salt {
            sealed[..MAGIC.len()].copy_from_slice(MAGIC);
        }
        Ok(())
    }

    fn is_authenticated(&self) -> bool {
        true
    }

    fn reserved_bytes(&self) -> usize {
        TAG_BYTES + self.key.len()
    }
}

fn stream_128l(key: &[u8], nonce: &[u8], out: &mut [u8]) -> Result<(), Unopened> {
    let (key, nonce) = (array(key)?, array(nonce)?);
    Aegis128L::<TAG_BYTES>::new(key, nonce).stream(out);
    Ok(())
}

fn stream_256(key: &[u8], nonce: &[u8], out: &mut [u8]) -> Result<(), Unopened> {
    let (key, nonce) = (array(key)?, array(nonce)?);
    Aegis256::<TAG_BYTES>::new(key, nonce).stream(out);
    Ok(())
}

fn array<const BYTES: usize>(bytes: &[u8]) -> Result<&[u8; BYTES], Unopened> {
    bytes.try_into().map_err(|_| Unopened::Length)
}

fn halves<const BYTES: usize>(keys: &[u8]) -> Result<(&[u8; BYTES], &[u8; BYTES]), Unopened> {
    Ok((array(&keys[..BYTES])?, array(&keys[BYTES..])?))
}
