//! The state and the progress of a container's scan, and when its keys changed.
//!
//! Layout: docs/format.md, "Header" and "Progress". A scan rewrites the pages of older generations;
//! the crate `pellucid-engine` does that.

use crate::error::{Error, Result, Subject};
use crate::keys::HeaderKey;

/// Bytes of the fields in a header.
pub const FIELDS_BYTES: usize = 60;
/// The offset of a scan's progress in the header region.
pub const PROGRESS_OFFSET: u64 = 1536;
/// Bytes of the progress.
pub const PROGRESS_BYTES: usize = 64;

/// The range of the older file id in the fields.
const OLDER_ID: std::ops::Range<usize> = 36..52;
/// The range of the progress that is zero in version 1.
const PROGRESS_ZEROS: std::ops::Range<usize> = 20..24;
const MAGIC_PROGRESS: &[u8; 8] = b"PELSCAN\0";

/// The state of a scan, as SQL Server's `encryption_scan_state` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum ScanState {
    /// There was no scan.
    #[default]
    None = 0,
    /// Pages are being rewritten, or would be if a process ran the scan.
    Running = 1,
    /// The scan is stopped until it is resumed.
    Suspended = 2,
    /// The scan met a damaged page, which it cannot rewrite.
    Aborted = 3,
    /// No page of an older generation is left, and the older keys are gone.
    Complete = 4,
}

impl ScanState {
    /// Every state, in the order of their ids.
    pub const ALL: [ScanState; 5] = [
        ScanState::None,
        ScanState::Running,
        ScanState::Suspended,
        ScanState::Aborted,
        ScanState::Complete,
    ];

    fn from_id(id: u8) -> Result<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == id).ok_or_else(|| {
            Error::unsupported(
                Subject::Container,
                format!("scan state {id} is not known to this version"),
            )
        })
    }

    /// Lower-case words for people.
    pub const fn name(self) -> &'static str {
        match self {
            ScanState::None => "none",
            ScanState::Running => "running",
            ScanState::Suspended => "suspended",
            ScanState::Aborted => "aborted",
            ScanState::Complete => "complete",
        }
    }

    /// SQL Server's `encryption_scan_state_desc`.
    pub const fn description(self) -> &'static str {
        match self {
            ScanState::None => "NONE",
            ScanState::Running => "RUNNING",
            ScanState::Suspended => "SUSPENDED",
            ScanState::Aborted => "ABORTED",
            ScanState::Complete => "COMPLETE",
        }
    }

    /// Whether a scan has begun and not ended.
    pub const fn is_under_way(self) -> bool {
        matches!(self, ScanState::Running | ScanState::Suspended | ScanState::Aborted)
    }
}

/// The last scan of a container, and when its keys changed. Times are seconds since 1970, 0 for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scan {
    /// The scan's state.
    pub state: ScanState,
    /// When the state changed last.
    pub modified: u64,
    /// When the current DEK was made; 0: with the container.
    pub regenerated: u64,
    /// When a DEK or a protector changed last; 0: with the container.
    pub keys_modified: u64,
    /// When encryption was switched on or off last; 0: with the container.
    pub set: u64,
    /// The file id that units of older DEKs are bound to, while a scan gives the container another one.
    pub older_id: Option<[u8; 16]>,
}

impl Scan {
    /// Encodes the fields of a header.
    pub fn encode(&self) -> [u8; FIELDS_BYTES] {
        let mut fields = [0; FIELDS_BYTES];
        fields[0] = self.state as u8;
        let times = [self.modified, self.regenerated, self.keys_modified, self.set];
        for (place, time) in fields[4..].chunks_exact_mut(8).zip(times) {
            place.copy_from_slice(&time.to_be_bytes());
        }
        fields[OLDER_ID].copy_from_slice(&self.older_id.unwrap_or_default());
        fields
    }

