//! What a file seems to be, by its first bytes and without a key.

/// What it seems to be. It is a guess unless it says otherwise: nothing here is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// SQLite3 Multiple Ciphers, or SEE: the bytes 16 to 23 of a database's header are in clear, all else is not.
    HeaderInClear {
        /// Bytes of a page.
        page_bytes: u32,
        /// Reserved bytes of a page, by which the cipher is guessed.
        reserved: u8,
    },
    /// SQLCipher with a plaintext header: the header of a database, and no database behind it.
    PlainHeader {
        /// Bytes of a page.
        page_bytes: u32,
        /// Reserved bytes of a page.
        reserved: u8,
    },
    /// Encrypted: no structure at all, as SQLCipher, SEE and some ciphers of SQLite3 Multiple Ciphers leave it. So does
    /// everything else that is encrypted or compressed.
    NoStructure,
    /// A backup as SQL Server writes it.
    SqlServerBackup,
    /// A PVK: a private key as SQL Server backs it up.
    Pvk,
    /// PEM: certificates or keys as text.
    Pem,
    /// PKCS#12, by its outer structure.
    Pfx,
    /// DER: a certificate or a key.
    Der,
    /// None of these.
    Unknown,
}

/// Bytes of the beginning that are enough.
pub const SAMPLE_BYTES: usize = 65536;

/// Looks at the beginning of a file of `bytes` bytes.
pub fn look(sample: &[u8], bytes: u64) -> Looks {
    if sample.starts_with(&[0x1e, 0xf1, 0xb5, 0xb0]) {
        return Looks::Pvk;
    }
    // Microsoft Tape Format, and what SQL Server writes if it compresses.
    if sample.starts_with(b"TAPE") || sample.starts_with(b"MSSQLBAK") {
        return Looks::SqlServerBackup;
    }
    let text = sample.trim_ascii_start();
    if text.starts_with(b"-----BEGIN ") {
        return Looks::Pem;
    }
    if let Some(found) = der(sample, bytes) {
        return found;
    }
    if let Some((page_bytes, reserved)) = header(sample) {
        if sample.starts_with(crate::cipher::MAGIC) {
            return match is_tree(sample, page_bytes) {
                true => Looks::Unknown,
                false => Looks::PlainHeader { page_bytes, reserved },
            };
        }
        if is_even(sample) {
            return Looks::HeaderInClear { page_bytes, reserved };
        }
    }
    match bytes >= 512 && bytes % 512 == 0 && is_even(sample) {
        true => Looks::NoStructure,
        false => Looks::Unknown,
    }
}

/// Page size and reserved bytes, if the bytes 16 to 23 are those of a database's header.
pub(crate) fn header(sample: &[u8]) -> Option<(u32, u8)> {
    let fields = sample.get(16..24)?;
    let page_bytes = match u16::from_be_bytes([fields[0], fields[1]]) {
        1 => 65536,
        size => u32::from(size),
    };
    let is_one = crate::settings::PAGE_BYTES.contains(&page_bytes)
        && matches!(fields[2], 1 | 2)
        && matches!(fields[3], 1 | 2)
        && fields[5..8] == [64, 32, 32];
    is_one.then_some((page_bytes, fields[4]))
}

/// Whether page 1 has a b-tree's header behind the database's: it is in clear (SQLite file format, 1.6).
pub(crate) fn is_tree(sample: &[u8], page_bytes: u32) -> bool {
    let Some(head) = sample.get(100..108) else { return false };
    let content = match u16::from_be_bytes([head[5], head[6]]) {
        0 => 65536,
        at => u32::from(at),
    };
    matches!(head[0], 2 | 5 | 10 | 13) && (108..=page_bytes).contains(&content) && head[7] <= 60
}

/// A DER structure that is as long as the file: PKCS#12 begins with version 3, certificates with a structure.
fn der(sample: &[u8], bytes: u64) -> Option<Looks> {
    let (head, length) = match sample {
        [0x30, 0x82, high, low, ..] => (4, u64::from(u16::from_be_bytes([*high, *low]))),
        [0x30, 0x81, length, ..] => (3, u64::from(*length)),
        [0x30, 0x83, a, b, c, ..] => (5, u64::from(u32::from_be_bytes([0, *a, *b, *c]))),
        _ => return None,
    };
    if bytes != head as u64 + length {
        return None;
    }
    let inner = sample.get(head..)?;
    Some(if inner.starts_with(&[2, 1, 3, 0x30]) { Looks::Pfx } else { Looks::Der })
}

/// Whether all byte values are about as frequent, as encryption leaves them: chi-square over the bytes behind the header,
/// with 255 degrees of freedom, within ten standard deviations of its mean.
pub fn is_even(sample: &[u8]) -> bool {
    let Some(content) = sample.get(128..) else { return false };
    if content.len() < 256 {
        return false;
    }
    let mut counts = [0u32; 256];
    content.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let expected = content.len() as f64 / 256.0;
    let chi: f64 =
        counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    (chi - 255.0).abs() < 10.0 * (2.0f64 * 255.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as even as a cipher's: a hash of their number.
    fn even(bytes: usize) -> Vec<u8> {
        let blocks = (0..bytes.div_ceil(32) as u64).flat_map(|block| {
            let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &block.to_le_bytes());
            hash.as_ref().to_vec()
        });
        blocks.take(bytes).collect()
    }

    fn of(sample: &[u8]) -> Looks {
        look(sample, sample.len() as u64)
    }

    const FIELDS: [u8; 8] = [0x10, 0, 1, 1, 32, 64, 32, 32];

    #[test]
    fn each_kind_is_told_by_what_is_in_clear_of_it() {
        let mut sample = even(8192);
        assert_eq!(of(&sample), Looks::NoStructure);
        sample[16..24].copy_from_slice(&FIELDS);
        assert_eq!(of(&sample), Looks::HeaderInClear { page_bytes: 4096, reserved: 32 });
        sample[..16].copy_from_slice(crate::cipher::MAGIC);
        assert_eq!(of(&sample), Looks::PlainHeader { page_bytes: 4096, reserved: 32 });
        sample[100..108].copy_from_slice(&[13, 0, 0, 0, 4, 12, 0, 0]);
        assert_eq!(of(&sample), Looks::Unknown, "a plain database");
        for (begin, looks) in [
            (&b"TAPE\0\0"[..], Looks::SqlServerBackup),
            (b"MSSQLBAK\x02", Looks::SqlServerBackup),
            (&[0x1e, 0xf1, 0xb5, 0xb0], Looks::Pvk),
            (b"\n-----BEGIN PRIVATE KEY-----", Looks::Pem),
            (&[0x30, 0x82, 0x03, 0x04, 2, 1, 3, 0x30], Looks::Pfx),
            (&[0x30, 0x82, 0x03, 0x04, 0x30, 0x82], Looks::Der),
        ] {
            let mut sample = even(776);
            sample[..begin.len()].copy_from_slice(begin);
            assert_eq!(of(&sample), looks);
        }
    }

    #[test]
    fn text_zeros_and_what_is_too_short_or_no_sectors_are_nothing() {
        for sample in [&b"text ".repeat(2000)[..], &[0; 8192], &[], &even(100), &even(8191)] {
            assert_eq!(of(sample), Looks::Unknown, "{} bytes", sample.len());
        }
    }
}
