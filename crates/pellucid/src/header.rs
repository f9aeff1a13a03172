//! The container header: two copies after sector 0, readable without a key, authenticated with it.
//!
//! Layout: docs/format.md, "Header". It neither unwraps keys ([`crate::protector`] does) nor reads
//! or writes files.

mod dates;
mod second;
mod state;
mod version;

use aws_lc_rs::digest;

use crate::algorithm::Algorithm;
use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::flags::{check_zeros, Flags, FLAGS_BYTES};
use crate::keys::HeaderKey;
use crate::scan::{self, Scan};
pub use dates::Dates;
pub use second::{RecoveryModel, Second, Standing};
pub use state::EncryptionState;

/// Bytes before the first page.
pub const REGION_BYTES: u64 = 16384;
/// Bytes of one header copy.
pub const COPY_BYTES: usize = 7168;
/// The offsets of the two copies.
pub const COPY_OFFSETS: [u64; 2] = [2048, 2048 + COPY_BYTES as u64];
/// The first format version.
pub const FORMAT_VERSION: u32 = 1;
/// The newest version of a header that this build reads and writes. A database keeps the one it has.
pub const NEWEST_VERSION: u32 = 2;
/// The number of the next header version, which is refused by name.
pub const RESERVED_VERSION: u32 = 3;
/// The most protectors of a header.
pub const MAX_PROTECTORS: usize = 8;

/// The first 16 bytes of a header copy.
pub const MAGIC: &[u8; 16] = b"Pellucid header\0";
const FIXED_BYTES: usize = 68 + scan::FIELDS_BYTES;
const FIXED_BYTES_SECOND: usize = second::FIXED_BYTES;
const ROW_BYTES: usize = 104;
const WRAPPED_BYTES: usize = 60;
/// The offset of the words of flags, behind the older file id.
const FLAGS_AT: usize = 120;
/// Ranges before the DEKs that are zero in version 1, and in version 2.
const ZEROS: [std::ops::Range<usize>; 3] = [55..56, 69..72, FLAGS_AT + FLAGS_BYTES..FIXED_BYTES];
const ZEROS_SECOND: [std::ops::Range<usize>; 3] = [55..56, 71..72, ZEROS[2].start..FIXED_BYTES];
/// The range of a DEK's row that is zero.
const ROW_ZEROS: std::ops::Range<usize> = 10..12;
/// The range of a row with the wrapped DEK. It is zero in the current DEK's row.
const ROW_WRAPPED: std::ops::Range<usize> = 44..ROW_BYTES;
const FLAG_CURRENT: u8 = 1;
const FLAG_PLAIN: u8 = 2;
/// The flag of a row whose units are bound to [`Scan::older_id`].
const FLAG_OLDER_ID: u8 = 4;
const MAC_AT: usize = COPY_BYTES - 64;
const SUM_AT: usize = COPY_BYTES - 32;

/// One DEK and the generations sealed under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DekRow {
    /// First generation of this DEK.
    pub first_generation: u32,
    /// Last generation of this DEK; `u32::MAX` while it is current.
    pub last_generation: u32,
    /// The algorithm of all its generations.
    pub algorithm: Algorithm,
    /// Its units are not sealed but in clear with a tag (docs/format.md, "Sealed unit").
    pub plain: bool,
    /// The commitment to the DEK, so that a protector cannot bring another one.
    pub commitment: [u8; 32],
    /// An older DEK, wrapped under the current one; `None` for the current DEK.
    pub wrapped: Option<[u8; WRAPPED_BYTES]>,
}

/// The fields of a header copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The sequence number, which grows by one with each change.
    pub sequence: u64,
    /// The container's random identity.
    pub file_id: [u8; 16],
    /// SQLite's page size, in bytes.
    pub page_size: u32,
    /// The encryption state of the pages.
    pub state: EncryptionState,
    /// The generation that new units are sealed under; generations start at 1.
    pub generation: u32,
    /// When the container was made, in seconds since 1970.
    pub created: u64,
    /// The last scan's progress state, when the keys changed, and the older file id while units are
    /// still bound to it.
    pub scan: Scan,
    /// The flags, which a newer version may have set.
    pub flags: Flags,
    /// The fields of version 2; `None` in a header of version 1.
    pub second: Option<Second>,
    /// The DEKs, the current one last.
    pub deks: Vec<DekRow>,
    /// The protectors of the current DEK, encoded ([`crate::protector::Protector::decode`]).
    pub protectors: Vec<Vec<u8>>,
}

