//! Checks that a statement's text parses, prints and parses again to the same tree.

use pellucid_tsql::ast::Statement;
use pellucid_tsql::batch::{Item, NoFiles, Script, Variables};
use pellucid_tsql::parse;

use crate::ToSql;

/// The statements of `batch`, which have to print back to equal ones.
pub fn round_trip(batch: &str) -> Vec<Statement> {
    let statements = parse(batch).unwrap_or_else(|error| panic!("{batch}\n{error:?}"));
    assert_prints_back(&statements);
    statements
}

/// Printed and parsed, each statement alone and all together, they have to be the same.
pub fn assert_prints_back(statements: &[Statement]) {
    let printed: Vec<_> = statements.iter().map(|one| one.to_sql_with_secrets()).collect();
    for (statement, text) in statements.iter().zip(&printed) {
        // What only makes sense in its place.
        if text.starts_with("BREAK") || text.starts_with("CONTINUE") {
            continue;
        }
        let again = parse(text).unwrap_or_else(|error| panic!("{}\n{error:?}", **text));
        assert!(again == [statement.clone()], "{}\n{}", **text, *again[0].to_sql_with_secrets());
        assert_eq!(again[0].to_sql_with_secrets(), *text);
    }
    let all: String = printed.iter().map(|text| format!("{}\n", **text)).collect();
    let again = parse(&all).unwrap_or_else(|error| panic!("{all}\n{error:?}"));
    assert!(again == statements, "{all}");
}

/// The batches of a script, with how often each is executed.
pub fn batches(script: &str) -> Vec<(String, u64)> {
    let reader = std::io::Cursor::new(script.to_owned().into_bytes());
    Script::new("script.sql", reader, NoFiles, Variables::new())
        .map(|item| match item {
            Ok(Item::Batch(batch)) => (batch.text().to_owned(), batch.repeat),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Each statement has to print as the text beside it, secrets in clear, and to parse back to the same.
pub fn prints_as(table: &[(&str, &str)]) {
    for (written, printed) in table {
        let statements = round_trip(written);
        let [statement] = &statements[..] else {
            panic!("{written}: {} statements", statements.len())
        };
        assert_eq!(*statement.to_sql_with_secrets(), format!("{printed};"), "{written}");
    }
}

/// Each statement has to print as it is written, but for the semicolon.
pub fn prints_the_same(statements: &[&str]) {
    let table: Vec<_> = statements.iter().map(|text| (*text, *text)).collect();
    prints_as(&table);
}
