//! The next header when the keys of a container change: the DEKs that it lists, and its state.
//!
//! It allows only the steps of docs/format.md, "Key change". The scan between two steps is in the
//! crate `pellucid-engine`.

use crate::algorithm::Algorithm;
use crate::derive::commitment;
use crate::error::{Error, Result, Subject};
use crate::header::{DekRow, EncryptionState, Header};
use crate::keys::ContainerKeys;
use crate::message;
use crate::nonce::NonceSource;
use crate::scan::{Scan, ScanState};
use crate::secret::Dek;

/// The state that a database is to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Sealed under a new DEK, from sealed.
    NewKey(Algorithm),
    /// Sealed, from plain or on the way there: `SET ENCRYPTION ON`.
    On(Algorithm),
    /// Plain, from sealed or on the way there: `SET ENCRYPTION OFF`.
    Off,
}

impl Header {
    /// Returns this header under another file id. The DEKs that it lists stay bound to the present
    /// id, and become older ones with the [`Header::rekeyed`] that has to follow.
    ///
    /// # Errors
    /// SQL Server's message 33110 during a scan, and if encryption is switched off;
    /// [`Error::Misuse`] for the same id.
    pub fn renamed(&self, file_id: [u8; 16]) -> Result<Self> {
        if self.state != EncryptionState::Encrypted {
            return Err(Error::message(message::KEY_DURING_SCAN, ""));
        }
        if file_id == self.file_id || file_id == [0; 16] {
            return Err(Error::misuse(
                Subject::Container,
                "the new file id is the present one or zero",
            ));
        }
        let scan = Scan { older_id: Some(self.file_id), ..self.scan };
        Ok(Self { file_id, scan, ..self.clone() })
    }

    /// Returns the row that a new DEK gets.
    ///
    /// # Errors
    /// SQL Server's messages 33110, 33107 and 33108 if the state does not allow it;
    /// [`Error::LimitReached`] if no generation is left.
    pub fn next_row(&self, dek: &Dek, target: Target) -> Result<DekRow> {
        use EncryptionState::*;
        let refused = match (target, self.state) {
            (Target::NewKey(_), Encrypted) => None,
            (Target::NewKey(_), _) => Some((message::KEY_DURING_SCAN, "")),
            // Switching back during a scan is allowed, any number of times.
            (Target::On(_), Unencrypted | Decrypting) => None,
            (Target::On(_), KeyChange) => Some((message::STATE_DURING_SCAN, "enable")),
            (Target::On(_), _) => Some((message::ON_ALREADY, "")),
            (Target::Off, Encrypted | Encrypting) => None,
            (Target::Off, KeyChange) => Some((message::STATE_DURING_SCAN, "disable")),
            (Target::Off, _) => Some((message::OFF_ALREADY, "")),
        };
        if let Some((message, argument)) = refused {
            return Err(Error::message(message, argument));
        }
        if self.generation >= u32::MAX - 2 {
            return Err(Error::limit(Subject::Container, "no generation is left"));
        }
        let algorithm = match target {
            Target::NewKey(algorithm) | Target::On(algorithm) => algorithm,
            Target::Off => self.algorithm()?,
        };
        if algorithm.first_version() > self.version() {
            return Err(Error::unsupported(
                Subject::Container,
                format!(
                    "format version {} has no {algorithm}: give the database a newer one first \
                     (`pellucid upgrade`)",
                    self.version()
                ),
            ));
        }
        Ok(DekRow {
            first_generation: self.generation + 1,
            last_generation: u32::MAX,
            algorithm,
            plain: target == Target::Off,
            commitment: commitment(dek, &self.file_id)?,
            wrapped: None,
        })
    }

