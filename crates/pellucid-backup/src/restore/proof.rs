//! The proof that the chunks of a sealed set are those that its manifest is about.
//!
//! The manifest, and with it a signature, covers the roots of the families, a root covers the prefixes of a family's chunks,
//! and the checksum in a prefix covers what is stored behind it. So every prefix that is used is kept, and all of them together
//! have to give the root; from then on no other one is taken. 56 bytes a chunk.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pellucid::error::{Error, Result, Subject};
use pellucid::media::{ChunkPrefix, Manifest, Root, PREFIX_BYTES};

use super::family::{Family, FamilySet};

type Prefix = [u8; PREFIX_BYTES];

/// The prefixes of a sealed set's chunks.
#[derive(Debug)]
pub struct Proof {
    seen: Mutex<Seen>,
    is_signed: bool,
}

#[derive(Debug, Default)]
struct Seen {
    /// By family, from 1, and offset in the set.
    prefixes: BTreeMap<(u16, u64), Prefix>,
    is_whole: bool,
}

impl Proof {
    /// Of nothing yet. `is_signed` says what it means if they are other chunks.
    pub fn new(is_signed: bool) -> Self {
        Self { seen: Mutex::default(), is_signed }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn others(&self) -> Error {
        match self.is_signed {
            true => not_signed(),
            false => Error::corrupt(
                Subject::Manifest,
                "it names another root: chunks were exchanged, left out or repeated",
            ),
        }
    }

    /// Takes the prefix of a chunk that is going to be used.
    ///
    /// # Errors
    /// [`Error::Unauthentic`], of a set without a signature [`Error::Corrupt`], if another one is known for its place.
    pub fn take(&self, family: u16, offset: u64, prefix: &Prefix) -> Result<()> {
        let mut seen = self.seen();
        let is_whole = seen.is_whole;
        let known = match seen.prefixes.get(&(family, offset)) {
            None if !is_whole => {
                seen.prefixes.insert((family, offset), *prefix);
                return Ok(());
            }
            known => known,
        };
        match known == Some(prefix) {
            true => Ok(()),
            false => Err(self.others()),
        }
    }

    /// Compares the roots of all families with those of the manifest. Prefixes that were not used yet are read.
    ///
    /// # Errors
    /// The same if no copy of a family gives its root.
    pub fn check(
        &self,
        families: &[Vec<(&Family, &FamilySet)>],
        manifest: &Manifest,
    ) -> Result<()> {
        let mut seen = self.seen();
        if seen.is_whole {
            return Ok(());
        }
        for ((number, copies), end) in (1..).zip(families).zip(&manifest.families) {
            let mut found = None;
            let mut trouble = None;
            for (family, set) in copies {
                // Copies are the same bytes, and their headers are used before this is known.
                if copies.iter().any(|(_, other)| other.header_bytes != set.header_bytes) {
                    return Err(self.others());
                }
                match walk(&seen, number, family, set, end.bytes, || self.others()) {
                    Ok((root, prefixes)) if root == end.root => found = Some(prefixes),
                    Ok(_) => {}
                    Err(error) => trouble = Some(error),
                }
                if found.is_some() {
                    break;
                }
            }
            let prefixes = found.ok_or_else(|| trouble.unwrap_or_else(|| self.others()))?;
            // One that was used and is not among them lies where no chunk begins.
            let of_family = (number, 0)..=(number, u64::MAX);
            if seen.prefixes.range(of_family).any(|(place, _)| !prefixes.contains_key(&place.1)) {
                return Err(self.others());
            }
            let placed = prefixes.into_iter().map(|(offset, prefix)| ((number, offset), prefix));
            seen.prefixes.extend(placed);
        }
        seen.is_whole = true;
        Ok(())
    }
}

/// The root of one copy, and the prefixes in it; those that were used are taken as they were.
fn walk(
    seen: &Seen,
    number: u16,
    family: &Family,
    set: &FamilySet,
    bytes: u64,
    others: impl Fn() -> Error,
) -> Result<([u8; 32], BTreeMap<u64, Prefix>)> {
    let mut root = Root::new(&set.header_bytes);
    let mut prefixes = BTreeMap::new();
    let mut offset = set.header_bytes.len() as u64;
    while offset < bytes {
        let prefix = match seen.prefixes.get(&(number, offset)) {
            Some(prefix) => *prefix,
            None => {
                let mut prefix = [0; PREFIX_BYTES];
                let read = family.source.read_at(&mut prefix, set.at + offset);
                read.map_err(|error| Error::io(Subject::File(family.source.name()), error))?;
                prefix
            }
        };
        let parsed = ChunkPrefix::parse(&prefix).ok_or_else(&others)?;
        root.update(&prefix);
        prefixes.insert(offset, prefix);
        offset += (PREFIX_BYTES + parsed.stored_bytes as usize) as u64;
    }
    Ok((root.finish(), prefixes))
}

fn not_signed() -> Error {
    Error::unauthentic(
        Subject::Manifest,
        "its roots are not those of the chunks: they are not the ones that were signed",
    )
}
