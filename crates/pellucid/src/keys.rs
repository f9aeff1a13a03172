//! The keys that are derived from a DEK, and the ciphers of one container.
//!
//! Derivations: docs/format.md, "Derivations". A [`ContainerKeys`] belongs to one authenticated
//! header; a later header needs a new one.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};

use aws_lc_rs::hmac;
use zeroize::Zeroizing;

use crate::algorithm::Algorithm;
use crate::cipher::Cipher;
use crate::derive::{commitment, hkdf_sha256};
use crate::error::{Error, Result, Subject};
use crate::header::{DekRow, Header};
use crate::nonce::NonceSource;
use crate::secret::{Dek, Secret32};
use crate::unit::{self, FileKind, Place, GENERATION_NONE};

/// Writes under one generation before the header moves to the next: 2^30. Random 96-bit nonces
/// allow 2^32 (NIST SP 800-38D, 8.3). AEGIS_256 moves as well: a format with one rule counts writes of all
/// algorithms. The distance is for writes of other processes and for
/// generation changes that were put off.
pub const GENERATION_WRITES: u64 = 1 << 30;

/// Distinguishes the keys of tags over content in clear from the keys that seal.
const INFO_PLAIN: &[u8] = b"pellucid/1 plain";
const INFO_UNIT: &[u8] = b"pellucid/1 unit";

/// Derives the cipher of one generation and file kind for a DEK whose units are tagged and not
/// sealed.
pub fn plain_cipher(
    dek: &Dek,
    file_id: &[u8; 16],
    generation: u32,
    kind: FileKind,
) -> Result<Cipher> {
    let mut key = Zeroizing::new([0u8; 32]);
    let info: [&[u8]; 3] =
        [INFO_PLAIN, &generation.to_be_bytes(), &[Algorithm::Aes256.id(), kind as u8]];
    hkdf_sha256(dek.expose(), file_id, &info, &mut key[..])?;
    Cipher::plain(&key[..])
}

/// Derives the cipher of one generation and file kind.
pub fn generation_cipher(
    dek: &Dek,
    file_id: &[u8; 16],
    generation: u32,
    algorithm: Algorithm,
    kind: FileKind,
) -> Result<Cipher> {
    let mut key = Zeroizing::new([0u8; 32]);
    let key = &mut key[..Cipher::key_bytes(algorithm)];
    let info: [&[u8]; 3] = [INFO_UNIT, &generation.to_be_bytes(), &[algorithm.id(), kind as u8]];
    hkdf_sha256(dek.expose(), file_id, &info, key)?;
    Cipher::new(algorithm, key)
}

/// The key that authenticates headers and wear sectors.
#[derive(Debug)]
pub struct HeaderKey(hmac::Key);

impl HeaderKey {
    /// Derives the key. It commits to the DEK because HMAC-SHA256 is collision resistant.
    ///
    /// # Errors
    /// None in practice: the lengths are constant.
    pub fn derive(dek: &Dek, file_id: &[u8; 16]) -> Result<Self> {
        let mut key = Zeroizing::new([0u8; 32]);
        hkdf_sha256(dek.expose(), file_id, &[b"pellucid/1 header"], &mut key[..])?;
        Ok(Self::new(&key[..]))
    }

    /// Makes the key from bytes that were derived for a header and nothing else.
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// Computes HMAC-SHA256 over the parts.
    pub fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }

    /// Whether `tag` is the HMAC over the parts, in constant time.
    pub fn verify(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.sign(parts), tag).is_ok()
    }
}

/// One DEK with the generations it is used for.
struct DekRange {
    first: u32,
    last: u32,
    algorithm: Algorithm,
    plain: bool,
    /// The file id that the DEK's units are bound to.
    file_id: [u8; 16],
    dek: Dek,
}

/// The ciphers of one container, shared by all connections of a process.
pub struct ContainerKeys {
    file_id: [u8; 16],
    generation: u32,
    ranges: Vec<DekRange>,
    header_key: HeaderKey,
    current: [OnceLock<Arc<Cipher>>; 3],
    older: Mutex<Vec<(u32, FileKind, Arc<Cipher>)>>,
}

impl std::fmt::Debug for ContainerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContainerKeys")
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

