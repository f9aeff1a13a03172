//! ChaCha20-Poly1305 of SQLite3 Multiple Ciphers and sqleet: a key for each page from the page's nonce and number, and a tag
//! over the whole page with its nonce (`cipher_chacha20.c`).

use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use chacha20::ChaCha20Legacy;
use poly1305::universal_hash::KeyInit;
use poly1305::Poly1305;
use zeroize::Zeroizing;

use super::initial::initial_vector;
use super::{Pages, Unopened, MAGIC};

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const BLOCK_BYTES: usize = 64;

/// Opens the pages of such a database.
pub struct ChaCha20Pages {
    pub key: Zeroizing<[u8; KEY_BYTES]>,
    /// Whether pages have a nonce and a tag.
    pub has_tag: bool,
    /// Where the ciphertext of page 1 begins.
    pub first: usize,
    /// Whether page 1 begins with the salt.
    pub begins_with_salt: bool,
}

impl Pages for ChaCha20Pages {
    fn open(&self, number: u32, page: &mut [u8]) -> Result<(), Unopened> {
        let first = if number == 1 { self.first } else { 0 };
        let content = page.len() - self.reserved_bytes();
        let nonce: [u8; NONCE_BYTES] = match self.has_tag {
            true => page[content..].first_chunk().copied().ok_or(Unopened::Length)?,
            false => initial_vector(number),
        };
        let (mut iv, mut last) = ([0; 12], [0; 4]);
        iv.copy_from_slice(&nonce[..12]);
        last.copy_from_slice(&nonce[12..]);
        let counter = u32::from_le_bytes(last) ^ number;
        let mut keys = Zeroizing::new([0; BLOCK_BYTES]);
        apply(&self.key[..], &iv, counter, &mut keys[..])?;
        if self.has_tag {
            let sealed = content + NONCE_BYTES;
            let mac = Poly1305::new_from_slice(&keys[..32]).map_err(|_| Unopened::Length)?;
            let computed = mac.compute_unpadded(&page[..sealed]);
            aws_lc_rs::constant_time::verify_slices_are_equal(&computed, &page[sealed..])
                .map_err(|_| Unopened::Unauthentic)?;
        }
        apply(&keys[32..], &iv, counter.wrapping_add(1), &mut page[first..content])?;
        if number == 1 && self.begins_with_salt {
            page[..MAGIC.len()].copy_from_slice(MAGIC);
        }
        Ok(())
    }

    fn is_authenticated(&self) -> bool {
        self.has_tag
    }

    fn reserved_bytes(&self) -> usize {
        if self.has_tag {
            NONCE_BYTES + TAG_BYTES
        } else {
            0
        }
    }
}

/// XORs the key stream from block `counter` on. The counter has 32 bits and goes on with 0 (RFC 8439 leaves that open).
///
/// The cipher with the older layout of the same state is used, whose counter has 64 bits: the crate's other one does not
/// compute the last block before the counter's end.
fn apply(key: &[u8], iv: &[u8; 12], counter: u32, bytes: &mut [u8]) -> Result<(), Unopened> {
    let left = (u64::from(u32::MAX) - u64::from(counter) + 1) * BLOCK_BYTES as u64;
    let left = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    let (before, behind) = bytes.split_at_mut(left);
    let high = u32::from_le_bytes([iv[0], iv[1], iv[2], iv[3]]);
    for (counter, part) in [(counter, before), (0, behind)] {
        if part.is_empty() {
            continue;
        }
        let mut stream =
            ChaCha20Legacy::new_from_slices(key, &iv[4..]).map_err(|_| Unopened::Length)?;
        let block = u128::from(high) << 32 | u128::from(counter);
        stream.try_seek(block * BLOCK_BYTES as u128).map_err(|_| Unopened::Length)?;
        stream.try_apply_keystream(part).map_err(|_| Unopened::Length)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8439, 2.4.2: the first bytes of the key stream, and the blocks behind the last one.
    #[test]
    fn the_counter_goes_on_with_zero() {
        let key: Vec<u8> = (0..32).collect();
        let iv = [0, 0, 0, 0, 0, 0, 0, 0x4a, 0, 0, 0, 0];
        let mut known = *b"Ladies and Gentl";
        apply(&key, &iv, 1, &mut known).unwrap();
        assert_eq!(known[..4], [0x6e, 0x2e, 0x35, 0x9a]);
        let (mut first, mut around) = ([0; 64], [0; 192]);
        apply(&key, &iv, 0, &mut first).unwrap();
        apply(&key, &iv, u32::MAX, &mut around).unwrap();
        assert_eq!(around[64..128], first);
    }
}
