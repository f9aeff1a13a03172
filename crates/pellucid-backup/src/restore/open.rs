//! A backup set that was opened: its keys, its index, its chunks.

use std::path::PathBuf;

use super::family::{Family, FamilySet};
use super::log::is_log_set;
use super::media::Media;
use super::proof::Proof;
use super::signer::Signer;
use super::verify::first_damage;
use pellucid::error::{Error, Result, Subject};
use pellucid::media::{
    decompress, lay_tails, ChunkKind, ChunkPrefix, Description, Entry, Index, Kind, Manifest,
    SetHeader, SetKeys, Stored, MOST_CHUNK_BYTES, PAGE_HASH_BYTES, PREFIX_BYTES,
};
use pellucid::protector::KeySource;

/// A backup set, authenticated if it is sealed.
#[derive(Debug)]
pub struct OpenSet<'a> {
    families: Vec<Vec<(&'a Family, &'a FamilySet)>>,
    keys: Option<SetKeys>,
    manifest: Manifest,
    /// The hash of its manifest's bytes.
    hash: [u8; 32],
    index: Index,
    /// Where the last index chunk ends, from the start of the set in the first family.
    index_end: u64,
    description: Description,
    signer: Signer,
    /// The prefixes of its chunks, if somebody signed it.
    proof: Option<Proof>,
}

impl<'a> OpenSet<'a> {
    /// Opens the set at `position`.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if no key at hand opens it, [`Error::Unauthentic`] if something of it is not what was
    /// written, [`Error::Corrupt`] for damage; [`Error::Misuse`] for one in clear where sealed ones belong
    /// ([`Media::refuse_clear`]), or without a signature behind signed ones ([`Media::refuse_unsigned`]).
    pub fn open(media: &'a Media, position: u32, keys: &dyn KeySource) -> Result<Self> {
        media.refuse_clear(position)?;
        media.refuse_unsigned(position, keys)?;
        Self::open_as_it_is(media, position, keys)
    }

    /// The same; one in clear, or without a signature, is believed wherever it lies. A signature that is there is checked.
    ///
    /// # Errors
    /// As [`OpenSet::open`].
    pub fn open_as_it_is(
        media: &'a Media,
        position: u32,
        keys_at_hand: &dyn KeySource,
    ) -> Result<Self> {
        let mut families = media.set(position)?;
        let header = &first(&families)?.1.header;
        let keys = match header.algorithm {
            None => None,
            Some(algorithm) => {
                Some(SetKeys::derive(&header.unwrap(keys_at_hand)?, &header.set, algorithm)?)
            }
        };
        if let Some(keys) = &keys {
            for copies in &mut families {
                retain_authentic(copies, |(_, set)| {
                    SetHeader::authenticate(&set.header_bytes, keys, position)?;
                    Manifest::authenticate(&set.manifest_bytes, keys)
                })?;
            }
        }
        let (_, set) = first(&families)?;
        let manifest = set.manifest.clone();
        let hash = Manifest::hash(&set.manifest_bytes);
        let signer = Signer::of(&set.header, &manifest, keys_at_hand)?;
        let description = set.header.described(keys.as_ref())?;
        for (family, other) in families.iter().flatten() {
            if other.manifest != manifest {
                return Err(Error::corrupt(
                    Subject::File(family.source.name()),
                    "its manifest is another one than that of the first family",
                ));
            }
        }
        let is_signed = manifest.signing.signature().is_some();
        // A set's key makes the tags of other chunks right, too: only the roots tie them to the manifest, which the history
        // may know.
        let proof = keys.is_some().then(|| Proof::new(is_signed));
        let mut opened = Self {
            families,
            keys,
            manifest,
            hash,
            index: Index::default(),
            index_end: 0,
            description,
            signer,
            proof,
        };
        // Of a far one each prefix is a request: it is proven when all were read. So is one without a signature, whose damage
        // is told by the chunk that has it.
        if is_signed && !opened.is_far() {
            opened.prove()?;
        }
        opened.index = opened.read_index()?;
        Ok(opened)
    }

