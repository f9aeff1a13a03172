//! The header of a backup set in one media family: what was backed up, when, how it is stored, and
//! which protectors open it.
//!
//! Fields that are needed without a key are in clear, and authenticated by the set's key. Names and
//! paths are in the description, which is sealed if the set is.

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use super::block::{Version2, BLOCK_BYTES};
use super::header::{check_known, check_readable, made_readable};
use super::keys::SetKeys;
use super::{MediaVersion, MOST_FAMILIES};
use crate::algorithm::Algorithm;
use crate::cipher::TAG_BYTES;
use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::flags::{check_zeros, Flags, FLAGS_BYTES};
use crate::header::MAX_PROTECTORS;
use crate::protector::{unwrap_made, Binding, KeySource, Protector, Purpose};
use crate::secret::Dek;

/// The first 16 bytes of a set header.
pub const MAGIC: &[u8; 16] = b"Pellucid backup\0";
/// The most bytes of a set header.
pub const MOST_SET_HEADER_BYTES: usize = 65536;

/// Bytes before the protectors, in version 2 before the block that stands before them.
pub const FIXED_BYTES: usize = 256;
const SUMS_BYTES: usize = 64;
const ALIGNMENT: usize = 512;
const FLAG_COPY_ONLY: u8 = 1;
const FLAG_SEALED_SOURCE: u8 = 2;
/// The offset of the words of flags.
const FLAGS_AT: usize = 236;
/// Ranges before the protectors that are zero in version 1.
const ZEROS: [std::ops::Range<usize>; 3] = [80..84, 230..232, FLAGS_AT + FLAGS_BYTES..FIXED_BYTES];
/// What is zero in any set but a differential, in one that is not sealed, and in one that is or has no page hashes.
const BASE: std::ops::Range<usize> = 116..132;
const COMMITMENT: std::ops::Range<usize> = 132..164;
const PAGE_HASH_KEY: std::ops::Range<usize> = 196..228;

/// The kind of a backup set, numbered as SQL Server's `BackupType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// All pages.
    Full = 1,
    /// The commits of a stretch of the log, with all versions of the pages that they wrote. Only version 2 has it.
    Log = 2,
    /// The pages that differ from a full set.
    Differential = 5,
}

/// How the chunks of a set are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    None = 0,
    /// Zstandard frames (RFC 8878).
    Zstd = 1,
    /// LZ4 blocks.
    Lz4 = 2,
}

/// The names and texts of a set, as JSON so that later versions can add members. Unknown members
/// are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Description {
    /// The database's name.
    pub database: String,
    /// Its file.
    pub path: String,
    /// The name of the set, by the administrator.
    pub name: String,
    /// The description of the set, by the administrator.
    pub description: String,
    /// The user who made it.
    pub user: String,
    /// The machine on which it was made.
    pub machine: String,
    /// The facts that a server adds.
    #[serde(default, skip_serializing_if = "ServerFacts::is_none")]
    pub server: ServerFacts,
}

/// The facts that a server knows of a database, under SQL Server's names. Empty if no server has
/// made the set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerFacts {
    /// Logical name and file of the data, then of the log.
    pub files: Vec<(String, String)>,
    /// `FULL`, `BULK_LOGGED`, `SIMPLE`
    pub recovery_model: String,
    /// `compatibility_level`
    pub compatibility_level: u16,
    /// When it got its name, `2026-11-22 03:00:00.123`, UTC.
    pub created: String,
}

impl ServerFacts {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn texts(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let names = self.files.iter().flat_map(|(name, file)| {
            [(name.as_str(), "logical name"), (file.as_str(), "file name")]
        });
        let rest = [
            (self.recovery_model.as_str(), "recovery model"),
            (self.created.as_str(), "creation date"),
        ];
        names.chain(rest)
    }

    fn readable(&self) -> Self {
        let pair = |(name, file): &(String, String)| (made_readable(name), made_readable(file));
        Self {
            files: self.files.iter().map(pair).collect(),
            recovery_model: made_readable(&self.recovery_model),
            compatibility_level: self.compatibility_level,
            created: made_readable(&self.created),
        }
    }
}

impl Description {
    /// Returns the description with U+FFFD in the place of control characters, which a file's name
    /// may have.
    #[must_use]
    pub fn readable(self) -> Self {
        Self {
            database: made_readable(&self.database),
            path: made_readable(&self.path),
            name: made_readable(&self.name),
            description: made_readable(&self.description),
            user: made_readable(&self.user),
            machine: made_readable(&self.machine),
            server: self.server.readable(),
        }
    }