    /// Returns this header after a change to `dek` with the row `row` ([`Header::next_row`]). All
    /// DEKs are listed, the older ones wrapped under the new one, and a scan has begun.
    /// `protectors` wrap the new DEK.
    ///
    /// # Errors
    /// [`Error::Io`] if no nonce can be drawn.
    pub fn rekeyed(
        &self,
        keys: &ContainerKeys,
        dek: &Dek,
        row: DekRow,
        protectors: Vec<Vec<u8>>,
        now: u64,
        nonces: &mut dyn NonceSource,
    ) -> Result<Self> {
        let mut deks = Vec::with_capacity(self.deks.len() + 1);
        for older in &self.deks {
            let own = keys.deks().find(|(first, _)| *first == older.first_generation);
            let (_, own) = own.ok_or_else(|| {
                Error::corrupt(Subject::Container, "the header lists a key that was not unwrapped")
            })?;
            let last = older.last_generation.min(self.generation);
            let wrapped = DekRow::wrap_older(
                own,
                older.first_generation..=last,
                older.algorithm,
                dek,
                &self.file_id,
                nonces,
            )?;
            // The commitment to an older DEK is bound to that DEK's own file id, as its units are.
            deks.push(DekRow { plain: older.plain, commitment: older.commitment, ..wrapped });
        }
        let switches = row.plain || deks.iter().any(|older| older.plain);
        let state = match (row.plain, switches) {
            (true, _) => EncryptionState::Decrypting,
            (false, true) => EncryptionState::Encrypting,
            (false, false) => EncryptionState::KeyChange,
        };
        let generation = row.first_generation;
        deks.push(row);
        Ok(Self {
            state,
            generation,
            scan: Scan {
                state: ScanState::Running,
                modified: now,
                regenerated: now,
                keys_modified: now,
                set: if switches { now } else { self.scan.set },
                older_id: self.scan.older_id,
            },
            deks,
            protectors,
            ..self.clone()
        })
    }

    /// Returns this header with its scan in another state. `None` if no scan is under way, or
    /// nothing would change.
    pub fn with_scan(&self, state: ScanState, now: u64) -> Option<Self> {
        let changes = self.scan.state.is_under_way() && self.scan.state != state;
        let scan = Scan { state, modified: now, ..self.scan };
        changes.then(|| Self { scan, ..self.clone() })
    }

    /// Returns this header without the older DEKs. The caller has proved that no unit of them is
    /// left.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it lists no current DEK.
    pub fn settled(&self, now: u64) -> Result<Self> {
        let row = self.current_dek()?.clone();
        Ok(Self {
            state: match row.plain {
                true => EncryptionState::Unencrypted,
                false => EncryptionState::Encrypted,
            },
            scan: Scan { state: ScanState::Complete, modified: now, older_id: None, ..self.scan },
            deks: vec![row],
            ..self.clone()
        })
    }

