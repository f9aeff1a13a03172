//! OAEP of SHA-256 and MGF1 taken off in software, for tokens that only do the bare RSA operation.
//!
//! RFC 8017, section 7.1.2, step 3. Which check failed can be told neither by the answer nor by the time it takes (Manger's
//! attack): everything is looked at each time, and the place of the message is found without a branch.

use aws_lc_rs::digest::{digest, SHA256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

const HASH_BYTES: usize = 32;

/// The message in `encoded`, which has the key's length; none if it has none for `label`.
pub fn unpad(encoded: &[u8], label: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    // What the public key says, and nothing secret.
    if encoded.len() < 2 * HASH_BYTES + 2 {
        return None;
    }
    let (first, rest) = encoded.split_first()?;
    let mut seed = Zeroizing::new(rest[..HASH_BYTES].to_vec());
    let mut block = Zeroizing::new(rest[HASH_BYTES..].to_vec());
    mask(&mut seed, &block);
    mask(&mut block, &seed);
    let label_hash = digest(&SHA256, label);
    let mut good = first.ct_eq(&0) & block[..HASH_BYTES].ct_eq(label_hash.as_ref());
    // PS, zeros, then one byte 1.
    let mut found = Choice::from(0);
    let mut at = 0u32;
    for (index, byte) in block.iter().enumerate().skip(HASH_BYTES) {
        let is_one = byte.ct_eq(&1);
        let is_first = is_one & !found;
        at.conditional_assign(&(index as u32), is_first);
        good &= found | is_one | byte.ct_eq(&0);
        found |= is_one;
    }
    match bool::from(good & found) {
        // The message's length is the caller's to know by now.
        true => Some(Zeroizing::new(block.get(at as usize + 1..)?.to_vec())),
        false => None,
    }
}

/// MGF1 (RFC 8017, appendix B.2.1) of `seed`, by which `bytes` are combined.
fn mask(bytes: &mut [u8], seed: &[u8]) {
    let mut input = Zeroizing::new(Vec::with_capacity(seed.len() + 4));
    for (counter, part) in bytes.chunks_mut(HASH_BYTES).enumerate() {
        input.clear();
        input.extend_from_slice(seed);
        input.extend_from_slice(&(counter as u32).to_be_bytes());
        let hash = digest(&SHA256, &input);
        part.iter_mut().zip(hash.as_ref()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LENGTH: usize = 256;

    /// As an encoder makes it, with anything in the place of its parts.
    fn encoded(first: u8, hash: &[u8], padding: &[u8], message: &[u8]) -> Vec<u8> {
        let mut block = [hash, padding, message].concat();
        let mut seed = vec![0x5a; HASH_BYTES];
        mask(&mut block, &seed);
        mask(&mut seed, &block);
        [&[first][..], &seed, &block].concat()
    }

    fn hash(label: &[u8]) -> Vec<u8> {
        digest(&SHA256, label).as_ref().to_vec()
    }

    fn padding(message: usize) -> Vec<u8> {
        let mut padding = vec![0; LENGTH - 2 * HASH_BYTES - 2 - message];
        padding.push(1);
        padding
    }

    #[test]
    fn each_length_of_a_message_comes_back() {
        for length in 0..=LENGTH - 2 * HASH_BYTES - 2 {
            let message = vec![1; length];
            let block = encoded(0, &hash(b"label"), &padding(length), &message);
            assert_eq!(block.len(), LENGTH);
            assert_eq!(unpad(&block, b"label").unwrap().as_slice(), message, "{length}");
            assert!(unpad(&block, b"another").is_none());
        }
    }

    #[test]
    fn each_changed_bit_and_each_other_form_opens_nothing() {
        let good = encoded(0, &hash(b""), &padding(32), &[7; 32]);
        for bit in 0..good.len() * 8 {
            let mut changed = good.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let opened = unpad(&changed, b"");
            assert!(opened.is_none_or(|opened| opened.as_slice() != [7; 32]), "{bit}");
        }
        let mut wrong = padding(32);
        wrong[3] = 2;
        for block in [
            encoded(1, &hash(b""), &padding(32), &[7; 32]),
            encoded(0, &hash(b""), &wrong, &[7; 32]),
            encoded(0, &hash(b""), &[0; 190], &[]),
            vec![0; 2 * HASH_BYTES + 1],
            vec![0; LENGTH],
            Vec::new(),
        ] {
            assert!(unpad(&block, b"").is_none());
        }
    }
}
