//! From one header to the next when the keys of a container change: which DEKs it lists, which state it says.
//!
//! Only the steps that docs/format.md, "Key change", allows. What a scan has to do in between is not here.

use crate::algorithm::Algorithm;
use crate::derive::commitment;
use crate::error::{Error, Result, Subject};
use crate::header::{DekRow, EncryptionState, Header};
use crate::keys::ContainerKeys;
use crate::message;
use crate::nonce::NonceSource;
use crate::scan::{Scan, ScanState};
use crate::secret::Dek;

impl Header {
    /// The row that a new DEK will have.
    ///
    /// # Errors
    /// [`Error::Misuse`] during a scan (SQL Server's message 33110), [`Error::LimitReached`] if no generation is
    /// left.
    pub fn next_row(&self, dek: &Dek, algorithm: Algorithm) -> Result<DekRow> {
        if self.state != EncryptionState::Encrypted || self.deks.len() != 1 {
            return Err(Error::message(message::KEY_DURING_SCAN, ""));
        }
        if self.generation >= u32::MAX - 2 {
            return Err(Error::limit(Subject::Container, "no generation is left"));
        }
        Ok(DekRow {
            first_generation: self.generation + 1,
            last_generation: u32::MAX,
            algorithm,
            commitment: commitment(dek, &self.file_id)?,
            wrapped: None,
        })
    }

    /// This header after a rekey to `dek`, of which `row` is the row: both DEKs are listed, the older one wrapped
    /// under the new one, and a scan has begun. `protectors` wrap the new DEK.
    ///
    /// # Errors
    /// As [`Header::next_row`]; [`Error::Io`] if no nonce can be had.
    pub fn rekeyed(
        &self,
        keys: &ContainerKeys,
        dek: &Dek,
        row: DekRow,
        protectors: Vec<Vec<u8>>,
        now: u64,
        nonces: &mut dyn NonceSource,
    ) -> Result<Self> {
        let older = self.current_dek()?;
        let older_dek = keys
            .dek()
            .ok_or_else(|| Error::corrupt(Subject::Container, "header lists no current DEK"))?;
        let older = DekRow::wrap_older(
            older_dek,
            older.first_generation..=self.generation,
            older.algorithm,
            dek,
            &self.file_id,
            nonces,
        )?;
        Ok(Self {
            state: EncryptionState::KeyChange,
            generation: row.first_generation,
            scan: Scan {
                state: ScanState::Running,
                modified: now,
                regenerated: now,
                keys_modified: now,
                ..self.scan
            },
            deks: vec![older, row],
            protectors,
            ..self.clone()
        })
    }

    /// This header with its scan in another state; none if no scan is under way, or nothing would change.
    pub fn with_scan(&self, state: ScanState, now: u64) -> Option<Self> {
        let changes = self.scan.state.is_under_way() && self.scan.state != state;
        let scan = Scan { state, modified: now, ..self.scan };
        changes.then(|| Self { scan, ..self.clone() })
    }

    /// This header once no unit of an older DEK is left: those are no longer listed.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it lists no current DEK.
    pub fn settled(&self, now: u64) -> Result<Self> {
        Ok(Self {
            state: EncryptionState::Encrypted,
            scan: Scan { state: ScanState::Complete, modified: now, ..self.scan },
            deks: vec![self.current_dek()?.clone()],
            ..self.clone()
        })
    }

    /// Whether a unit of `generation` was sealed under the current DEK.
    pub fn is_current(&self, generation: u32) -> bool {
        self.current_dek()
            .is_ok_and(|row| row.first_generation <= generation && generation <= self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nonce::SystemNonces;
    use crate::unit::{FileKind, Place};

    fn container() -> (Header, Dek) {
        let dek = Dek::random().unwrap();
        let header = Header {
            sequence: 7,
            file_id: [3; 16],
            page_size: 512,
            state: EncryptionState::Encrypted,
            generation: 4,
            created: 1,
            scan: Scan::default(),
            deks: vec![DekRow {
                first_generation: 1,
                last_generation: u32::MAX,
                algorithm: Algorithm::Aes256,
                commitment: commitment(&dek, &[3; 16]).unwrap(),
                wrapped: None,
            }],
            protectors: vec![vec![1, 0, 0, 0]],
        };
        (header, dek)
    }

    #[test]
    fn after_a_rekey_both_deks_open_and_at_its_end_only_the_new_one() {
        let (header, dek) = container();
        let keys = ContainerKeys::new(&header, &dek).unwrap();
        let place = Place::page(&header.file_id, 1);
        let mut sealed = [0; 512];
        keys.seal(FileKind::Database, &place, &mut SystemNonces, &[8; 480], &mut sealed).unwrap();

        let new = Dek::random().unwrap();
        let row = header.next_row(&new, Algorithm::Aes128).unwrap();
        let changed = header
            .rekeyed(&keys, &new, row, vec![vec![2, 0, 0, 0]], 99, &mut SystemNonces)
            .unwrap();
        assert_eq!((changed.state, changed.generation), (EncryptionState::KeyChange, 5));
        assert_eq!(changed.algorithm().unwrap(), Algorithm::Aes128);
        assert_eq!(changed.protectors, [vec![2, 0, 0, 0]]);
        assert!(changed.is_current(5) && !changed.is_current(4) && !changed.is_current(6));
        let mut page = [0; 480];
        let mut open = |header: &Header| {
            let keys = ContainerKeys::new(header, &new).unwrap();
            keys.open(FileKind::Database, &place, &sealed, &mut page, || Subject::Page(1))
        };
        open(&changed).unwrap();
        let settled = changed.settled(100).unwrap();
        assert_eq!(
            (settled.state, settled.scan.state),
            (EncryptionState::Encrypted, ScanState::Complete)
        );
        assert!(open(&settled).is_err(), "the older DEK opens nothing any more");
        assert!(ContainerKeys::new(&changed, &dek).is_err(), "nor does it unwrap the new one");
    }

    #[test]
    fn a_scan_has_to_end_before_the_next_rekey() {
        let (header, dek) = container();
        let keys = ContainerKeys::new(&header, &dek).unwrap();
        let row = header.next_row(&dek, Algorithm::Aes256).unwrap();
        let changed = header.rekeyed(&keys, &dek, row, vec![], 1, &mut SystemNonces).unwrap();
        let refused = changed.next_row(&dek, Algorithm::Aes256).unwrap_err().to_string();
        assert!(
            refused.contains("Cannot change database encryption key while an encryption"),
            "{refused}"
        );
        assert!(changed.settled(2).unwrap().next_row(&dek, Algorithm::Aes256).is_ok());
        let last = Header { generation: u32::MAX - 2, ..header };
        assert!(matches!(last.next_row(&dek, Algorithm::Aes256), Err(Error::LimitReached { .. })));
    }

    #[test]
    fn only_a_scan_under_way_changes_its_state() {
        let (header, _) = container();
        assert_eq!(header.with_scan(ScanState::Suspended, 5), None);
        let running = Scan { state: ScanState::Running, ..Scan::default() };
        let header = Header { scan: running, ..header };
        assert_eq!(header.with_scan(ScanState::Running, 5), None);
        let suspended = header.with_scan(ScanState::Suspended, 5).unwrap();
        assert_eq!((suspended.scan.state, suspended.scan.modified), (ScanState::Suspended, 5));
    }
}
