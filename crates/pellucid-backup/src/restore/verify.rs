//! Verification without a key: are the stored bytes those that were written?

use super::family::{Family, FamilySet};
use pellucid::error::{Error, Result, Subject};
use pellucid::media::{ChunkPrefix, Root, MOST_CHUNK_BYTES, PREFIX_BYTES};

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Chunks whose checksums match.
    pub chunks: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Compares the manifests of a set in all files: a signature covers the one that was looked at, and with it what the others
/// have to say.
///
/// # Errors
/// [`Error::Corrupt`] naming the first file that has another one.
pub fn same_manifest(files: &[Vec<(&Family, &FamilySet)>]) -> Result<()> {
    let mut all = files.iter().flatten();
    let Some((_, first)) = all.next() else { return Ok(()) };
    match all.find(|(_, set)| set.manifest_bytes != first.manifest_bytes) {
        None => Ok(()),
        Some((family, _)) => Err(Error::corrupt(
            Subject::File(family.source.name()),
            "its manifest is another one than that of the first file: somebody has changed one of them",
        )),
    }
}

/// Reads a set in one family: the checksum of each chunk, and the root over all of them that the manifest names.
///
/// # Errors
/// [`Error::Corrupt`] naming the first chunk that is damaged, or the manifest if chunks were exchanged.
pub fn verify_checksums(
    family: &Family,
    set: &FamilySet,
    progress: &mut dyn FnMut(u64),
) -> Result<Verified> {
    let (verified, root) = read(family, set, progress)?;
    let end = set.manifest.families.get(usize::from(set.header.family) - 1);
    if end.is_some_and(|end| end.root == root) {
        return Ok(verified);
    }
    Err(Error::corrupt(
        Subject::Manifest,
        "it names another root: chunks were exchanged, left out or repeated",
    ))
}

/// What is wrong with the first chunk of a set in one family whose checksum does not match.
pub(super) fn first_damage(family: &Family, set: &FamilySet) -> Option<Error> {
    read(family, set, &mut |_| ()).err().filter(|error| matches!(error, Error::Corrupt { .. }))
}

/// Compares all checksums, and gives the root of the chunks.
fn read(
    family: &Family,
    set: &FamilySet,
    progress: &mut dyn FnMut(u64),
) -> Result<(Verified, [u8; 32])> {
    let io = |error| Error::io(Subject::File(family.source.name()), error);
    let mut root = Root::new(&set.header_bytes);
    let mut at = set.at + set.header_bytes.len() as u64;
    let mut verified = Verified { chunks: 0, bytes: set.header_bytes.len() as u64 };
    let mut body = Vec::new();
    while at < set.manifest_at {
        let mut bytes = [0; PREFIX_BYTES];
        family.source.read_at(&mut bytes, at).map_err(io)?;
        let damaged = || Error::corrupt(Subject::Chunk(verified.chunks), "damaged");
        let prefix = ChunkPrefix::parse(&bytes).ok_or_else(damaged)?;
        body.resize((prefix.stored_bytes as usize).min(MOST_CHUNK_BYTES), 0);
        let read = family.source.read_at(&mut body, at + PREFIX_BYTES as u64).map_err(io)?;
        prefix.check(&bytes, &body[..read])?;
        root.update(&bytes);
        let stored = (PREFIX_BYTES + body.len()) as u64;
        at += stored;
        verified.chunks += 1;
        verified.bytes += stored;
        progress(stored);
    }
    Ok((verified, root.finish()))
}