    /// Whether new units are not sealed: encryption is off, or being switched off.
    pub fn is_switched_off(&self) -> bool {
        matches!(self.state, EncryptionState::Unencrypted | EncryptionState::Decrypting)
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
            flags: crate::flags::Flags::default(),
            second: None,
            deks: vec![DekRow {
                first_generation: 1,
                last_generation: u32::MAX,
                algorithm: Algorithm::Aes256,
                commitment: commitment(&dek, &[3; 16]).unwrap(),
                plain: false,
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
        let row = header.next_row(&new, Target::NewKey(Algorithm::Aes128)).unwrap();
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

    /// A copy that gets an identity of its own: its pages open through the scan, those of the original not after it.
    #[test]
    fn another_file_id_comes_with_another_dek() {
        let (header, dek) = container();
        let keys = ContainerKeys::new(&header, &dek).unwrap();
        let mut sealed = [0; 512];
        let place = Place::page(&header.file_id, 1);
        keys.seal(FileKind::Database, &place, &mut SystemNonces, &[8; 480], &mut sealed).unwrap();
        let new = Dek::random().unwrap();
        assert!(header.renamed(header.file_id).is_err(), "it has that one");
        let renamed = header.renamed([4; 16]).unwrap();
        let row = renamed.next_row(&new, Target::NewKey(Algorithm::Aes256)).unwrap();
        let changed = renamed.rekeyed(&keys, &new, row, vec![], 99, &mut SystemNonces).unwrap();
        assert_eq!((changed.file_id, changed.scan.older_id), ([4; 16], Some([3; 16])));
        assert_eq!(changed.renamed([5; 16]).unwrap_err().number(), Some(33110));
        let header_key = crate::keys::HeaderKey::derive(&new, &[4; 16]).unwrap();
        let mut bytes = *changed.encode(&header_key).unwrap();
        assert_eq!(Header::parse(&bytes, 0).unwrap(), changed);
        // A row that says nothing of it, its sum made right again.
        bytes[128 + 9] ^= 4;
        let sum = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &bytes[..7136]);
        bytes[7136..].copy_from_slice(sum.as_ref());
        assert!(matches!(Header::parse(&bytes, 0), Err(Error::Corrupt { .. })));

        let mut page = [0; 480];
        let place = Place::page(&changed.file_id, 1);
        let mut open = |header: &Header, unit: &[u8]| {
            let keys = ContainerKeys::new(header, &new).unwrap();
            keys.open(FileKind::Database, &place, unit, &mut page, || Subject::Page(1))
        };
        open(&changed, &sealed).unwrap();
        let settled = changed.settled(100).unwrap();
        assert_eq!((settled.file_id, settled.scan.older_id), ([4; 16], None));
        assert!(open(&settled, &sealed).is_err(), "a page of the original");
        let keys = ContainerKeys::new(&changed, &new).unwrap();
        keys.seal(FileKind::Database, &place, &mut SystemNonces, &[9; 480], &mut sealed).unwrap();
        open(&settled, &sealed).unwrap();
    }

    #[test]
    fn a_scan_has_to_end_before_the_next_rekey() {
        let (header, dek) = container();
        let keys = ContainerKeys::new(&header, &dek).unwrap();
        let row = header.next_row(&dek, Target::NewKey(Algorithm::Aes256)).unwrap();
        let changed = header.rekeyed(&keys, &dek, row, vec![], 1, &mut SystemNonces).unwrap();
        let refused =
            changed.next_row(&dek, Target::NewKey(Algorithm::Aes256)).unwrap_err().to_string();
        assert!(
            refused.contains("Cannot change database encryption key while an encryption"),
            "{refused}"
        );
        assert!(changed
            .settled(2)
            .unwrap()
            .next_row(&dek, Target::NewKey(Algorithm::Aes256))
            .is_ok());
        let last = Header { generation: u32::MAX - 2, ..header };
        assert!(matches!(
            last.next_row(&dek, Target::NewKey(Algorithm::Aes256)),
            Err(Error::LimitReached { .. })
        ));
    }

    /// Off, on again in mid-scan, off, and to the end: units of all three DEKs open until then.
    #[test]
    fn encryption_is_switched_off_and_on_and_back_in_mid_scan() {
        let (mut header, mut dek) = container();
        let place = Place::page(&header.file_id, 1);
        let mut units = Vec::new();
        let targets = [Target::Off, Target::On(Algorithm::Aes192), Target::Off];
        for (turn, target) in targets.into_iter().enumerate() {
            let keys = ContainerKeys::new(&header, &dek).unwrap();
            let (mut unit, content) = ([0; 512], [turn as u8 + 1; 480]);
            keys.seal(FileKind::Database, &place, &mut SystemNonces, &content, &mut unit).unwrap();
            assert_eq!(unit[..480] == content, header.current_dek().unwrap().plain);
            units.push((unit, content));
            let new = Dek::random().unwrap();
            let row = header.next_row(&new, target).unwrap();
            header = header.rekeyed(&keys, &new, row, vec![], 5, &mut SystemNonces).unwrap();
            header.check_state().unwrap();
            dek = new;
            let refused = header.next_row(&dek, target).unwrap_err().number();
            assert_eq!(refused, Some(if target == Target::Off { 33108 } else { 33107 }));
        }
        assert_eq!((header.state, header.deks.len()), (EncryptionState::Decrypting, 4));
        let keys = ContainerKeys::new(&header, &dek).unwrap();
        let mut page = [0; 480];
        for (unit, content) in &mut units {
            keys.open(FileKind::Database, &place, unit, &mut page, || Subject::Page(1)).unwrap();
            assert_eq!(page, *content);
            for byte in [0, 479, 480, 511] {
                unit[byte] ^= 1;
                let opened =
                    keys.open(FileKind::Database, &place, unit, &mut page, || Subject::Page(1));
                assert!(opened.is_err(), "byte {byte}");
                unit[byte] ^= 1;
            }
        }
        let settled = header.settled(6).unwrap();
        assert_eq!(settled.state, EncryptionState::Unencrypted);
        settled.check_state().unwrap();
        for state in
            [EncryptionState::Encrypted, EncryptionState::KeyChange, EncryptionState::Encrypting]
        {
            let says = Header { state, ..settled.clone() };
            assert!(matches!(says.check_state(), Err(Error::Corrupt { .. })), "{state:?}");
        }
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
