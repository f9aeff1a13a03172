//! Trees made of bytes: each prints to a text that parses to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pellucid_tsql::parse;
use pellucid_tsql_testing::{Choices, ToSql};

fuzz_target!(|bytes: &[u8]| {
    let batch = Choices::new(bytes).batch();
    let printed: String =
        batch.iter().map(|one| format!("{}\n", *one.to_sql_with_secrets())).collect();
    match parse(&printed) {
        Ok(again) => assert!(again == batch, "{printed}"),
        Err(error) => panic!("{error:?}\n{printed}"),
    }
});