    fn texts(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let own: [(&String, &'static str); 6] = [
            (&self.database, "database name"),
            (&self.path, "database path"),
            (&self.name, "name"),
            (&self.description, "description"),
            (&self.user, "user"),
            (&self.machine, "machine"),
        ];
        own.into_iter().map(|(text, what)| (text.as_str(), what)).chain(self.server.texts())
    }

    /// Checks that name and description, which a user gave, can be shown.
    ///
    /// # Errors
    /// [`Error::Misuse`], which names the one with control characters.
    pub fn check_given(name: &str, description: &str) -> Result<()> {
        check_readable(name, "name")?;
        check_readable(description, "description")
    }
}

/// The fields of a set header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetHeader {
    /// What only version 2 has; `None` for a set of version 1.
    pub version2: Option<Version2>,
    /// The media set that it lies on.
    pub media_set: [u8; 16],
    /// Its own identity.
    pub set: [u8; 16],
    /// The number of this family, from 1.
    pub family: u16,
    /// How many families hold the set.
    pub families: u16,
    /// Its position on the media, from 1.
    pub position: u32,
    /// The kind of the set.
    pub kind: Kind,
    /// The algorithm that seals it; `None` if it is not sealed.
    pub algorithm: Option<Algorithm>,
    /// The compression.
    pub compression: Compression,
    /// Whether no differential is based on this full set.
    pub copy_only: bool,
    /// Whether the database was a sealed one.
    pub sealed_source: bool,
    /// SQLite's page size.
    pub page_size: u32,
    /// Pages of the database.
    pub pages: u32,
    /// Pages of a chunk, but perhaps the last.
    pub chunk_pages: u32,
    /// When it was begun, in microseconds since 1970.
    pub begun: u64,
    /// When it expires, in seconds since 1970; 0 for never.
    pub expires: u64,
    /// The file id of a sealed database; zeros for a plain one.
    pub source: [u8; 16],
    /// The full set that a differential is based on; zeros for a full one.
    pub base: [u8; 16],
    /// The commitment to the set key; zeros if there is none.
    pub commitment: [u8; 32],
    /// SHA-256 thumbprint of the certificate of the database's DEK; zeros for none.
    pub source_thumbprint: [u8; 32],
    /// Key of the page hashes of a set that is not sealed; zeros in one that is.
    pub page_hash_key: [u8; 32],
    /// The flags, which a newer version may have set.
    pub flags: Flags,
    /// The protectors of the set key, encoded.
    pub protectors: Vec<Vec<u8>>,
    /// The description as it is stored: JSON, or sealed JSON.
    pub description: Vec<u8>,
}

impl SetHeader {
    /// Its format version.
    pub fn version(&self) -> MediaVersion {
        match self.version2 {
            None => MediaVersion::One,
            Some(_) => MediaVersion::Two,
        }
    }

    /// Whether it says that it is padded.
    pub fn is_padded(&self) -> bool {
        self.version2.is_some_and(|own| own.padded)
    }

    /// Unwraps the set key by the first protector that opens.
    ///
    /// # Errors
    /// Those of [`unwrap_made`], about this set; [`Error::Misuse`] for a set that is not sealed.
    pub fn unwrap(&self, keys: &dyn KeySource) -> Result<Dek> {
        let protectors = self.protectors()?;
        unwrap_made(&protectors, &self.binding()?, keys, self.begun / 1_000_000).map_err(|error| {
            match error {
                Error::MissingKey { cause, .. } => {
                    Error::missing_key(Subject::BackupSet(self.position), cause)
                }
                error => error,
            }
        })
    }

    /// Its protectors.
    ///
    /// # Errors
    /// Those of [`Protector::decode`].
    pub fn protectors(&self) -> Result<Vec<Protector>> {
        let decode = |bytes: &Vec<u8>| Protector::decode(bytes).map(|(protector, _)| protector);
        self.protectors.iter().map(decode).collect()
    }

