//! One file of a media set: its media header and the backup sets in it, found by walking from chunk to chunk.
//!
//! Walking needs no key and reads a prefix of each chunk; it is what tells a set that is whole from one that was
//! interrupted and from damage. Where that would be a request for each chunk, whole sets are found [from the end](from_end).

use pellucid::error::{Error, Result, Subject};
use pellucid::media::{
    ChunkKind, ChunkPrefix, Manifest, MediaHeader, MediaVersion, SetHeader, MEDIA_HEADER_BYTES,
    PREFIX_BYTES, SET_MAGIC,
};

use super::from_end;
use super::source::MediaSource;

/// One backup set in one family.
#[derive(Debug, Clone)]
pub struct FamilySet {
    /// Where its set header begins.
    pub at: u64,
    /// The set header.
    pub header: SetHeader,
    /// Its bytes.
    pub header_bytes: Vec<u8>,
    /// Where its manifest begins; from the start of the file.
    pub manifest_at: u64,
    /// The manifest.
    pub manifest: Manifest,
    /// Its bytes.
    pub manifest_bytes: Vec<u8>,
    /// Whether the manifest is that of another family: this one was not reached when the set was committed.
    pub committed_elsewhere: bool,
}

/// A set whose manifest is not there, or not whole.
#[derive(Debug, Clone)]
pub struct Begun {
    at: u64,
    header: SetHeader,
    header_bytes: Vec<u8>,
    /// Where its last whole chunk ends.
    end: u64,
}

/// What is behind the last whole backup set.
#[derive(Debug)]
pub enum Tail {
    /// Nothing.
    Clean,
    /// A set that was begun and never finished; the next one takes its place.
    Interrupted {
        /// Its position.
        position: u32,
        /// Bytes of it.
        bytes: u64,
        /// What there is of it, if there is more than a part of its header.
        begun: Option<Box<Begun>>,
    },
    /// Something else: sets may follow, but cannot be found.
    Damaged(Error),
}

/// One file of a media set.
pub struct Family {
    /// The file.
    pub source: Box<dyn MediaSource>,
    /// Its media header.
    pub header: MediaHeader,
    /// Its whole backup sets, in order.
    pub sets: Vec<FamilySet>,
    /// Where they end.
    pub end: u64,
    /// What comes behind them.
    pub tail: Tail,
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Family").field("file", &self.source.name()).finish_non_exhaustive()
    }
}

impl Family {
    /// Walks through a file.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it does not begin as media do, [`Error::Corrupt`] if it is damaged there, [`Error::Io`] if it cannot be read. Damage further on is
    /// the family's [`Tail`].
    pub fn open(source: Box<dyn MediaSource>) -> Result<Self> {
        let io = |error| Error::io(Subject::File(source.name()), error);
        let mut bytes = vec![0; MEDIA_HEADER_BYTES];
        let read = source.read_at(&mut bytes, 0).map_err(io)?;
        let header = MediaHeader::parse(&bytes[..read]).map_err(|error| match error {
            Error::WrongKind { .. } if begins_set_behind(source.as_ref()) => {
                Error::corrupt(Subject::MediaHeader, "damaged from its first bytes on")
            }
            error => error,
        })?;
        let all = source.bytes().map_err(io)?;
        if source.is_far() {
            if let Some(sets) = from_end::sets(source.as_ref(), &header, all)? {
                return Ok(Self { source, header, sets, end: all, tail: Tail::Clean });
            }
        }
        let mut walk = Walk { source: source.as_ref(), all, version: header.version };
        let mut sets: Vec<FamilySet> = Vec::new();
        let mut end = MEDIA_HEADER_BYTES as u64;
        let tail = loop {
            if end == all {
                break Tail::Clean;
            }
            match walk.set(end, sets.len() as u32 + 1)? {
                Step::Set(set) => {
                    end = set.manifest_at + set.manifest_bytes.len() as u64;
                    sets.push(*set);
                }
                Step::Tail(tail) => break tail,
            }
        };
        Ok(Self { source, header, sets, end, tail })
    }

    /// Whether its media header or a set of it, one that was only begun among them, says that sets of it are sealed.
    pub fn is_sealed(&self) -> bool {
        let begun = match &self.tail {
            Tail::Interrupted { begun: Some(begun), .. } => begun.header.algorithm.is_some(),
            _ => false,
        };
        begun || self.header.encrypted || self.sets.iter().any(|set| set.header.algorithm.is_some())
    }

