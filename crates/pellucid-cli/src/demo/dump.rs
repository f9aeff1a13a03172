//! Files as `strings` and `hexdump -C` show them.

use std::fmt::Write;

use super::image::{printable, Encoding, Found, Image};
use crate::output::Failure;

/// So far around a place that was found its line is looked for.
const AROUND_BYTES: u64 = 4096;

/// What `strings FILE | grep -F TEXT` finds first, three lines of a hundred characters.
pub fn lines(
    image: &Image,
    found: &Found,
    needle: &[u8],
    encoding: Encoding,
) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let mut shown_to = 0;
    for place in &found.places {
        if *place < shown_to {
            continue; // another place in the line before
        }
        let base = place.saturating_sub(AROUND_BYTES);
        let around = image.read(base, 2 * AROUND_BYTES)?;
        let at = usize::try_from(place - base).unwrap_or(usize::MAX);
        let (before, from) = around.split_at_checked(at).unwrap_or((&around, &[]));
        let line = run(before, from, encoding);
        if line.is_empty() || from.len() < needle.len() {
            continue; // the file changed in between
        }
        shown_to = place + needle.len() as u64;
        lines.push(line.chars().take(100).collect());
        if lines.len() == 3 {
            break;
        }
    }
    Ok(lines)
}

/// The printable run that ends `before` and goes on in `from`.
fn run(before: &[u8], from: &[u8], encoding: Encoding) -> String {
    let width = if encoding == Encoding::Utf8 { 1 } else { 2 };
    let character = |unit: &[u8]| match (encoding, unit) {
        (Encoding::Utf8, &[byte])
        | (Encoding::Utf16Le, &[byte, 0])
        | (Encoding::Utf16Be, &[0, byte])
            if printable(byte) =>
        {
            Some(char::from(byte))
        }
        _ => None,
    };
    let mut text: Vec<char> = before.rchunks_exact(width).map_while(character).collect();
    text.reverse();
    text.extend(from.chunks_exact(width).map_while(character));
    text.into_iter().collect()
}

/// `bytes` from offset `at` on, as `hexdump -C` prints them.
pub fn hexdump(bytes: &[u8], at: u64) -> String {
    let mut out = String::new();
    let mut previous: Option<&[u8]> = None;
    let mut squeezed = false;
    for (row, chunk) in bytes.chunks(16).enumerate() {
        if previous == Some(chunk) {
            if !squeezed {
                out.push_str("*\n");
            }
            squeezed = true;
            continue;
        }
        (previous, squeezed) = (Some(chunk), false);
        let mut hex = String::new();
        for (column, byte) in chunk.iter().enumerate() {
            let gap = if column == 8 { " " } else { "" };
            let _ = write!(hex, "{gap} {byte:02x}");
        }
        let text: String = chunk.iter().map(|byte| shown(*byte, '.')).collect();
        let _ = writeln!(out, "{:08x} {hex:<49}  |{text}|", at + 16 * row as u64);
    }
    let _ = write!(out, "{:08x}", at + bytes.len() as u64);
    out
}

/// A byte as one character.
pub fn shown(byte: u8, otherwise: char) -> char {
    if matches!(byte, 0x20..=0x7e) {
        char::from(byte)
    } else {
        otherwise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_hexdumps_own() {
        let mut bytes = b"SQLite format 3\0".to_vec();
        bytes.extend([0; 48]);
        bytes.extend(b"end");
        let expected = "\
00000010  53 51 4c 69 74 65 20 66  6f 72 6d 61 74 20 33 00  |SQLite format 3.|
00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
*
00000050  65 6e 64                                          |end|
00000053";
        assert_eq!(hexdump(&bytes, 16), expected);
    }

    #[test]
    fn runs_reach_both_ways() {
        assert_eq!(run(b"\0ab", b"cd\xff", Encoding::Utf8), "abcd");
        assert_eq!(run(b"\xffa\0b\0", b"c\0d\0\0\0", Encoding::Utf16Le), "abcd");
        assert_eq!(run(b"\xff\xff\0a", b"\0b\0c", Encoding::Utf16Be), "abc");
    }
}