    /// Its header, as it is in the first family.
    pub fn header(&self) -> &SetHeader {
        // `open` saw that there is one.
        &self.families[0][0].1.header
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The file that has it, the first one of several.
    pub fn file(&self) -> PathBuf {
        self.families[0][0].0.source.name()
    }

    /// The hash of its manifest, which the next set of the chain has, and a differential of it.
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// Who signed it.
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// Compares the chunks of a sealed set with the roots in its manifest. What was read before this is not to be used before
    /// this either.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if they are not those of a set that was signed, [`Error::Corrupt`] of another one, and of one
    /// that is damaged.
    pub fn prove(&self) -> Result<()> {
        let Some(proof) = &self.proof else { return Ok(()) };
        let proven = proof.check(&self.families, &self.manifest);
        match proven {
            // A root says nothing of why it is another one: a checksum that does not match tells damage from an exchange. Of a
            // far one each was compared when its chunk was read.
            Err(error @ Error::Unauthentic { .. }) if !self.is_far() => {
                Err(self.damage().unwrap_or(error))
            }
            proven => proven,
        }
    }

    /// The first chunk whose checksum does not match, in any copy.
    fn damage(&self) -> Option<Error> {
        self.families.iter().flatten().find_map(|(family, set)| first_damage(family, set))
    }

    fn is_far(&self) -> bool {
        self.families.iter().flatten().any(|(family, _)| family.source.is_far())
    }

    /// Its index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// What it is called.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The key of its page hashes.
    pub fn page_hash_key(&self) -> [u8; 32] {
        self.keys.as_ref().map_or(self.header().page_hash_key, |keys| *keys.page_hash())
    }

    /// The hashes of all pages of a full set, from page 1 on.
    ///
    /// # Errors
    /// As [`OpenSet::read`].
    pub fn page_hashes(&self) -> Result<Vec<u8>> {
        let mut hashes = Vec::new();
        self.each_page_hashes(&mut |more| hashes.extend_from_slice(more))?;
        self.prove()?;
        Ok(hashes)
    }

    /// Reads the hashes and keeps none.
    ///
    /// # Errors
    /// As [`OpenSet::page_hashes`].
    pub fn verify_page_hashes(&self) -> Result<()> {
        self.each_page_hashes(&mut |_| ())
    }

    /// Each chunk of hashes once and in order, so that they are no more than the set has pages and its media have bytes.
    fn each_page_hashes(&self, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        let corrupt =
            || Error::corrupt(Subject::Index, "its page hashes are not those of its pages");
        let last = match self.header().kind {
            Kind::Full => u64::from(self.header().pages),
            Kind::Differential => 0,
            Kind::Log => return Err(is_log_set(self.header().position)),
        };
        let mut content = Content::default();
        let mut next = 1u64;
        for (number, entry) in (0..).zip(&self.index.hashes) {
            let prefix = self.read(entry, &mut content)?;
            let fits = prefix.kind == ChunkKind::PageHashes
                && prefix.number == number
                && u64::from(prefix.first_page) == next
                && content.bytes.len() as u64 == u64::from(prefix.pages) * PAGE_HASH_BYTES as u64;
            next += u64::from(prefix.pages);
            if !fits || next > u64::from(self.header().pages) + 1 {
                return Err(corrupt());
            }
            each(&content.bytes);
        }
        if next == last + 1 {
            Ok(())
        } else {
            Err(corrupt())
        }
    }

    /// Reads the padding: zeros, in chunks behind all others, and nothing else.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if anything else is there; as [`OpenSet::read`].
    pub fn verify_padding(&self) -> Result<()> {
        if self.header().version2.is_none() {
            return Ok(());
        }
        let corrupt = || Error::corrupt(Subject::Padding, "something else than padding is there");
        let after = |offset: u64, stored: u32| {
            offset.checked_add(PREFIX_BYTES as u64 + u64::from(stored)).ok_or_else(corrupt)
        };
        let mut number = 0;
        let mut content = Content::default();
        for ((family, copies), end) in (1..).zip(&self.families).zip(&self.manifest.families) {
            let header = copies.first().map_or(0, |(_, set)| set.header_bytes.len() as u64);
            let mut offset = if family == 1 { self.index_end } else { header };
            for entry in self.index.chunks.iter().chain(&self.index.hashes) {
                if entry.family == family {
                    offset = offset.max(after(entry.offset, entry.stored_bytes)?);
                }
            }
            while offset < end.bytes {
                let wanted = Wanted { family, offset, checksum: None };
                let prefix = self.read_chunk(&wanted, &mut content)?;
                let fits = prefix.kind == ChunkKind::Padding
                    && self.header().is_padded()
                    && (prefix.number, prefix.first_page, prefix.pages) == (number, 0, 0)
                    && content.bytes.iter().all(|byte| *byte == 0);
                if !fits {
                    return Err(corrupt());
                }
                number += 1;
                offset = after(offset, prefix.stored_bytes)?;
            }
            if offset != end.bytes {
                return Err(corrupt());
            }
        }
        Ok(())
    }

    fn read_index(&mut self) -> Result<Index> {
        let mut bytes = Vec::new();
        let mut offset = self.manifest.index_offset;
        let mut content = Content::default();
        for number in 0..self.manifest.index_chunks {
            let entry = Wanted { family: 1, offset, checksum: None };
            let prefix = self.read_chunk(&entry, &mut content)?;
            if prefix.kind != ChunkKind::Index || prefix.number != u64::from(number) {
                return Err(Error::corrupt(Subject::Index, "another chunk is in its place"));
            }
            bytes.extend_from_slice(&content.bytes);
            offset += (PREFIX_BYTES + prefix.stored_bytes as usize) as u64;
        }
        self.index_end = offset;
        let index = Index::parse(&bytes)?;
        if index.chunks.len() != self.manifest.chunks as usize
            || index.missing.len() != self.manifest.missing as usize
        {
            return Err(Error::corrupt(Subject::Index, "it does not fit the manifest"));
        }
        Ok(index)
    }

    /// Reads, checks, opens and unpacks the chunk of an index entry.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Unauthentic`] naming the chunk, if no copy of its family has it whole.
    pub fn read(&self, entry: &Entry, content: &mut Content) -> Result<ChunkPrefix> {
        let wanted = Wanted {
            family: entry.family,
            offset: entry.offset,
            checksum: Some((entry.checksum, entry.stored_bytes)),
        };
        let prefix = self.read_chunk(&wanted, content)?;
        if prefix.first_page != entry.first_page || prefix.pages != entry.pages {
            return Err(Error::corrupt(prefix.subject(), "it is not the one that the index names"));
        }
        Ok(prefix)
    }

    fn read_chunk(&self, wanted: &Wanted, content: &mut Content) -> Result<ChunkPrefix> {
        let missing = || Error::corrupt(Subject::Index, "it names a family that there is not");
        let at = usize::from(wanted.family).checked_sub(1).ok_or_else(missing)?;
        let copies = self.families.get(at).ok_or_else(missing)?;
        let mut trouble = missing();
        for (family, set) in copies {
            match self.read_copy(family, set, wanted, content) {
                Ok(prefix) => return Ok(prefix),
                Err(error) => trouble = error,
            }
        }
        content.bytes.clear();
        Err(trouble)
    }

    fn read_copy(
        &self,
        family: &Family,
        set: &FamilySet,
        wanted: &Wanted,
        content: &mut Content,
    ) -> Result<ChunkPrefix> {
        let io = |error| Error::io(Subject::File(family.source.name()), error);
        let corrupt = || Error::corrupt(Subject::File(family.source.name()), "a chunk is damaged");
        let at = set.at.checked_add(wanted.offset).ok_or_else(corrupt)?;
        let mut bytes = [0; PREFIX_BYTES];
        let read = family.source.read_at(&mut bytes, at).map_err(io)?;
        let prefix = ChunkPrefix::parse(&bytes).filter(|_| read == PREFIX_BYTES);
        let prefix = prefix.ok_or_else(corrupt)?;
        let expected = (ChunkPrefix::checksum_of(&bytes), prefix.stored_bytes);
        if wanted.checksum.is_some_and(|checksum| checksum != expected) {
            return Err(Error::corrupt(prefix.subject(), "it is not the one that the index names"));
        }
        content.stored.resize((prefix.stored_bytes as usize).min(MOST_CHUNK_BYTES), 0);
        let read =
            family.source.read_at(&mut content.stored, at + PREFIX_BYTES as u64).map_err(io)?;
        content.stored.truncate(read);
        // They are gathered in memory: no more of them than there is on the media.
        if !prefix.kind.has_pages() && prefix.stored != Stored::Raw {
            return Err(Error::corrupt(prefix.subject(), "it is compressed, and never is"));
        }
        prefix.check(&bytes, &content.stored)?;
        if let Some(proof) = &self.proof {
            proof.take(wanted.family, wanted.offset, &bytes)?;
        }
        prefix.open(self.keys.as_ref(), &bytes, &mut content.stored)?;
        decompress(
            prefix.stored,
            &content.stored,
            &mut content.bytes,
            prefix.content_bytes as usize,
            prefix.subject(),
        )?;
        if prefix.without_tails
            && !lay_tails(prefix.kind, &mut content.bytes, prefix.pages as usize)
        {
            return Err(Error::corrupt(prefix.subject(), "its pages do not fit"));
        }
        Ok(prefix)
    }
}

/// Room for reading chunks.
#[derive(Debug, Default)]
pub struct Content {
    /// The content of the last chunk read.
    pub bytes: Vec<u8>,
    stored: Vec<u8>,
}

struct Wanted {
    family: u16,
    offset: u64,
    checksum: Option<([u8; 16], u32)>,
}

fn first<'a, 'b>(
    families: &'b [Vec<(&'a Family, &'a FamilySet)>],
) -> Result<&'b (&'a Family, &'a FamilySet)> {
    families
        .first()
        .and_then(|copies| copies.first())
        .ok_or_else(|| Error::misuse(Subject::MediaHeader, "no media are named"))
}

/// Leaves the copies that authenticate; it is an error if none does.
fn retain_authentic<T>(copies: &mut Vec<T>, check: impl Fn(&T) -> Result<()>) -> Result<()> {
    let mut trouble = None;
    copies.retain(|copy| match check(copy) {
        Ok(()) => true,
        Err(error) => {
            trouble = Some(error);
            false
        }
    });
    match trouble {
        Some(error) if copies.is_empty() => Err(error),
        _ => Ok(()),
    }
}