impl Header {
    /// The format version, 1 or 2.
    pub fn version(&self) -> u32 {
        if self.second.is_some() {
            2
        } else {
            1
        }
    }

    /// The offset of the DEKs' rows.
    fn fixed_bytes(&self) -> usize {
        if self.second.is_some() {
            FIXED_BYTES_SECOND
        } else {
            FIXED_BYTES
        }
    }

    /// Who may open the database.
    pub fn standing(&self) -> Standing {
        self.second.as_ref().map_or(Standing::Online, Second::standing)
    }

    /// Refuses a database that nobody may read now.
    ///
    /// # Errors
    /// [`Error::Unsupported`], as [`Second::check_readable`].
    pub fn check_readable(&self) -> Result<()> {
        self.second.as_ref().map_or(Ok(()), Second::check_readable)
    }

    /// Refuses a database that may be read and not written.
    ///
    /// # Errors
    /// [`Error::Unsupported`], as [`Flags::check_writable`] and [`Second::check_writable`].
    pub fn check_writable(&self) -> Result<()> {
        self.flags.check_writable(Subject::Container)?;
        self.second.as_ref().map_or(Ok(()), Second::check_writable)
    }

    /// Returns the row of the current DEK.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is none.
    pub fn current_dek(&self) -> Result<&DekRow> {
        self.deks
            .iter()
            .find(|row| row.wrapped.is_none())
            .ok_or_else(|| Error::corrupt(Subject::Container, "header lists no current DEK"))
    }

    /// Checks that the state fits the DEKs: plain units only in a state that says so.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it does not.
    pub fn check_state(&self) -> Result<()> {
        use EncryptionState::*;
        let sealing = !self.current_dek()?.plain;
        let any_plain = self.deks.iter().any(|row| row.plain);
        let fits = match self.state {
            Encrypted | KeyChange | ProtectionChange => sealing && !any_plain,
            Encrypting => sealing,
            Unencrypted => !sealing && self.deks.len() == 1,
            Decrypting => !sealing,
        };
        match fits {
            true => Ok(()),
            false => Err(Error::corrupt(
                Subject::Container,
                format!(
                    "the header's state is `{}`, but its keys belong to another state",
                    self.state.name()
                ),
            )),
        }
    }

    /// Whether the units of a row are bound to an older file id and not to the header's.
    fn has_older_id(&self, row: &DekRow) -> bool {
        row.wrapped.is_some() && self.scan.older_id.is_some()
    }