impl ContainerKeys {
    /// Makes the keys of `header`. The caller has authenticated `header` under `dek`.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if an older DEK does not unwrap under the current one.
    pub fn new(header: &Header, dek: &Dek) -> Result<Self> {
        let header_key = HeaderKey::derive(dek, &header.file_id)?;
        let mut ranges = Vec::with_capacity(header.deks.len());
        for row in &header.deks {
            let dek = match row.wrapped {
                None => dek.clone(),
                Some(_) => row.unwrap_older(dek, &header.file_id, header.id_of(row))?,
            };
            ranges.push(DekRange {
                first: row.first_generation,
                last: row.last_generation,
                algorithm: row.algorithm,
                plain: row.plain,
                file_id: *header.id_of(row),
                dek,
            });
        }
        Ok(Self {
            file_id: header.file_id,
            generation: header.generation,
            ranges,
            header_key,
            current: [OnceLock::new(), OnceLock::new(), OnceLock::new()],
            older: Mutex::new(Vec::new()),
        })
    }

    /// The file id that new units are bound to. Units of older DEKs may still be bound to an older
    /// id, and [`ContainerKeys::open`] tries that one.
    pub fn file_id(&self) -> &[u8; 16] {
        &self.file_id
    }

    /// The generation that new units are sealed under.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The key of headers and wear sectors.
    pub fn header_key(&self) -> &HeaderKey {
        &self.header_key
    }

    /// Derives the header keys of all DEKs, the older ones first. The last is [`ContainerKeys::header_key`] again.
    ///
    /// # Errors
    /// None in practice: the lengths are constant.
    pub fn header_keys(&self) -> Result<Vec<HeaderKey>> {
        self.ranges.iter().map(|range| HeaderKey::derive(&range.dek, &range.file_id)).collect()
    }

    /// Returns each DEK with the first generation it is used for.
    pub fn deks(&self) -> impl Iterator<Item = (u32, &Dek)> {
        self.ranges.iter().map(|range| (range.first, &range.dek))
    }

    /// The current DEK, to authenticate a changed header or to wrap it again.
    pub fn dek(&self) -> Option<&Dek> {
        self.range(self.generation).map(|range| &range.dek)
    }

    /// Seals `plaintext` into `unit` under the current generation.
    ///
    /// # Errors
    /// [`Error::Io`] if no nonce can be drawn.
    pub fn seal(
        &self,
        kind: FileKind,
        place: &Place,
        nonces: &mut dyn NonceSource,
        plaintext: &[u8],
        unit: &mut [u8],
    ) -> Result<()> {
        let cipher = self.current(kind)?;
        let nonce = nonces.next_nonce()?;
        unit::seal(cipher, self.generation, &nonce, place, plaintext, unit)
    }

    /// Opens `unit` into `plaintext`.
    ///
    /// # Errors
    /// [`Error::Unauthentic`], which names `subject`; `plaintext` is zeroed then.
    pub fn open(
        &self,
        kind: FileKind,
        place: &Place,
        unit: &[u8],
        plaintext: &mut [u8],
        subject: impl FnOnce() -> Subject,
    ) -> Result<()> {
        let error = match self.opener(kind, place, unit) {
            Ok(Some((cipher, place))) if unit::open(&cipher, &place, unit, plaintext) => {
                return Ok(());
            }
            Ok(Some(_)) => mismatch(subject()),
            Ok(None) => unlisted(unit, subject()),
            Err(error) => error,
        };
        plaintext.fill(0);
        Err(error)
    }

    /// Opens `unit` in its own place: the plaintext takes the ciphertext's place, and the tail becomes
    /// zeros. It saves a second buffer where nobody needs the unit afterwards.
    ///
    /// # Errors
    /// As [`ContainerKeys::open`]; all of `unit` is zeroed then.
    pub fn open_in_place(
        &self,
        kind: FileKind,
        place: &Place,
        unit: &mut [u8],
        subject: impl FnOnce() -> Subject,
    ) -> Result<()> {
        let error = match self.opener(kind, place, unit) {
            Ok(Some((cipher, place))) => {
                if unit::open_in_place(&cipher, &place, unit) {
                    return Ok(());
                }
                mismatch(subject())
            }
            Ok(None) => unlisted(unit, subject()),
            Err(error) => error,
        };
        unit.fill(0);
        Err(error)
    }

    /// The cipher of the generation that `unit` names, and the place that a unit of its key is bound
    /// to. `None` if the header does not list that generation.
    fn opener(
        &self,
        kind: FileKind,
        place: &Place,
        unit: &[u8],
    ) -> Result<Option<(Cow<'_, Arc<Cipher>>, Place)>> {
        let named = unit::generation(unit).unwrap_or(GENERATION_NONE);
        if named == self.generation {
            return Ok(Some((Cow::Borrowed(self.current(kind)?), *place)));
        }
        let found = self.older(named, kind)?.zip(self.range(named));
        Ok(found.map(|(cipher, range)| (Cow::Owned(cipher), place.of_file(&range.file_id))))
    }

