//! Finds the backup sets of a family from its end: each manifest names the length of its set, and the set before it ends where
//! that one begins.
//!
//! This takes two reads a set. It finds what a walk from the beginning finds where every set is whole, but for what lies between
//! a set header and its manifest: nobody has looked at that, and whoever reads or verifies it does.

use pellucid::error::Result;
use pellucid::media::{Manifest, MediaHeader, SetHeader, MEDIA_HEADER_BYTES};

use super::family::{fits, read_bytes, FamilySet};
use super::source::MediaSource;

/// Returns the sets of a family of `all` bytes, in order. None if anything else than whole sets is there: a walk says what.
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
        let Some(found) = manifest_before(source, media, end)? else { return Ok(None) };
        end = found.begin;
        ends.push(found);
    }
    let mut sets: Vec<FamilySet> = Vec::new();
    for end in ends.into_iter().rev() {
        match set(source, end, sets.len() as u32 + 1)? {
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
    let length = Manifest::bytes_of(usize::from(media.families));
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

/// The set of a manifest, if its header is that set's.
fn set(source: &dyn MediaSource, end: End, position: u32) -> Result<Option<FamilySet>> {
    let Some(start) = read_bytes(source, end.begin, 24)? else { return Ok(None) };
    let length = start.first_chunk().and_then(|start| SetHeader::length(start, position).ok());
    let Some(length) = length else { return Ok(None) };
    let Some(header_bytes) = read_bytes(source, end.begin, length)? else { return Ok(None) };
    let Ok(header) = SetHeader::parse(&header_bytes, position) else { return Ok(None) };
    let unsealed = match header.algorithm {
        None => Manifest::check_unsealed(&end.bytes),
        Some(_) => Ok(()),
    };
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