    /// Takes a manifest of another family for the set that was begun here, if it names this family as it is.
    pub fn commit_by(&mut self, other: &FamilySet) {
        let Tail::Interrupted { begun: Some(begun), .. } = &self.tail else { return };
        let family = usize::from(begun.header.family) - 1;
        let named = other.manifest.families.get(family);
        let fits = other.manifest.set == begun.header.set
            && named.is_some_and(|end| end.bytes == begun.end - begun.at);
        if !fits {
            return;
        }
        self.end = begun.end;
        self.sets.push(FamilySet {
            at: begun.at,
            header: begun.header.clone(),
            header_bytes: begun.header_bytes.clone(),
            manifest_at: begun.end,
            manifest: other.manifest.clone(),
            manifest_bytes: other.manifest_bytes.clone(),
            committed_elsewhere: true,
        });
        self.tail = Tail::Clean;
    }

    /// The set at `position`, from 1.
    ///
    /// # Errors
    /// [`Error::Corrupt`] saying why there is none, [`Error::Misuse`] if the media end before it.
    pub fn set(&self, position: u32) -> Result<&FamilySet> {
        let subject = Subject::BackupSet(position);
        let at = (position as usize).checked_sub(1);
        if let Some(set) = at.and_then(|at| self.sets.get(at)) {
            return Ok(set);
        }
        Err(match &self.tail {
            Tail::Interrupted { bytes, .. } if at == Some(self.sets.len()) => Error::corrupt(
                subject,
                format!("its backup was interrupted after {bytes} bytes: it is not complete"),
            ),
            // A newer version's set is no damage.
            Tail::Damaged(error @ Error::Unsupported { .. }) => {
                Error::unsupported(subject, error.to_string())
            }
            Tail::Damaged(error) => Error::corrupt(subject, format!("cannot be found: {error}")),
            _ => {
                Error::misuse(subject, format!("there is none: the media have {}", self.sets.len()))
            }
        })
    }
}

enum Step {
    Set(Box<FamilySet>),
    Tail(Tail),
}

struct Walk<'a> {
    source: &'a dyn MediaSource,
    all: u64,
    version: MediaVersion,
}

