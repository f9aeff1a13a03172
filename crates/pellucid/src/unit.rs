//! The sealed unit: ciphertext followed by a 32-byte tail, bound to its place by its AAD.
//!
//! Layout: docs/format.md, "Sealed unit". Pages, frames, records and blocks are all units.

use crate::cipher::{Cipher, NONCE_BYTES, TAG_BYTES};
use crate::error::{Error, Result, Subject};
use crate::nonce::UnitNonce;

/// Bytes by which a unit is longer than its plaintext: nonce 12, generation 4, tag 16.
pub const TAIL_BYTES: usize = NONCE_BYTES + 4 + TAG_BYTES;
/// Plaintext bytes of a block of a temporary file.
pub const TEMPORARY_BLOCK_BYTES: usize = 4096;
/// The generation that no unit has: generations begin at 1.
pub const GENERATION_NONE: u32 = 0;

const EXTRA_BYTES: usize = 20;
const AAD_BYTES: usize = 4 + 4 + 16 + 8 + EXTRA_BYTES;
/// Bytes that a frame of the second version of a log has more in its AAD: what ties it to its run of the log.
const RUN_BYTES: usize = 16;

/// The kind of file that a unit lies in. Each kind has its own key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FileKind {
    /// The database file.
    Database = 1,
    /// The write-ahead log.
    Wal = 2,
    /// The rollback journal.
    Journal = 3,
    /// A temporary file.
    Temporary = 4,
}

/// The place of a unit: all that its tag covers besides the ciphertext.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    kind: FileKind,
    file_id: [u8; 16],
    position: u64,
    extra: [u8; EXTRA_BYTES],
    run: Option<[u8; RUN_BYTES]>,
}

impl Place {
    /// A page of the database file; numbers start at 1.
    pub fn page(file_id: &[u8; 16], page: u32) -> Self {
        Self::new(FileKind::Database, file_id, u64::from(page))
    }

    /// A WAL frame. `clear` are bytes 0 to 15 of its header: page, commit size, salts.
    pub fn frame(file_id: &[u8; 16], frame: u32, clear: &[u8; 16]) -> Self {
        let mut place = Self::new(FileKind::Wal, file_id, u64::from(frame));
        place.extra[..16].copy_from_slice(clear);
        place
    }

    /// A frame of the second version of a log. `clear` are its bytes 0 to 15, `run` bytes 16 to 31 of the log's header.
    pub fn frame_of_run(
        file_id: &[u8; 16],
        frame: u32,
        clear: &[u8; 16],
        run: &[u8; RUN_BYTES],
    ) -> Self {
        Self { run: Some(*run), ..Self::frame(file_id, frame, clear) }
    }

    /// A journal record at `offset` that keeps `page`. A journal header uses page numbers that no
    /// page has.
    pub fn journal(file_id: &[u8; 16], journal_id: &[u8; 16], offset: u64, page: u32) -> Self {
        let mut place = Self::new(FileKind::Journal, file_id, offset);
        place.extra[..16].copy_from_slice(journal_id);
        place.extra[16..].copy_from_slice(&page.to_be_bytes());
        place
    }

    /// A block of a temporary file. Numbers start at 0.
    pub fn temporary(block: u64) -> Self {
        Self::new(FileKind::Temporary, &[0; 16], block)
    }

    /// The same place in the file with another file id.
    pub(crate) fn of_file(&self, file_id: &[u8; 16]) -> Self {
        Self { file_id: *file_id, ..*self }
    }

    fn new(kind: FileKind, file_id: &[u8; 16], position: u64) -> Self {
        Self { kind, file_id: *file_id, position, extra: [0; EXTRA_BYTES], run: None }
    }

    fn nonce(&self, drawn: &[u8; NONCE_BYTES], generation: u32) -> UnitNonce {
        UnitNonce { drawn: *drawn, generation, kind: self.kind as u8, position: self.position }
    }