    fn current(&self, kind: FileKind) -> Result<&Arc<Cipher>> {
        let slot = self.current.get(kind as usize - 1).ok_or_else(|| {
            Error::misuse(Subject::Container, "temporary files have keys of their own")
        })?;
        if let Some(cipher) = slot.get() {
            return Ok(cipher);
        }
        let cipher = self.derive(self.generation, kind)?.ok_or_else(|| {
            Error::corrupt(Subject::Container, "header lists no key for its own generation")
        })?;
        Ok(slot.get_or_init(|| Arc::new(cipher)))
    }

    fn older(&self, generation: u32, kind: FileKind) -> Result<Option<Arc<Cipher>>> {
        const KEPT: usize = 16;
        let mut older = self.older.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, _, cipher)) = older.iter().find(|(g, k, _)| *g == generation && *k == kind)
        {
            return Ok(Some(cipher.clone()));
        }
        let Some(cipher) = self.derive(generation, kind)? else { return Ok(None) };
        let cipher = Arc::new(cipher);
        if older.len() == KEPT {
            older.remove(0);
        }
        older.push((generation, kind, cipher.clone()));
        Ok(Some(cipher))
    }

    fn derive(&self, generation: u32, kind: FileKind) -> Result<Option<Cipher>> {
        let Some(range) = self.range(generation) else { return Ok(None) };
        if range.plain {
            return plain_cipher(&range.dek, &range.file_id, generation, kind).map(Some);
        }
        generation_cipher(&range.dek, &range.file_id, generation, range.algorithm, kind).map(Some)
    }

    fn range(&self, generation: u32) -> Option<&DekRange> {
        let listed = generation != GENERATION_NONE && generation <= self.generation;
        self.ranges
            .iter()
            .find(|range| listed && range.first <= generation && generation <= range.last)
    }
}

fn mismatch(subject: Subject) -> Error {
    Error::unauthentic(subject, "authentication tag does not match")
}

fn unlisted(unit: &[u8], subject: Subject) -> Error {
    if unit.iter().all(|byte| *byte == 0) {
        return Error::unauthentic(subject, "all bytes are zero: never sealed, or wiped");
    }
    let generation = unit::generation(unit).unwrap_or(GENERATION_NONE);
    Error::unauthentic(
        subject,
        format!("sealed under generation {generation}, which the header does not list"),
    )
}

/// The random keys of one temporary file, one for each algorithm that seals its blocks. They exist
/// only in memory.
///
/// Which algorithm is taken may change between two blocks; the generation in a block's tail says it.
#[derive(Debug, Default)]
pub struct TemporaryKey {
    aes: OnceLock<Cipher>,
    aegis: OnceLock<Cipher>,
}

/// The generations of blocks: one for each algorithm.
const TEMPORARY_AES: u32 = 1;
const TEMPORARY_AEGIS: u32 = 2;

impl TemporaryKey {
    /// Makes a fresh key of AES_256 or AEGIS_256. The other is made if a block needs it.
    ///
    /// # Errors
    /// [`Error::Io`] if the generator fails, [`Error::Misuse`] for another algorithm.
    pub fn random(algorithm: Algorithm) -> Result<Self> {
        Self::from_secret(algorithm, &Secret32::random()?)
    }

    /// Takes a key that was just made, or a test vector's.
    ///
    /// # Errors
    /// [`Error::Misuse`] for an algorithm that seals no temporary file.
    pub fn from_secret(algorithm: Algorithm, key: &Secret32) -> Result<Self> {
        let own = Self::default();
        let cipher = Cipher::new(algorithm, key.expose())?;
        own.slot(algorithm)?.0.get_or_init(|| cipher);
        Ok(own)
    }

    fn slot(&self, algorithm: Algorithm) -> Result<(&OnceLock<Cipher>, u32)> {
        match algorithm {
            Algorithm::Aes256 => Ok((&self.aes, TEMPORARY_AES)),
            Algorithm::Aegis256 => Ok((&self.aegis, TEMPORARY_AEGIS)),
            _ => Err(Error::misuse(
                Subject::Key("temporary key"),
                "temporary files are sealed under AES_256 or AEGIS_256",
            )),
        }
    }

