//! The header of a database in another format version, and what keeps it from having that.
//!
//! Layout: docs/format.md, "Another version".

use super::{Header, Second, FIXED_BYTES_SECOND, MAC_AT, ROW_BYTES};
use crate::error::{Error, Result, Subject};

/// Rows of DEKs that have to fit beside what is there: the next rekey adds one, and encryption that
/// is switched off and on again meanwhile another.
const SPARE_ROWS: usize = 2;

impl Header {
    /// The same database in format version `version`. Its sequence is the caller's to count up.
    ///
    /// # Errors
    /// [`Error::Misuse`] while a scan is under way, or while something is used that the other version
    /// does not have. [`Error::LimitReached`] if the next rekey would find no room.
    /// [`Error::Unsupported`] for a version that this build does not write.
    pub fn in_version(&self, version: u32) -> Result<Self> {
        if version == self.version() {
            return Ok(self.clone());
        }
        if self.is_being_scanned() {
            return Err(Error::misuse(
                Subject::Container,
                "a scan of it is under way, or was not finished",
            ));
        }
        match version {
            1 => match self.needs_second() {
                Some(why) => Err(Error::misuse(
                    Subject::Container,
                    format!("it {why}, which version 1 does not have"),
                )),
                None => Ok(Self { second: None, ..self.clone() }),
            },
            2 => {
                let next = Self { second: Some(Second::default()), ..self.clone() };
                next.check_room()?;
                Ok(next)
            }
            _ => Err(Error::unsupported(
                Subject::Container,
                format!("format version {version} is not known to this version"),
            )),
        }
    }

    /// Whether a scan is under way, was suspended or met damage: units of an older DEK are left.
    pub fn is_being_scanned(&self) -> bool {
        self.deks.len() > 1 || self.scan.older_id.is_some() || self.scan.state.is_under_way()
    }

    /// What the database uses that version 1 does not have.
    pub fn needs_second(&self) -> Option<String> {
        let second = self.second.clone().unwrap_or_default();
        let of_later = |row: &&super::DekRow| row.algorithm.first_version() > 1;
        if let Some(row) = self.deks.iter().find(of_later) {
            return Some(format!("is sealed by {}", row.algorithm));
        }
        second.uses()
    }

    /// Refuses a header of version 2 that has no room for the rows of the next rekey.
    fn check_room(&self) -> Result<()> {
        let used = self.used_bytes() + SPARE_ROWS * ROW_BYTES;
        if used <= MAC_AT {
            return Ok(());
        }
        Err(Error::limit(
            Subject::Container,
            format!(
                "version 2 has {} bytes less for protectors, and with {} of them the next rekey would \
                 have no room in the header ({used} of {MAC_AT} bytes); drop a protector first",
                FIXED_BYTES_SECOND - super::FIXED_BYTES,
                self.protectors.len()
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DekRow, RecoveryModel};
    use super::*;
    use crate::header::EncryptionState;
    use crate::scan::ScanState;
    use crate::Algorithm;

    fn header() -> Header {
        Header {
            sequence: 3,
            file_id: [9; 16],
            page_size: 4096,
            state: EncryptionState::Encrypted,
            generation: 1,
            created: 5,
            scan: crate::scan::Scan::default(),
            flags: crate::flags::Flags::default(),
            second: None,
            deks: vec![DekRow {
                first_generation: 1,
                last_generation: u32::MAX,
                algorithm: Algorithm::Aes256,
                plain: false,
                commitment: [7; 32],
                wrapped: None,
            }],
            protectors: vec![],
        }
    }

    #[test]
    fn there_and_back_is_the_same_header() {
        let first = header();
        let second = first.in_version(2).unwrap();
        assert_eq!((first.version(), second.version()), (1, 2));
        assert_eq!(second.in_version(1).unwrap(), first);
        assert_eq!(second.in_version(2).unwrap(), second);
        assert!(first.in_version(3).is_err() && first.in_version(0).is_err());
    }

    #[test]
    fn a_scan_and_what_version_1_does_not_have_keep_it_where_it_is() {
        let mut older = header();
        older.deks.insert(0, DekRow { wrapped: Some([1; 60]), ..older.deks[0].clone() });
        let mut suspended = header();
        suspended.scan.state = ScanState::Suspended;
        let mut aborted = header();
        aborted.scan.state = ScanState::Aborted;
        for scanned in [older, suspended, aborted] {
            for (from, to) in [(None, 2), (Some(Second::default()), 1)] {
                let header = Header { second: from, ..scanned.clone() };
                let told = header.in_version(to).unwrap_err().to_string();
                assert!(told.contains("a scan of it is under way"), "{told}");
            }
        }
        for (second, says) in [
            (Second { index_in_memory: true, ..Second::default() }, "wal-index in memory"),
            (Second { model: RecoveryModel::Full, ..Second::default() }, "recovery model FULL"),
            (Second { has_chain: true, ..Second::default() }, "chain of log backups"),
            (Second { fork: [1; 16], ..Second::default() }, "log backups"),
            (Second { is_standby: true, ..Second::default() }, "standby"),
        ] {
            let header = Header { second: Some(second), ..header() };
            let told = header.in_version(1).unwrap_err().to_string();
            assert!(told.contains(says), "{told}");
        }
    }

    /// As many bytes of protectors as leave room for two rows in version 2, and one more.
    #[test]
    fn the_next_rekey_keeps_its_room() {
        let free = MAC_AT - FIXED_BYTES_SECOND - 3 * ROW_BYTES;
        let with = |bytes| Header { protectors: vec![vec![0; bytes]], ..header() };
        assert!(with(free).in_version(2).is_ok());
        let told = with(free + 1).in_version(2).unwrap_err();
        assert!(matches!(&told, Error::LimitReached { .. }), "{told}");
    }
}
