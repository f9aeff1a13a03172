//! A header of another format version, and sector 2 in the form of that version.
//!
//! Layout and order: docs/format.md, "Another version".

use pellucid::header::Header;
use pellucid::log_sector::{LogSector, LOG_SECTOR_BYTES};
use pellucid::sector::WEAR_LOG_OFFSET;
use pellucid::wal::Version;
use pellucid::Dek;
use pellucid_host::code::Outcome;
use pellucid_host::ffi;

use super::Container;
use crate::lower::Lower;

impl Container {
    /// Writes `header` as [`Container::write_header`] does, and sector 2 in the form of its version.
    /// The caller holds EXCLUSIVE, no other connection is there, and the log is empty.
    ///
    /// The form of version 1 is the one that both versions read while the log is empty. So on the way
    /// up the sector follows the header, and on the way back it goes before it: at no moment is a
    /// sector of version 2 under a header of version 1, which would count as worn out.
    ///
    /// # Errors
    /// As [`Container::write_header`].
    pub fn write_version(&self, header: Header, dek: &Dek) -> Outcome<()> {
        let lower = self.lower()?;
        match Version::of_database(&header) {
            Version::First => {
                self.change_log_sector(lower, Version::First)?;
                self.write_header(header, dek)
            }
            Version::Second => {
                self.write_header(header, dek)?;
                self.change_log_sector(lower, Version::Second)
            }
        }
    }

    /// Writes sector 2 in the form of `version` and syncs it. The generation counted and the writes
    /// reserved stay. A sector that does not authenticate stays as well: it counts as worn out.
    fn change_log_sector(&self, lower: Lower, version: Version) -> Outcome<()> {
        let keys = self.keys()?;
        // It reads both forms.
        let Some((LogSector { wear, .. }, _)) = self.log_sector_under(lower, &keys)? else {
            return Ok(());
        };
        match version {
            Version::First => {
                let mut sector = [0; LOG_SECTOR_BYTES];
                let encoded = wear.encode(keys.header_key(), WEAR_LOG_OFFSET);
                sector[..encoded.len()].copy_from_slice(&encoded);
                self.forget_log_sector();
                lower.write(&sector, WEAR_LOG_OFFSET)?;
            }
            Version::Second => {
                let sector = LogSector { wear, ..LogSector::default() };
                self.put_log_sector(lower, &keys, &sector)?;
            }
        }
        lower.sync(ffi::SYNC_NORMAL)
    }
}
