//! Backup media as a reader walks through them: as they are, then with every checksum made right, opened with the key of
//! the vectors and restored to memory.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use pellucid::media::{Index, Manifest, MediaHeader, SetHeader, MEDIA_HEADER_BYTES, PREFIX_BYTES};
use pellucid_backup::restore::{
    restore_pages, verify_checksums, Family, LogSet, Media, MediaSource, OpenSet, PageTarget,
};
use pellucid::Result;
use pellucid_fuzz::{checksum, OneKeyFile};

struct Memory(Vec<u8>);

impl MediaSource for Memory {
    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(at..).unwrap_or_default();
        let bytes = rest.len().min(into.len());
        into[..bytes].copy_from_slice(&rest[..bytes]);
        Ok(bytes)
    }

    fn bytes(&self) -> std::io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn name(&self) -> PathBuf {
        "memory".into()
    }
}

struct Nowhere;

impl PageTarget for Nowhere {
    fn write(&self, _: u32, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

fn open(bytes: Vec<u8>) -> Result<()> {
    let media = Media::assemble(vec![Family::open(Box::new(Memory(bytes)))?])?;
    for position in 1..=media.sets() {
        for (family, set) in media.set(position)?.into_iter().flatten() {
            let _ = verify_checksums(family, set, &mut |_| ());
        }
        let set = OpenSet::open(&media, position, &OneKeyFile::default())?;
        let _ = restore_pages(&set, &Nowhere, 1, &mut |_| ());
        let _ = LogSet::open(&set).and_then(|log| log.verify());
    }
    Ok(())
}

/// Makes each checksum right that a walk from the beginning meets.
fn mend(bytes: &mut Vec<u8>) {
    let Some(header) = bytes.get_mut(..MEDIA_HEADER_BYTES) else { return };
    checksum(header);
    let mut at = MEDIA_HEADER_BYTES;
    while let Some(start) = bytes.get(at..).and_then(|rest| rest.first_chunk::<24>()) {
        let stored = match bytes.get(at..at + PREFIX_BYTES) {
            Some(prefix) if prefix.starts_with(b"PCHK") => {
                u32::from_be_bytes([prefix[28], prefix[29], prefix[30], prefix[31]]) as usize
            }
            _ => {
                let length = SetHeader::length(start, 1).or_else(|_| Manifest::length(start));
                let Ok(length) = length else { return };
                let Some(part) = bytes.get_mut(at..at + length) else { return };
                checksum(part);
                at += length;
                continue;
            }
        };
        let end = at + PREFIX_BYTES + stored;
        if end > bytes.len() {
            return;
        }
        let mut sum = blake3::Hasher::new();
        sum.update(&bytes[at..at + 32]).update(&bytes[at + PREFIX_BYTES..end]);
        let sum = sum.finalize();
        bytes[at + 32..at + 48].copy_from_slice(&sum.as_bytes()[..16]);
        at = end;
    }
}

fuzz_target!(|bytes: &[u8]| {
    let _ = MediaHeader::parse(bytes);
    let _ = SetHeader::parse(bytes, 1);
    let _ = Manifest::parse(bytes);
    let _ = Index::parse(bytes);
    let _ = open(bytes.to_vec());
    let mut mended = bytes.to_vec();
    mend(&mut mended);
    let _ = open(mended);
});