    /// The file id that the units of a row are bound to.
    pub fn id_of<'a>(&'a self, row: &DekRow) -> &'a [u8; 16] {
        match &self.scan.older_id {
            Some(older) if row.wrapped.is_some() => older,
            _ => &self.file_id,
        }
    }

    /// The algorithm that seals new pages.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no current DEK.
    pub fn algorithm(&self) -> Result<Algorithm> {
        self.current_dek().map(|row| row.algorithm)
    }

    /// Encodes the bytes of a copy, authenticated under `key`.
    ///
    /// # Errors
    /// [`Error::LimitReached`] if DEKs and protectors do not fit. [`Error::Unsupported`] if only a
    /// newer version may write this header.
    pub fn encode(&self, key: &HeaderKey) -> Result<Box<[u8; COPY_BYTES]>> {
        self.flags.check_writable(Subject::Container)?;
        let body = self.encode_body()?;
        let mut copy = Box::new([0u8; COPY_BYTES]);
        copy[..body.len()].copy_from_slice(&body);
        let mac = key.sign(&[&copy[..MAC_AT]]);
        copy[MAC_AT..SUM_AT].copy_from_slice(&mac);
        let sum = digest::digest(&digest::SHA256, &copy[..SUM_AT]);
        copy[SUM_AT..].copy_from_slice(sum.as_ref());
        Ok(copy)
    }

    /// Bytes before the padding.
    fn used_bytes(&self) -> usize {
        self.fixed_bytes()
            + self.deks.len() * ROW_BYTES
            + self.protectors.iter().map(Vec::len).sum::<usize>()
    }

    fn encode_body(&self) -> Result<Vec<u8>> {
        if let Some(row) =
            self.deks.iter().find(|row| row.algorithm.first_version() > self.version())
        {
            return Err(Error::misuse(
                Subject::Container,
                format!("no header of version {} has {}", self.version(), row.algorithm),
            ));
        }
        let used = self.used_bytes();
        if self.protectors.len() > MAX_PROTECTORS || used > MAC_AT || self.deks.len() > 255 {
            return Err(Error::limit(
                Subject::Container,
                format!(
                    "{} protectors and {} keys do not fit into the header ({used} of {MAC_AT} \
                     bytes, {MAX_PROTECTORS} protectors at most)",
                    self.protectors.len(),
                    self.deks.len()
                ),
            ));
        }
        let mut out = Vec::with_capacity(used);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.version().to_be_bytes());
        out.extend_from_slice(&(used as u32).to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.file_id);
        out.extend_from_slice(&self.page_size.to_be_bytes());
        out.push(self.state as u8);
        out.push(self.protectors.len() as u8);
        out.push(self.deks.len() as u8);
        out.push(0);
        out.extend_from_slice(&self.generation.to_be_bytes());
        out.extend_from_slice(&self.created.to_be_bytes());
        out.extend_from_slice(&self.scan.encode());
        out[FLAGS_AT..FLAGS_AT + FLAGS_BYTES].copy_from_slice(&self.flags.encode());
        if let Some(second) = &self.second {
            out.resize(FIXED_BYTES_SECOND, 0);
            second.encode(&mut out);
        }
        for row in &self.deks {
            out.extend_from_slice(&row.first_generation.to_be_bytes());
            out.extend_from_slice(&row.last_generation.to_be_bytes());
            out.push(row.algorithm.id());
            out.push(
                if row.wrapped.is_none() { FLAG_CURRENT } else { 0 }
                    | if row.plain { FLAG_PLAIN } else { 0 }
                    | if self.has_older_id(row) { FLAG_OLDER_ID } else { 0 },
            );
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&row.commitment);
            out.extend_from_slice(&row.wrapped.unwrap_or([0; WRAPPED_BYTES]));
        }
        self.protectors.iter().for_each(|protector| out.extend_from_slice(protector));
        Ok(out)
    }

    /// Parses copy number `copy` without a key. Nothing in it may be trusted before
    /// [`Header::authenticate`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a torn or damaged copy, [`Error::Unsupported`] for a newer format, an incompatible flag, a
    /// byte in use that is zero in this version, or an unknown algorithm.
    pub fn parse(bytes: &[u8], copy: u8) -> Result<Self> {
        let damaged = |cause: &'static str| Error::corrupt(Subject::HeaderCopy(copy), cause);
        if bytes.len() != COPY_BYTES || bytes[..16] != MAGIC[..] {
            return Err(damaged("not a header"));
        }
        let sum = digest::digest(&digest::SHA256, &bytes[..SUM_AT]);
        if sum.as_ref() != &bytes[SUM_AT..] {
            return Err(damaged("torn or damaged: its checksum does not match"));
        }
        let mut fields = Fields::new(&bytes[16..MAC_AT]);
        let version = fields.u32().ok_or_else(|| damaged("too short"))?;
        if version == 0 {
            return Err(damaged("format version 0 does not exist"));
        }
        if version > NEWEST_VERSION {
            return Err(Error::unsupported(
                Subject::Container,
                format!(
                    "format version {version} is newer than {NEWEST_VERSION}, the newest this \
                     version reads"
                ),
            ));
        }
        let mut flags = [0; FLAGS_BYTES];
        flags.copy_from_slice(&bytes[FLAGS_AT..FLAGS_AT + FLAGS_BYTES]);
        let flags = Flags::parse(flags, Subject::Container)?;
        let (zeros, second) = match version {
            1 => (ZEROS, None),
            _ => (ZEROS_SECOND, Some(Second::parse(bytes)?)),
        };
        check_zeros(bytes, zeros, || Subject::HeaderCopy(copy))?;
        let used = u32::from_be_bytes([bytes[20], bytes[21], bytes[22], bytes[23]]) as usize;
        let header = Self::parse_fields(&mut fields, second)?;
        let header = header.ok_or_else(|| damaged("its fields are longer than the copy"))?;
        let end = MAC_AT - fields.rest().len();
        header.check_rows_and_padding(bytes, end, copy)?;
        match used == end {
            true => Ok(Self { flags, ..header }),
            false => Err(damaged("its fields do not have the length that it states")),
        }
    }

    fn check_rows_and_padding(&self, bytes: &[u8], end: usize, copy: u8) -> Result<()> {
        let rows = self.deks.iter().enumerate().flat_map(|(number, row)| {
            let at = self.fixed_bytes() + number * ROW_BYTES;
            let wrapped = if row.wrapped.is_none() { ROW_WRAPPED } else { 0..0 };
            [ROW_ZEROS, wrapped].map(|zeros| at + zeros.start..at + zeros.end)
        });
        check_zeros(bytes, rows.chain(std::iter::once(end..MAC_AT)), || Subject::HeaderCopy(copy))
    }

    fn parse_fields(fields: &mut Fields<'_>, second: Option<Second>) -> Result<Option<Self>> {
        let mut read = || {
            let _used = fields.u32()?;
            Some((
                fields.u64()?,
                fields.array::<16>()?,
                fields.u32()?,
                fields.array::<4>()?,
                fields.u32()?,
                fields.u64()?,
                fields.array::<{ scan::FIELDS_BYTES }>()?,
            ))
        };
        let Some((sequence, file_id, page_size, kinds, generation, created, scan)) = read() else {
            return Ok(None);
        };
        let [state, protectors, deks, _] = kinds;
        if !page_size.is_power_of_two() || !(512..=65536).contains(&page_size) {
            return Err(Error::corrupt(
                Subject::Container,
                format!("the header's page size, {page_size} bytes, is not one that SQLite has"),
            ));
        }
        if usize::from(protectors) > MAX_PROTECTORS {
            return Err(Error::limit(
                Subject::Container,
                format!("{protectors} protectors, more than {MAX_PROTECTORS}"),
            ));
        }
        let state = EncryptionState::from_id(state)?;
        let scan = Scan::parse(&scan)?;
        if second.is_some() && fields.take(FIXED_BYTES_SECOND - FIXED_BYTES).is_none() {
            return Ok(None);
        }
        let mut rows = Vec::with_capacity(usize::from(deks));
        for _ in 0..deks {
            let Some((row, flagged)) = parse_row(fields, if second.is_some() { 2 } else { 1 })?
            else {
                return Ok(None);
            };
            if flagged != (row.wrapped.is_some() && scan.older_id.is_some()) {
                return Err(Error::corrupt(
                    Subject::Container,
                    "the flags of the header's keys contradict its older file id",
                ));
            }
            rows.push(row);
        }
        let mut list = Vec::with_capacity(usize::from(protectors));
        for _ in 0..protectors {
            let Some(length) = fields.rest().get(2..4) else { return Ok(None) };
            let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
            match fields.take(4 + length) {
                Some(bytes) => list.push(bytes.to_vec()),
                None => return Ok(None),
            }
        }
        Ok(Some(Self {
            sequence,
            file_id,
            page_size,
            state,
            generation,
            created,
            scan,
            flags: Flags::default(),
            second,
            deks: rows,
            protectors: list,
        }))
    }

    /// Checks that the copy in `bytes` was written under the DEK.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it was not.
    pub fn authenticate(bytes: &[u8], key: &HeaderKey, copy: u8) -> Result<()> {
        if bytes.len() == COPY_BYTES && key.verify(&[&bytes[..MAC_AT]], &bytes[MAC_AT..SUM_AT]) {
            return Ok(());
        }
        Err(Error::unauthentic(Subject::HeaderCopy(copy), "authentication tag does not match"))
    }
}