    /// Parses the fields of a header.
    ///
    /// # Errors
    /// [`Error::Unsupported`], which names an unknown state.
    pub fn parse(fields: &[u8; FIELDS_BYTES]) -> Result<Self> {
        let mut older_id = [0; 16];
        older_id.copy_from_slice(&fields[OLDER_ID]);
        Ok(Self {
            state: ScanState::from_id(fields[0])?,
            modified: u64_at(fields, 4),
            regenerated: u64_at(fields, 12),
            keys_modified: u64_at(fields, 20),
            set: u64_at(fields, 28),
            older_id: (older_id != [0; 16]).then_some(older_id),
        })
    }
}

/// The progress of a scan, to show it. It has a sector of its own, which is written in one piece
/// and not synced: the scan itself sees by the pages what is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The generation that the pages are brought to.
    pub generation: u32,
    /// Pages that were read, from the first.
    pub done: u32,
    /// Pages in all.
    pub pages: u32,
    /// When this was written.
    pub at: u64,
}

impl Progress {
    /// Encodes the bytes of the sector.
    pub fn encode(&self, key: &HeaderKey) -> [u8; PROGRESS_BYTES] {
        let mut bytes = [0; PROGRESS_BYTES];
        bytes[..8].copy_from_slice(MAGIC_PROGRESS);
        bytes[8..12].copy_from_slice(&self.generation.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.done.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.pages.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.at.to_be_bytes());
        let mac = key.sign(&[&PROGRESS_OFFSET.to_be_bytes(), &bytes[..32]]);
        bytes[32..].copy_from_slice(&mac);
        bytes
    }

    /// Parses a progress without a key. `None` if there is none. It is not authenticated.
    pub fn parse(bytes: &[u8; PROGRESS_BYTES]) -> Option<Self> {
        let known = bytes[PROGRESS_ZEROS] == [0; 4];
        (known && bytes[..8] == MAGIC_PROGRESS[..]).then(|| Self {
            generation: u32_at(bytes, 8),
            done: u32_at(bytes, 12),
            pages: u32_at(bytes, 16),
            at: u64_at(bytes, 24),
        })
    }

    /// Parses a progress that was written with the key. `None` for any other.
    pub fn authentic(bytes: &[u8; PROGRESS_BYTES], key: &HeaderKey) -> Option<Self> {
        let signed = key.verify(&[&PROGRESS_OFFSET.to_be_bytes(), &bytes[..32]], &bytes[32..]);
        Self::parse(bytes).filter(|_| signed)
    }

    /// The progress in percent, 0 to 100.
    pub fn percent(&self) -> f32 {
        match self.pages {
            0 => 0.0,
            pages => (f64::from(self.done) * 100.0 / f64::from(pages)).min(100.0) as f32,
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Dek, Secret32};

    #[test]
    fn fields_read_back_and_an_unknown_state_is_named() {
        let scan = Scan {
            state: ScanState::Suspended,
            modified: 1 << 40,
            regenerated: 2,
            keys_modified: 3,
            set: u64::MAX,
            older_id: Some([9; 16]),
        };
        let mut fields = scan.encode();
        assert_eq!(Scan::parse(&fields).unwrap(), scan);
        fields[0] = 5;
        let told = Scan::parse(&fields).unwrap_err().to_string();
        assert!(told.contains("scan state 5"), "{told}");
    }

    #[test]
    fn progress_reads_back_and_says_whether_it_is_authentic() {
        let key = |byte| {
            let dek = Dek::from_secret(Secret32::new(&mut [byte; 32]));
            HeaderKey::derive(&dek, &[9; 16]).unwrap()
        };
        let progress = Progress { generation: 3, done: 50, pages: 200, at: 1 << 33 };
        let bytes = progress.encode(&key(1));
        assert_eq!(Progress::parse(&bytes), Some(progress));
        assert_eq!(Progress::authentic(&bytes, &key(1)), Some(progress));
        assert_eq!(Progress::authentic(&bytes, &key(2)), None);
        assert_eq!(Progress::parse(&[0; PROGRESS_BYTES]), None);
    }

    #[test]
    fn percent_is_between_nothing_and_all() {
        let percent = |done, pages| Progress { done, pages, ..Progress::default() }.percent();
        assert_eq!(percent(50, 200), 25.0);
        assert_eq!(percent(5, 0), 0.0);
        assert_eq!(percent(900, 200), 100.0);
    }
}
