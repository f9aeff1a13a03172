//! Trees made of bytes: each prints to a text that parses to the same.
#![no_main]

#[path = "../../crates/pellucid-sql/tests/common/generate.rs"]
mod generate;
#[path = "../../crates/pellucid-sql/tests/common/generate_objects.rs"]
mod generate_objects;
#[path = "../../crates/pellucid-sql/tests/common/generate_queries.rs"]
mod generate_queries;
#[path = "../../crates/pellucid-sql/tests/common/generate_statements.rs"]
mod generate_statements;

use libfuzzer_sys::fuzz_target;
use pellucid_sql::parse;

fuzz_target!(|bytes: &[u8]| {
    let batch = generate::Choices::new(bytes).batch();
    let printed: String =
        batch.iter().map(|one| format!("{}\n", *one.to_sql_with_secrets())).collect();
    match parse(&printed) {
        Ok(again) => assert!(again == batch, "{printed}"),
        Err(error) => panic!("{error:?}\n{printed}"),
    }
});