    /// The binding of its protectors.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a set that is not sealed.
    pub fn binding(&self) -> Result<Binding<'_>> {
        let algorithm = self.algorithm.ok_or_else(|| {
            Error::misuse(Subject::BackupSet(self.position), "it is not encrypted: it has no key")
        })?;
        let commitment = &self.commitment;
        Ok(Binding { purpose: Purpose::Backup, id: &self.set, algorithm, commitment })
    }

    /// Stores the description, sealed if there are keys.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it cannot be written down, or has control characters.
    pub fn describe(&mut self, description: &Description, keys: Option<&SetKeys>) -> Result<()> {
        for (text, what) in description.texts() {
            check_readable(text, what)?;
        }
        let misuse = |error| Error::misuse(Subject::BackupSet(self.position), format!("{error}"));
        let json = serde_json::to_vec(description).map_err(misuse)?;
        self.description = match keys {
            None => json,
            Some(keys) => {
                let mut sealed = vec![0; json.len()];
                let mut tag = [0; TAG_BYTES];
                let (nonce, aad) = self.description_place();
                keys.description().seal(&nonce, &aad, &json, &mut sealed, &mut tag)?;
                sealed.extend_from_slice(&tag);
                sealed
            }
        };
        Ok(())
    }

    /// The description.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it does not open, [`Error::Corrupt`] if it is no description.
    pub fn described(&self, keys: Option<&SetKeys>) -> Result<Description> {
        let subject = || Subject::BackupSet(self.position);
        let opened;
        let json = match keys {
            None => &self.description,
            Some(keys) => {
                let unauthentic =
                    || Error::unauthentic(subject(), "its description does not authenticate");
                let (sealed, tag) = self.description.split_last_chunk().ok_or_else(unauthentic)?;
                let (nonce, aad) = self.description_place();
                let mut json = vec![0; sealed.len()];
                keys.description()
                    .open(&nonce, &aad, sealed, tag, &mut json)
                    .map_err(|_| unauthentic())?;
                opened = json;
                &opened
            }
        };
        let description: Description = serde_json::from_slice(json)
            .map_err(|_| Error::corrupt(subject(), "its description cannot be read"))?;
        // In a set in clear anybody may have written it.
        Ok(description.readable())
    }

    /// Makes nonce and AAD of the description. One key seals the description once for each family.
    fn description_place(&self) -> ([u8; 12], Vec<u8>) {
        let mut nonce = [0; 12];
        nonce[10..].copy_from_slice(&self.family.to_be_bytes());
        (nonce, self.set.to_vec())
    }

    /// Encodes the header. Its length is a multiple of 512 bytes.
    ///
    /// # Errors
    /// [`Error::LimitReached`] if protectors and description do not fit.
    pub fn encode(&self, keys: Option<&SetKeys>) -> Result<Vec<u8>> {
        let used = before_protectors(self.version())
            + self.protectors.iter().map(Vec::len).sum::<usize>()
            + self.description.len()
            + SUMS_BYTES;
        let bytes = used.next_multiple_of(ALIGNMENT);
        if self.protectors.len() > MAX_PROTECTORS || bytes > MOST_SET_HEADER_BYTES {
            return Err(Error::limit(
                Subject::BackupSet(self.position),
                format!(
                    "{} protectors and a description of {} bytes do not fit into its header ({used} of \
                     {MOST_SET_HEADER_BYTES} bytes, {MAX_PROTECTORS} protectors at most)",
                    self.protectors.len(),
                    self.description.len()
                ),
            ));
        }
        let mut out = Vec::with_capacity(bytes);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.version().encode());
        out.extend_from_slice(&(bytes as u32).to_be_bytes());
        out.extend_from_slice(&self.media_set);
        out.extend_from_slice(&self.set);
        out.extend_from_slice(&self.family.to_be_bytes());
        out.extend_from_slice(&self.families.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
        let flags = if self.copy_only { FLAG_COPY_ONLY } else { 0 }
            | if self.sealed_source { FLAG_SEALED_SOURCE } else { 0 };
        let algorithm = self.algorithm.map_or(0, Algorithm::id);
        out.extend_from_slice(&[self.kind as u8, algorithm, self.compression as u8, flags]);
        for number in [self.page_size, self.pages, self.chunk_pages, 0] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.begun.to_be_bytes());
        out.extend_from_slice(&self.expires.to_be_bytes());
        out.extend_from_slice(&self.source);
        out.extend_from_slice(&self.base);
        out.extend_from_slice(&self.commitment);
        out.extend_from_slice(&self.source_thumbprint);
        out.extend_from_slice(&self.page_hash_key);
        out.extend_from_slice(&(self.protectors.len() as u16).to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&(self.description.len() as u32).to_be_bytes());
        out.extend_from_slice(&self.flags.encode());
        out.resize(FIXED_BYTES, 0);
        if let Some(own) = &self.version2 {
            own.encode(self.kind, &mut out);
        }
        self.protectors.iter().for_each(|protector| out.extend_from_slice(protector));
        out.extend_from_slice(&self.description);
        out.resize(bytes - SUMS_BYTES, 0);
        finish(out, keys)
    }

    /// How many bytes the set header that begins with `bytes` has.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if none begins there.
    pub fn length(bytes: &[u8; 24], position: u32) -> Result<usize> {
        let corrupt = || Error::corrupt(Subject::BackupSet(position), "no backup set begins here");
        let mut fields = Fields::new(bytes);
        if fields.array().as_ref() != Some(MAGIC) {
            return Err(corrupt());
        }
        let version = MediaVersion::of(bytes)?;
        fields.take(4);
        let length = fields.u32().ok_or_else(corrupt)? as usize;
        let fits = (before_protectors(version) + SUMS_BYTES..=MOST_SET_HEADER_BYTES)
            .contains(&length)
            && length % ALIGNMENT == 0;
        if fits {
            Ok(length)
        } else {
            Err(corrupt())
        }
    }

    /// Parses a set header without a key. Nothing in it may be trusted before
    /// [`SetHeader::authenticate`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a damaged one, [`Error::Unsupported`] for an unknown type, algorithm, compression or flag, or a
    /// byte in use that is zero in this version.
    pub fn parse(bytes: &[u8], position: u32) -> Result<Self> {
        let corrupt = |cause: &'static str| Error::corrupt(Subject::BackupSet(position), cause);
        let fields = check_sum(bytes)
            .ok_or_else(|| corrupt("its header is damaged: the checksum does not match"))?;
        let version = MediaVersion::of(bytes)?;
        if bytes.len() < before_protectors(version) + SUMS_BYTES {
            return Err(corrupt("the fields of its header are malformed"));
        }
        // Fields that a newer version may have changed are checked before those that only this
        // version has.
        let subject = || Subject::BackupSet(position);
        let mut flags = [0; FLAGS_BYTES];
        flags.copy_from_slice(&bytes[FLAGS_AT..FLAGS_AT + FLAGS_BYTES]);
        let flags = Flags::parse(flags, subject())?;
        let kind = Kind::from_id(bytes[64], version)?;
        check_known(subject(), bytes[67], FLAG_COPY_ONLY | FLAG_SEALED_SOURCE)?;
        check_zeros(bytes, ZEROS, subject)?;
        let version2 = match version {
            MediaVersion::One => None,
            MediaVersion::Two => {
                let own = Version2::parse(bytes, kind, position)?;
                Some(own.ok_or_else(|| corrupt("the fields of its header are malformed"))?)
            }
        };
        let mut fields = Fields::new(fields);
        let parsed = Self::parse_fields(&mut fields, version2, kind)?;
        let header = parsed.ok_or_else(|| corrupt("the fields of its header are malformed"))?;
        let mac = bytes.len() - SUMS_BYTES;
        check_zeros(bytes, std::iter::once(mac - fields.rest().len()..mac), subject)?;
        let sealed = header.algorithm.is_some();
        let of = |is: bool, range: std::ops::Range<usize>| if is { range } else { 0..0 };
        let unused = [
            of(kind != Kind::Differential, BASE),
            of(!sealed, COMMITMENT),
            of(sealed || kind == Kind::Log, PAGE_HASH_KEY),
            of(!sealed, mac..mac + 32),
        ];
        check_zeros(bytes, unused, subject)?;
        let header = Self { flags, ..header };
        if header.position != position {
            return Err(corrupt("it says that its position is another one"));
        }
        Ok(header)
    }

    fn parse_fields(
        fields: &mut Fields<'_>,
        version2: Option<Version2>,
        kind: Kind,
    ) -> Result<Option<Self>> {
        let mut read = || {
            let ids = (fields.array()?, fields.array()?);
            let place = (fields.u16()?, fields.u16()?, fields.u32()?);
            let kinds: [u8; 4] = fields.array()?;
            let sizes = (fields.u32()?, fields.u32()?, fields.u32()?);
            fields.take(4)?;
            let times = (fields.u64()?, fields.u64()?);
            let sources = (fields.array()?, fields.array()?);
            let keys = (fields.array()?, fields.array()?, fields.array()?);
            let protectors = fields.u16()?;
            fields.take(2)?;
            let description = fields.u32()?;
            fields.take(FIXED_BYTES - FLAGS_AT)?;
            fields.take(version2.map_or(0, |_| BLOCK_BYTES))?;
            Some((ids, place, kinds, sizes, times, sources, keys, protectors, description))
        };
        let Some((ids, place, kinds, sizes, times, sources, keys, protectors, description)) =
            read()
        else {
            return Ok(None);
        };
        let [_, algorithm, compression, flags] = kinds;
        let (page_size, pages, chunk_pages) = sizes;
        let fits = (1..=MOST_FAMILIES).contains(&place.1)
            && (1..=place.1).contains(&place.0)
            && page_size.is_power_of_two()
            && (512..=65536).contains(&page_size)
            && pages > 0
            && chunk_pages > 0
            && u64::from(chunk_pages) * u64::from(page_size) <= super::MOST_CHUNK_BYTES as u64
            && usize::from(protectors) <= MAX_PROTECTORS
            && (algorithm != 0 || protectors == 0);
        if !fits {
            return Ok(None);
        }
        let mut list = Vec::with_capacity(usize::from(protectors));
        for _ in 0..protectors {
            let Some(length) = fields.rest().get(2..4) else { return Ok(None) };
            let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
            let Some(bytes) = fields.take(4 + length) else { return Ok(None) };
            list.push(bytes.to_vec());
        }
        let Some(description) = fields.take(description as usize) else { return Ok(None) };
        Ok(Some(Self {
            version2,
            media_set: ids.0,
            set: ids.1,
            family: place.0,
            families: place.1,
            position: place.2,
            kind,
            algorithm: if algorithm == 0 { None } else { Some(Algorithm::of_set(algorithm)?) },
            compression: Compression::from_id(compression)?,
            copy_only: flags & FLAG_COPY_ONLY != 0,
            sealed_source: flags & FLAG_SEALED_SOURCE != 0,
            page_size,
            pages,
            chunk_pages,
            begun: times.0,
            expires: times.1,
            source: sources.0,
            base: sources.1,
            commitment: keys.0,
            source_thumbprint: keys.1,
            page_hash_key: keys.2,
            flags: Flags::default(),
            protectors: list,
            description: description.to_vec(),
        }))
    }

    /// Checks that the header in `bytes` was written with the set key.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if not.
    pub fn authenticate(bytes: &[u8], keys: &SetKeys, position: u32) -> Result<()> {
        authenticate(bytes, keys).ok_or_else(|| {
            Error::unauthentic(Subject::BackupSet(position), "its header does not authenticate")
        })
    }
}

