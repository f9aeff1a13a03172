//! A header of another format version, and sector 2 in the form of that version.
//!
//! Layout and order: docs/format.md, "Another version".

use pellucid::header::Header;
use pellucid::sector::{Wear, SECTOR_BYTES, WEAR_LOG_OFFSET};
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
        match header.version() {
            1 => {
                self.write_log_sector(lower, 1)?;
                self.write_header(header, dek)
            }
            version => {
                self.write_header(header, dek)?;
                self.write_log_sector(lower, version)
            }
        }
    }

    /// Writes sector 2 in the form of `version` and syncs it. The generation counted and the writes
    /// reserved stay. A sector that does not authenticate stays as well: it counts as worn out.
    fn write_log_sector(&self, lower: Lower, _version: u32) -> Outcome<()> {
        let keys = self.keys()?;
        let mut sector = [0; SECTOR_BYTES];
        lower.read(&mut sector, WEAR_LOG_OFFSET)?;
        let Some(used) = sector.first_chunk() else { return Ok(()) };
        if let Ok(wear) = Wear::parse(used, keys.header_key(), WEAR_LOG_OFFSET) {
            let mut next = [0; SECTOR_BYTES];
            let encoded = wear.encode(keys.header_key(), WEAR_LOG_OFFSET);
            next[..encoded.len()].copy_from_slice(&encoded);
            lower.write(&next, WEAR_LOG_OFFSET)?;
        }
        lower.sync(ffi::SYNC_NORMAL)
    }
}
