//! A rollback journal: a header sector, then records of 512-byte pages.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pellucid::journal::{open_record, record_bytes, JournalHeader, SECTOR_PART_BYTES};
use pellucid_fuzz::container;

fuzz_target!(|bytes: &[u8]| {
    let Ok(keys) = container() else { return };
    let id = match JournalHeader::open(&keys, bytes, 512) {
        Ok((header, _)) => {
            let _ = (header.sector_size(), header.page_size());
            header.id
        }
        Err(_) => *b"this one journal",
    };
    let records = bytes.get(SECTOR_PART_BYTES..).unwrap_or_default();
    let mut record = vec![0; record_bytes(512)];
    for (at, sealed) in records.chunks_exact(record_bytes(512)).enumerate() {
        let _ =
            open_record(&keys, &id, 1024 + (at * record_bytes(512)) as u64, sealed, &mut record);
    }
});