/// Bytes before the protectors.
fn before_protectors(version: MediaVersion) -> usize {
    match version {
        MediaVersion::One => FIXED_BYTES,
        MediaVersion::Two => FIXED_BYTES + BLOCK_BYTES,
    }
}

/// Appends HMAC (zeros without keys) and SHA-256.
pub(super) fn finish(mut out: Vec<u8>, keys: Option<&SetKeys>) -> Result<Vec<u8>> {
    let mac = keys.map_or([0; 32], |keys| keys.header().sign(&[&out]));
    out.extend_from_slice(&mac);
    let sum = digest::digest(&digest::SHA256, &out);
    out.extend_from_slice(sum.as_ref());
    Ok(out)
}

/// Returns the fields between magic, version, length and the sums, if the SHA-256 at the end is
/// right.
pub(super) fn check_sum(bytes: &[u8]) -> Option<&[u8]> {
    let (body, sum) = bytes.split_last_chunk::<32>()?;
    let fields = bytes.get(24..bytes.len().checked_sub(SUMS_BYTES)?)?;
    (digest::digest(&digest::SHA256, body).as_ref() == sum).then_some(fields)
}

/// Checks the HMAC before the SHA-256.
pub(super) fn authenticate(bytes: &[u8], keys: &SetKeys) -> Option<()> {
    let (rest, _sum) = bytes.split_last_chunk::<32>()?;
    let (body, mac) = rest.split_last_chunk::<32>()?;
    keys.header().verify(&[body], mac).then_some(())
}

