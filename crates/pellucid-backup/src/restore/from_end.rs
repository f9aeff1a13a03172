//! Finds the backup sets of a family from its end: each manifest names the length of its set, and the set before it ends where
//! that one begins.
//!
//! This takes two reads a set. It finds what a walk from the beginning finds where every set is whole, but for what lies between
//! a set header and its manifest: nobody has looked at that, and whoever reads or verifies it does.

use pellucid::error::Result;
use pellucid::media::{
    Manifest, MediaHeader, MediaVersion, SetHeader, MANIFEST_END_BYTES, MEDIA_HEADER_BYTES,
};

use super::family::{fits, read_bytes, FamilySet};
use super::source::MediaSource;

/// More sets than that are not looked for from the end. A store that is not what it says could answer with one more for ever.
const SETS_MOST: usize = 10_000;

/// Returns the sets of a family of `all` bytes, in order. None if anything else than whole sets is there, or more than
/// [`SETS_MOST`]: a walk says what.
///
/// # Errors
/// [`pellucid::Error::Io`] if the family cannot be read.
pub fn sets(
    source: &dyn MediaSource,
    media: &MediaHeader,
    all: u64,
) -> Result<Option<Vec<FamilySet>>> {
    let mut ends = Vec::new();
    let mut end = all;
    while end != MEDIA_HEADER_BYTES as u64 {
        if ends.len() == SETS_MOST {
            return Ok(None);
        }
        let Some(found) = manifest_before(source, media, end)? else { return Ok(None) };
        end = found.begin;
        ends.push(found);
    }
    let mut sets: Vec<FamilySet> = Vec::new();
    for end in ends.into_iter().rev() {
        match set(source, media, end, sets.len() as u32 + 1)? {
            Some(set) => sets.push(set),
            None => return Ok(None),
        }
    }
    Ok(Some(sets))
}

/// A manifest, and where its set begins.
struct End {
    begin: u64,
    manifest_at: u64,
    manifest: Manifest,
    bytes: Vec<u8>,
}

/// The manifest that ends at byte `end`.
fn manifest_before(source: &dyn MediaSource, media: &MediaHeader, end: u64) -> Result<Option<End>> {
    let length = match media.version {
        MediaVersion::One => Some(Manifest::bytes_of(usize::from(media.families))),
        MediaVersion::Two => length_before(source, end)?,
    };
    let Some(length) = length else { return Ok(None) };
    let Some(manifest_at) = end.checked_sub(length as u64) else { return Ok(None) };
    let Some(bytes) = read_bytes(source, manifest_at, length)? else { return Ok(None) };
    let is_one = bytes.first_chunk().is_some_and(|start| Manifest::length(start).is_ok());
    let Some(manifest) = is_one.then(|| Manifest::parse(&bytes).ok()).flatten() else {
        return Ok(None);
    };
    let row = usize::from(media.family).checked_sub(1).and_then(|at| manifest.families.get(at));
    let begin = row.and_then(|row| manifest_at.checked_sub(row.bytes));
    // Each step goes back, so that they come to an end.
    let begin = begin.filter(|begin| (MEDIA_HEADER_BYTES as u64..manifest_at).contains(begin));
    Ok(begin.map(|begin| End { begin, manifest_at, manifest, bytes }))
}

/// The length of the manifest of version 2 that ends at byte `end`.
fn length_before(source: &dyn MediaSource, end: u64) -> Result<Option<usize>> {
    let Some(at) = end.checked_sub(MANIFEST_END_BYTES as u64) else { return Ok(None) };
    let bytes = read_bytes(source, at, MANIFEST_END_BYTES)?;
    Ok(bytes.and_then(|bytes| Manifest::length_by_end(bytes.first_chunk()?)))
}

/// The set of a manifest, if its header is that set's.
fn set(
    source: &dyn MediaSource,
    media: &MediaHeader,
    end: End,
    position: u32,
) -> Result<Option<FamilySet>> {
    let Some(start) = read_bytes(source, end.begin, 24)? else { return Ok(None) };
    let length = start.first_chunk().and_then(|start| SetHeader::length(start, position).ok());
    let Some(length) = length else { return Ok(None) };
    let Some(header_bytes) = read_bytes(source, end.begin, length)? else { return Ok(None) };
    let Ok(header) = SetHeader::parse(&header_bytes, position) else { return Ok(None) };
    let unsealed = match header.algorithm {
        None => Manifest::check_unsealed(&end.bytes),
        Some(_) => Ok(()),
    };
    if header.version() != media.version {
        return Ok(None);
    }
    if fits(&header, &end.manifest, end.manifest_at - end.begin).and(unsealed).is_err() {
        return Ok(None);
    }
    Ok(Some(FamilySet {
        at: end.begin,
        header,
        header_bytes,
        manifest_at: end.manifest_at,
        manifest: end.manifest,
        manifest_bytes: end.bytes,
        committed_elsewhere: false,
    }))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pellucid::media::FamilyEnd;

    use super::*;

    /// Answers each read with the manifest of a set of one byte.
    struct Endless {
        manifest: Vec<u8>,
        reads: AtomicUsize,
    }

    impl MediaSource for Endless {
        fn read_at(&self, into: &mut [u8], _: u64) -> io::Result<usize> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            assert!(self.reads.load(Ordering::Relaxed) <= 2 * SETS_MOST, "it goes on for ever");
            let count = into.len().min(self.manifest.len());
            into[..count].copy_from_slice(&self.manifest[..count]);
            Ok(count)
        }

        fn bytes(&self) -> io::Result<u64> {
            Ok(1 << 60)
        }

        fn name(&self) -> PathBuf {
            "endless".into()
        }
    }

    #[test]
    fn a_store_that_answers_for_ever_is_not_asked_for_ever() {
        let media = MediaHeader::single([1; 16], false, false, 0);
        let manifest = Manifest {
            set: [2; 16],
            damaged: false,
            finished: 0,
            content_bytes: 0,
            stored_bytes: 1,
            chunks: 0,
            index_chunks: 0,
            pages: 0,
            missing: 0,
            index_offset: 0,
            families: vec![FamilyEnd { bytes: 1, root: [0; 32] }],
            signing: pellucid::media::Signing::Version1,
        };
        let manifest = manifest.encode(None).unwrap();
        assert!(Manifest::parse(&manifest).is_ok());
        let store = Endless { manifest, reads: AtomicUsize::new(0) };
        assert!(sets(&store, &media, store.bytes().unwrap()).unwrap().is_none());
        assert_eq!(store.reads.load(Ordering::Relaxed), SETS_MOST);
    }
}