    fn aad(&self, generation: u32) -> Aad {
        let mut bytes = [0; AAD_BYTES + RUN_BYTES];
        bytes[0] = 1;
        bytes[1] = self.kind as u8;
        bytes[4..8].copy_from_slice(&generation.to_be_bytes());
        bytes[8..24].copy_from_slice(&self.file_id);
        bytes[24..32].copy_from_slice(&self.position.to_be_bytes());
        bytes[32..AAD_BYTES].copy_from_slice(&self.extra);
        match &self.run {
            None => Aad { bytes, length: AAD_BYTES },
            Some(run) => {
                bytes[0] = 2;
                bytes[AAD_BYTES..].copy_from_slice(run);
                Aad { bytes, length: AAD_BYTES + RUN_BYTES }
            }
        }
    }
}

/// The bytes that a unit's tag covers besides the ciphertext: 52, or 68 where byte 0 is 2.
struct Aad {
    bytes: [u8; AAD_BYTES + RUN_BYTES],
    length: usize,
}

impl std::ops::Deref for Aad {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Seals `plaintext` into `unit`, which is [`TAIL_BYTES`] longer.
///
/// # Errors
/// [`Error::Misuse`] if the lengths do not fit.
pub fn seal(
    cipher: &Cipher,
    generation: u32,
    nonce: &[u8; NONCE_BYTES],
    place: &Place,
    plaintext: &[u8],
    unit: &mut [u8],
) -> Result<()> {
    if unit.len() != plaintext.len() + TAIL_BYTES {
        return Err(Error::misuse(
            Subject::Container,
            "the lengths of unit and plaintext do not fit each other",
        ));
    }
    let (ciphertext, tail) = unit.split_at_mut(plaintext.len());
    let mut tag = [0; TAG_BYTES];
    let of_unit = place.nonce(nonce, generation);
    cipher.seal_unit(&of_unit, &place.aad(generation), plaintext, ciphertext, &mut tag)?;
    tail[..NONCE_BYTES].copy_from_slice(nonce);
    tail[NONCE_BYTES..NONCE_BYTES + 4].copy_from_slice(&generation.to_be_bytes());
    tail[NONCE_BYTES + 4..].copy_from_slice(&tag);
    Ok(())
}

/// Reads the generation in a unit's tail.
pub fn generation(unit: &[u8]) -> Option<u32> {
    let at = unit.len().checked_sub(TAG_BYTES + 4)?;
    Some(u32::from_be_bytes(unit.get(at..at + 4)?.try_into().ok()?))
}

/// Opens `unit` into `plaintext`, which is [`TAIL_BYTES`] shorter. Returns false if the unit does
/// not authenticate; `plaintext` is zeroed then.
#[must_use]
pub fn open(cipher: &Cipher, place: &Place, unit: &[u8], plaintext: &mut [u8]) -> bool {
    let Some((ciphertext, nonce, generation, tag)) = split(unit, plaintext.len()) else {
        plaintext.fill(0);
        return false;
    };
    let of_unit = place.nonce(nonce, generation);
    cipher.open_unit(&of_unit, &place.aad(generation), ciphertext, tag, plaintext).is_ok()
}

/// Opens `unit` in its own place: the plaintext takes the ciphertext's place, and the tail becomes zeros. Returns false if the
/// unit does not authenticate; all of it is zeroed then.
#[must_use]
pub fn open_in_place(cipher: &Cipher, place: &Place, unit: &mut [u8]) -> bool {
    let Some((content, tail)) = unit.split_last_chunk_mut::<TAIL_BYTES>() else {
        unit.fill(0);
        return false;
    };
    let tail = std::mem::replace(tail, [0; TAIL_BYTES]);
    let (Some(nonce), Some(tag), Some(generation)) =
        (tail.first_chunk(), tail.last_chunk(), generation(&tail))
    else {
        content.fill(0);
        return false;
    };
    let of_unit = place.nonce(nonce, generation);
    cipher.open_unit_in_place(&of_unit, &place.aad(generation), content, tag).is_ok()
}

type Parts<'a> = (&'a [u8], &'a [u8; NONCE_BYTES], u32, &'a [u8; TAG_BYTES]);

fn split(unit: &[u8], plaintext_bytes: usize) -> Option<Parts<'_>> {
    if unit.len() != plaintext_bytes + TAIL_BYTES {
        return None;
    }
    let (ciphertext, tail) = unit.split_at(plaintext_bytes);
    let nonce = tail.first_chunk::<NONCE_BYTES>()?;
    let tag = tail.last_chunk::<TAG_BYTES>()?;
    Some((ciphertext, nonce, generation(unit)?, tag))
}