    /// Seals block `block` under `algorithm`.
    ///
    /// # Errors
    /// [`Error::Io`] if no nonce or key can be drawn.
    pub fn seal(
        &self,
        algorithm: Algorithm,
        block: u64,
        nonces: &mut dyn NonceSource,
        plaintext: &[u8],
        unit: &mut [u8],
    ) -> Result<()> {
        let (slot, generation) = self.slot(algorithm)?;
        let cipher = match slot.get() {
            Some(cipher) => cipher,
            None => {
                let cipher = Cipher::new(algorithm, Secret32::random()?.expose())?;
                slot.get_or_init(|| cipher)
            }
        };
        let nonce = nonces.next_nonce()?;
        unit::seal(cipher, generation, &nonce, &Place::temporary(block), plaintext, unit)
    }

    /// Opens block `block`.
    ///
    /// # Errors
    /// [`Error::Unauthentic`], which names the block; `plaintext` is zeroed then.
    pub fn open(&self, block: u64, unit: &[u8], plaintext: &mut [u8]) -> Result<()> {
        let cipher = match unit::generation(unit) {
            Some(TEMPORARY_AES) => self.aes.get(),
            Some(TEMPORARY_AEGIS) => self.aegis.get(),
            _ => None,
        };
        match cipher {
            Some(cipher) if unit::open(cipher, &Place::temporary(block), unit, plaintext) => Ok(()),
            _ => {
                plaintext.fill(0);
                let cause = "authentication tag does not match";
                Err(Error::unauthentic(Subject::TempBlock(block), cause))
            }
        }
    }
}

impl DekRow {
    /// Wraps the DEK `older`, which sealed the generations `first` to `last`, under `current`.
    /// Returns the row that stays in the header after a rekey.
    ///
    /// The wrapping key serves one file and one current DEK; the nonce is random, because the same
    /// rows are wrapped again whenever the current DEK changes. The AAD binds the first generation.
    ///
    /// # Errors
    /// [`Error::Io`] if no nonce can be drawn.
    pub fn wrap_older(
        older: &Dek,
        generations: std::ops::RangeInclusive<u32>,
        algorithm: Algorithm,
        current: &Dek,
        file_id: &[u8; 16],
        nonces: &mut dyn NonceSource,
    ) -> Result<Self> {
        let first = *generations.start();
        let mut wrapped = [0; 60];
        let (nonce, mut tag) = (nonces.next_nonce()?, [0; 16]);
        older_cipher(current, file_id)?.seal(
            &nonce,
            &first.to_be_bytes(),
            older.expose(),
            &mut wrapped[12..44],
            &mut tag,
        )?;
        wrapped[..12].copy_from_slice(&nonce);
        wrapped[44..].copy_from_slice(&tag);
        Ok(Self {
            first_generation: first,
            last_generation: *generations.end(),
            algorithm,
            plain: false,
            commitment: commitment(older, file_id)?,
            wrapped: Some(wrapped),
        })
    }

    /// Unwraps the DEK of an older row under the current one. `own_id` is the file id that the
    /// older DEK's units are bound to.
    fn unwrap_older(&self, current: &Dek, file_id: &[u8; 16], own_id: &[u8; 16]) -> Result<Dek> {
        let wrapped = self.wrapped.as_ref().ok_or_else(|| {
            Error::misuse(Subject::Container, "the current DEK is wrapped by protectors")
        })?;
        let mut dek = Zeroizing::new([0u8; 32]);
        let parts = (wrapped.first_chunk::<12>(), wrapped.last_chunk::<16>());
        let (Some(nonce), Some(tag)) = parts else {
            return Err(Error::corrupt(Subject::Container, "wrapped DEK is too short"));
        };
        let unauthentic = || Error::unauthentic(Subject::Container, "an older DEK does not unwrap");
        older_cipher(current, file_id)?
            .open(nonce, &self.first_generation.to_be_bytes(), &wrapped[12..44], tag, &mut dek[..])
            .map_err(|_| unauthentic())?;
        let dek = Dek::from_secret(Secret32::new(&mut dek));
        let found = commitment(&dek, own_id)?;
        aws_lc_rs::constant_time::verify_slices_are_equal(&found, &self.commitment)
            .map_err(|_| unauthentic())?;
        Ok(dek)
    }
}

/// Derives the cipher that wraps the older DEKs of a file.
fn older_cipher(current: &Dek, file_id: &[u8; 16]) -> Result<Cipher> {
    let mut kek = Zeroizing::new([0u8; 32]);
    hkdf_sha256(current.expose(), file_id, &[b"pellucid/1 older DEK"], &mut kek[..])?;
    Cipher::new(Algorithm::Aes256, &kek[..])
}

#[cfg(test)]
mod tests;
