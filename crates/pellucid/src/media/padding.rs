//! Padding to size classes: a family's length then says less about what is in it.
//!
//! The classes are those of Padme (PURBs, Nikitin et al. 2019): as many leading bits of a length count as its exponent has
//! bits. What is added is at most 12 %, and less the longer it is.

use super::chunk::{MOST_CHUNK_BYTES, PREFIX_BYTES};
use crate::cipher::TAG_BYTES;

/// The least that a chunk of padding takes.
const LEAST: u64 = (PREFIX_BYTES + TAG_BYTES) as u64;
/// The most that one takes.
const MOST: u64 = (PREFIX_BYTES + MOST_CHUNK_BYTES) as u64;

/// The least length of a class that is no shorter than `bytes`.
fn class_of(bytes: u64) -> u64 {
    let exponent = u64::BITS - 1 - bytes.max(2).leading_zeros();
    let counting = u32::BITS - exponent.leading_zeros();
    let mask = (1u64 << exponent.saturating_sub(counting)) - 1;
    bytes.saturating_add(mask) & !mask
}

/// The bytes of content of each chunk of padding behind `bytes` bytes of a sealed set, so that all of it has the length of
/// a class.
pub fn padding_of(bytes: u64) -> Vec<u32> {
    let mut rest = class_of(bytes) - bytes;
    // A chunk has a prefix and a tag: where they do not fit, it is the next class.
    while (1..LEAST).contains(&rest) {
        rest = class_of(bytes + rest + 1) - bytes;
    }
    let mut chunks = Vec::new();
    while rest > 0 {
        // What is left over is room for a chunk, or nothing.
        let now = if rest > MOST { MOST.min(rest - LEAST) } else { rest };
        chunks.push((now - LEAST) as u32);
        rest -= now;
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_padmes_and_padding_fills_them_exactly() {
        for (bytes, class) in [(1, 1), (8, 8), (9, 10), (100, 104), (1000, 1024), (1025, 1088)] {
            assert_eq!(class_of(bytes), class, "{bytes}");
        }
        let lengths = (4096..20_000).chain((24..45).flat_map(|bits| {
            [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1, (1 << bits) + (1 << (bits - 2)) + 77]
        }));
        for bytes in lengths {
            let chunks = padding_of(bytes);
            let added: u64 = chunks.iter().map(|content| u64::from(*content) + LEAST).sum();
            assert_eq!(class_of(bytes + added), bytes + added, "{bytes}");
            assert!(added * 100 <= bytes * 12, "{bytes}: {added}");
            assert!(chunks
                .iter()
                .all(|content| u64::from(*content) + 16 <= MOST_CHUNK_BYTES as u64));
        }
    }
}