impl Walk<'_> {
    /// The set that begins at byte `at`.
    fn set(&mut self, at: u64, position: u32) -> Result<Step> {
        let bytes = self.all - at;
        let interrupted = || Step::Tail(Tail::Interrupted { position, bytes, begun: None });
        let damaged = |error| Ok(Step::Tail(Tail::Damaged(error)));
        let Some(start) = self.array::<24>(at)? else { return Ok(interrupted()) };
        let length = match SetHeader::length(&start, position) {
            Ok(length) => length,
            Err(error) => return damaged(error),
        };
        let Some(header_bytes) = self.bytes(at, length)? else { return Ok(interrupted()) };
        let header = match SetHeader::parse(&header_bytes, position) {
            Ok(header) => header,
            Err(error) => return damaged(error),
        };
        if header.version() != self.version {
            return damaged(other_version(position));
        }
        let mut next = at + length as u64;
        let mut padding = false;
        let begun = |end| {
            let (header, header_bytes) = (header.clone(), header_bytes.clone());
            let begun = Some(Box::new(Begun { at, header, header_bytes, end }));
            Ok(Step::Tail(Tail::Interrupted { position, bytes, begun }))
        };
        loop {
            let Some(prefix) = self.array::<PREFIX_BYTES>(next)? else { return begun(next) };
            if Manifest::begins(&prefix) {
                break;
            }
            let Some(chunk) = ChunkPrefix::parse_in(self.version, &prefix) else {
                if let Some(error) = self.newer_chunk(next, &prefix)? {
                    return damaged(error);
                }
                return damaged(Error::corrupt(
                    Subject::BackupSet(position),
                    format!("neither a chunk nor its end is at byte {next}"),
                ));
            };
            padding |= chunk.kind == ChunkKind::Padding;
            if padding && (chunk.kind != ChunkKind::Padding || !header.is_padded()) {
                let what = format!("padding and other chunks are mixed at byte {next}");
                return damaged(Error::corrupt(Subject::BackupSet(position), what));
            }
            let end = next + (PREFIX_BYTES + chunk.stored_bytes as usize) as u64;
            if end > self.all {
                return begun(next);
            }
            next = end;
        }
        let Some(start) = self.array::<24>(next)? else { return begun(next) };
        let length = match Manifest::length(&start) {
            Ok(length) => length,
            Err(error) => return damaged(error),
        };
        if self.version == MediaVersion::Two {
            let families = usize::from(header.families);
            let at = next + Manifest::signature_length_at(families) as u64;
            let signature = self.array::<2>(at)?.map(u16::from_be_bytes);
            let fits =
                signature.map_or(Ok(()), |own| Manifest::check_length(length, families, own));
            if let Err(error) = fits {
                return damaged(error);
            }
        }
        let Some(manifest_bytes) = self.bytes(next, length)? else { return begun(next) };
        let manifest = match Manifest::parse(&manifest_bytes) {
            Ok(manifest) => manifest,
            Err(error) => return damaged(error),
        };
        let unsealed = match header.algorithm {
            None => Manifest::check_unsealed(&manifest_bytes),
            Some(_) => Ok(()),
        };
        if let Err(error) = fits(&header, &manifest, next - at).and(unsealed) {
            return damaged(error);
        }
        let manifest_at = next;
        Ok(Step::Set(Box::new(FamilySet {
            at,
            header,
            header_bytes,
            manifest_at,
            manifest,
            manifest_bytes,
            committed_elsewhere: false,
        })))
    }

    /// What says that a chunk that is not known was made by a newer version, and is whole.
    fn newer_chunk(&self, at: u64, prefix: &[u8; PREFIX_BYTES]) -> Result<Option<Error>> {
        let Some(stored) = ChunkPrefix::newer_bytes(self.version, prefix) else { return Ok(None) };
        let body = self.bytes(at + PREFIX_BYTES as u64, stored)?;
        Ok(body.and_then(|body| ChunkPrefix::newer(self.version, prefix, &body)))
    }

    fn array<const N: usize>(&self, at: u64) -> Result<Option<[u8; N]>> {
        Ok(self.bytes(at, N)?.and_then(|bytes| bytes.try_into().ok()))
    }

    fn bytes(&self, at: u64, bytes: usize) -> Result<Option<Vec<u8>>> {
        read_bytes(self.source, at, bytes)
    }
}

/// Reads `bytes` bytes from `at` on. None if the file ends before.
pub(super) fn read_bytes(
    source: &dyn MediaSource,
    at: u64,
    bytes: usize,
) -> Result<Option<Vec<u8>>> {
    let mut read = vec![0; bytes];
    let count = source
        .read_at(&mut read, at)
        .map_err(|error| Error::io(Subject::File(source.name()), error))?;
    Ok((count == bytes).then_some(read))
}

/// Whether a backup set begins where the media header ends, whatever lies in the header's place.
fn begins_set_behind(source: &dyn MediaSource) -> bool {
    let mut magic = [0; SET_MAGIC.len()];
    let read = source.read_at(&mut magic, MEDIA_HEADER_BYTES as u64);
    read.is_ok_and(|count| count == magic.len()) && magic == *SET_MAGIC
}

/// What is said of a set that is not of its media's version. An older one has no signature and no place in a chain.
pub(super) fn other_version(position: u32) -> Error {
    Error::corrupt(
        Subject::BackupSet(position),
        "its format version is another one than that of its media: no writer puts it there",
    )
}

/// Whether a manifest is that of the set it stands behind.
pub(super) fn fits(header: &SetHeader, manifest: &Manifest, bytes: u64) -> Result<()> {
    let corrupt = |cause: &'static str| Err(Error::corrupt(Subject::Manifest, cause));
    if manifest.set != header.set {
        return corrupt("it belongs to another backup set");
    }
    if manifest.version() != header.version() {
        return corrupt("its format version is another one than the set header's");
    }
    if manifest.families.len() != usize::from(header.families) {
        return corrupt("it names another number of families than the set header");
    }
    match manifest.families.get(usize::from(header.family) - 1) {
        Some(end) if end.bytes == bytes => Ok(()),
        _ => corrupt("it names another length than the set has"),
    }
}
