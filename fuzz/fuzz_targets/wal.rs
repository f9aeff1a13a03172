//! A WAL: its header, then frames of the page size it states.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pellucid::wal::{
    open_frame, unmark_header, Run, Stamp, Version, WalHeader, FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid_fuzz::container;

fuzz_target!(|bytes: &[u8]| {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return };
    let parsed = WalHeader::parse(header);
    let Ok(keys) = container() else { return };
    for version in [Version::First, Version::Second] {
        let mut handed = *header;
        unmark_header(&mut handed, version);
        let ours = parsed.is_some_and(|header| header.sealed == Some(version));
        assert_eq!(WalHeader::parse(&handed).is_some(), ours);
        let run = Run::of(header, version);
        let page_size = parsed.map_or(512, |header| header.page_size) as usize;
        let frame_bytes = FRAME_HEADER_BYTES + page_size;
        let mut frame = vec![0; frame_bytes];
        for (at, sealed) in bytes[HEADER_BYTES..].chunks_exact(frame_bytes).enumerate() {
            let _ = open_frame(&keys, &run, at as u32 + 1, sealed, &mut frame);
            assert_eq!(Stamp::of(sealed).encode(), sealed[8..16]);
        }
    }
});