impl Kind {
    /// Version 1 has no log sets, and refuses their number as reserved.
    fn from_id(id: u8, version: MediaVersion) -> Result<Self> {
        let (kinds, reserved): (&[Self], &[u8]) = match version {
            MediaVersion::One => (&[Kind::Full, Kind::Differential], &[Kind::Log as u8]),
            MediaVersion::Two => (&[Kind::Full, Kind::Log, Kind::Differential], &[]),
        };
        let known = kinds.iter().find(|kind| **kind as u8 == id);
        known.copied().ok_or_else(|| unknown("backup type", id, reserved))
    }

    /// Lower-case word for people.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Full => "full",
            Kind::Log => "log",
            Kind::Differential => "differential",
        }
    }
}

impl Compression {
    fn from_id(id: u8) -> Result<Self> {
        [Compression::None, Compression::Zstd, Compression::Lz4]
            .into_iter()
            .find(|compression| *compression as u8 == id)
            .ok_or_else(|| unknown("compression", id, &[]))
    }

    /// Lower-case word for people.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Zstd => "zstd",
            Compression::Lz4 => "lz4",
        }
    }
}

fn unknown(what: &str, id: u8, reserved: &[u8]) -> Error {
    Error::unknown(Subject::MediaHeader, what, id, reserved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret32;

    pub fn header() -> SetHeader {
        SetHeader {
            version2: None,
            media_set: [1; 16],
            set: [2; 16],
            family: 1,
            families: 2,
            position: 3,
            kind: Kind::Full,
            algorithm: Some(Algorithm::Aes128),
            compression: Compression::Zstd,
            copy_only: true,
            sealed_source: true,
            page_size: 4096,
            pages: 1000,
            chunk_pages: 256,
            begun: 5,
            expires: 6,
            source: [3; 16],
            base: [0; 16],
            commitment: [4; 32],
            source_thumbprint: [5; 32],
            page_hash_key: [0; 32],
            flags: Flags::default(),
            protectors: vec![vec![1, 0, 0, 3, 7, 7, 7]],
            description: Vec::new(),
        }
    }

    fn keys() -> SetKeys {
        let key = Dek::from_secret(Secret32::new(&mut [9; 32]));
        SetKeys::derive(&key, &[2; 16], Algorithm::Aes128).unwrap()
    }

    #[test]
    fn it_reads_back_and_its_description_is_sealed() {
        let keys = keys();
        let description = Description { database: "accounts".into(), ..Description::default() };
        let mut header = header();
        header.describe(&description, Some(&keys)).unwrap();
        let bytes = header.encode(Some(&keys)).unwrap();
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        assert!(!bytes.windows(8).any(|w| w == b"accounts"));
        assert_eq!(SetHeader::length(bytes.first_chunk().unwrap(), 3).unwrap(), bytes.len());
        let read = SetHeader::parse(&bytes, 3).unwrap();
        assert_eq!(read, header);
        SetHeader::authenticate(&bytes, &keys, 3).unwrap();
        assert_eq!(read.described(Some(&keys)).unwrap(), description);
        let other = SetHeader { family: 2, ..read };
        assert!(other.described(Some(&keys)).is_err(), "sealed for another family");
    }

    #[test]
    fn a_description_that_would_move_the_cursor_is_neither_written_nor_handed_out() {
        let loud = Description { name: "\x1b[2J".into(), ..Description::default() };
        let mut header = SetHeader { algorithm: None, protectors: Vec::new(), ..header() };
        assert!(matches!(header.describe(&loud, None), Err(Error::Misuse { .. })));
        header.description = serde_json::to_vec(&loud).unwrap();
        assert_eq!(header.described(None).unwrap().name, "\u{fffd}[2J");
    }

    #[test]
    fn version_2_reads_back() {
        let keys = keys();
        let full = Version2 { before: [8; 32], padded: true, ..Version2::default() };
        let differential = Version2 { base: [9; 32], ..full };
        for (kind, own) in [(Kind::Full, full), (Kind::Differential, differential)] {
            let header = SetHeader { version2: Some(own), kind, ..header() };
            let bytes = header.encode(Some(&keys)).unwrap();
            assert_eq!(SetHeader::parse(&bytes, 3).unwrap(), header);
            SetHeader::authenticate(&bytes, &keys, 3).unwrap();
        }
    }

    #[test]
    fn every_flipped_bit_is_seen_and_a_mended_checksum_does_not_authenticate() {
        let own = Version2 { before: [8; 32], padded: true, ..Version2::default() };
        for version2 in [None, Some(own)] {
            flipped(&SetHeader { version2, ..header() });
        }
    }

    fn flipped(header: &SetHeader) {
        let keys = keys();
        let mut bytes = header.encode(Some(&keys)).unwrap();
        for bit in 24 * 8..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SetHeader::parse(&bytes, 3).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let body = bytes.len() - SUMS_BYTES;
        for byte in 0..body + 32 {
            let mut forged = bytes.clone();
            forged[byte] ^= 1;
            forged.truncate(body + 32);
            let sum = digest::digest(&digest::SHA256, &forged);
            forged.extend_from_slice(sum.as_ref());
            assert!(SetHeader::authenticate(&forged, &keys, 3).is_err(), "byte {byte}");
        }
    }
}
