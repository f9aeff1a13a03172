//! A script of any bytes, with commands and variables: every batch is given once, within what was read.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use pellucid_tsql::batch::{Item, NoFiles, Script, Variables};

fuzz_target!(|bytes: &[u8]| {
    let script = Script::new("fuzz", Cursor::new(bytes.to_vec()), NoFiles, Variables::new());
    let mut last = 0;
    for item in script {
        match item {
            Ok(Item::Batch(batch)) => {
                assert!(batch.line > last && !batch.text().is_empty());
                last = batch.line;
            }
            Ok(_) => {}
            Err(error) => drop(error.to_string()),
        }
    }
});