/// Parses a row. The second value says whether its units are bound to an older file id.
fn parse_row(fields: &mut Fields<'_>, version: u32) -> Result<Option<(DekRow, bool)>> {
    let mut read = || {
        Some((
            fields.u32()?,
            fields.u32()?,
            fields.array::<4>()?,
            fields.array::<32>()?,
            fields.array::<WRAPPED_BYTES>()?,
        ))
    };
    let Some((first, last, [algorithm, flags, ..], commitment, wrapped)) = read() else {
        return Ok(None);
    };
    if flags & !(FLAG_CURRENT | FLAG_PLAIN | FLAG_OLDER_ID) != 0 {
        return Err(Error::unsupported(
            Subject::Container,
            format!("key flags {flags} are not known to this version"),
        ));
    }
    let row = DekRow {
        first_generation: first,
        last_generation: last,
        algorithm: Algorithm::of_container(algorithm, version)?,
        plain: flags & FLAG_PLAIN != 0,
        commitment,
        wrapped: (flags & FLAG_CURRENT == 0).then_some(wrapped),
    };
    Ok(Some((row, flags & FLAG_OLDER_ID != 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Dek, Secret32};

    fn header() -> Header {
        Header {
            sequence: 3,
            file_id: [9; 16],
            page_size: 4096,
            state: EncryptionState::Encrypted,
            generation: 1,
            created: 1_700_000_000,
            scan: Scan { modified: 5, ..Scan::default() },
            flags: Flags::default(),
            second: None,
            deks: vec![DekRow {
                first_generation: 1,
                last_generation: u32::MAX,
                algorithm: Algorithm::Aes256,
                plain: true,
                commitment: [5; 32],
                wrapped: None,
            }],
            protectors: vec![vec![1, 0, 0, 3, 7, 7, 7], vec![9, 0, 0, 0]],
        }
    }

    fn key() -> HeaderKey {
        HeaderKey::derive(&Dek::from_secret(Secret32::new(&mut [1; 32])), &[9; 16]).unwrap()
    }

    #[test]
    fn a_header_reads_back_and_every_flipped_bit_is_seen_without_the_key() {
        let second = Second { index_in_memory: true, ..Second::default() };
        let second = Header { second: Some(second), ..header() };
        assert_eq!(Header::parse(&second.encode(&key()).unwrap()[..], 0).unwrap(), second);
        let mut bytes = *header().encode(&key()).unwrap();
        assert_eq!(Header::parse(&bytes, 0).unwrap(), header());
        Header::authenticate(&bytes, &key(), 0).unwrap();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Header::parse(&bytes, 0), Err(Error::Corrupt { .. })), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn another_dek_does_not_authenticate_it() {
        let bytes = header().encode(&key()).unwrap();
        let other =
            HeaderKey::derive(&Dek::from_secret(Secret32::new(&mut [2; 32])), &[9; 16]).unwrap();
        let refused = Header::authenticate(&bytes[..], &other, 1);
        assert!(matches!(refused, Err(Error::Unauthentic { .. })));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut full = header();
        full.protectors = vec![vec![1, 0, 3, 232]; 9];
        assert!(matches!(full.encode(&key()), Err(Error::LimitReached { .. })));
        full.protectors = vec![vec![0; 1004]; 8];
        assert!(matches!(full.encode(&key()), Err(Error::LimitReached { .. })));
    }

    #[test]
    fn a_newer_version_and_an_unknown_algorithm_are_named() {
        let resum = |bytes: &mut [u8; COPY_BYTES]| {
            let sum = digest::digest(&digest::SHA256, &bytes[..SUM_AT]);
            bytes[SUM_AT..].copy_from_slice(sum.as_ref());
        };
        let mut bytes = *header().encode(&key()).unwrap();
        bytes[19] = 3;
        resum(&mut bytes);
        let told = Header::parse(&bytes, 0).unwrap_err().to_string();
        assert!(told.contains("format version 3"), "{told}");
        let mut bytes = *header().encode(&key()).unwrap();
        bytes[FIXED_BYTES + 8] = 77;
        resum(&mut bytes);
        let told = Header::parse(&bytes, 0).unwrap_err().to_string();
        assert!(told.contains("algorithm 77"), "{told}");
    }
}
