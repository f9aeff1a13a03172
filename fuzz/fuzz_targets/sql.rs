//! A batch of any bytes: parses or fails; what parses prints back to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pellucid_tsql::{parse, secret::redact};
use pellucid_tsql_testing::ToSql;

fuzz_target!(|bytes: &[u8]| {
    let batch = String::from_utf8_lossy(bytes);
    let _ = redact(&batch);
    let statements = match parse(&batch) {
        Ok(statements) => statements,
        Err(error) => {
            assert!(error.offset <= batch.len() && error.line >= 1);
            return;
        }
    };
    let printed: String =
        statements.iter().map(|one| format!("{}\n", *one.to_sql_with_secrets())).collect();
    match parse(&printed) {
        Ok(again) => assert!(again == statements, "{printed}"),
        Err(error) => panic!("{error:?}\n{printed}"),
    }
});
