//! Goal: whatever tree there is, its text parses to the same tree. Method: trees generated from seeded random bytes
//! (`Choices`), printed and parsed; then texts that are damaged, which may fail but never panic.

use std::collections::HashSet;

use pellucid_tsql::ast::Statement;
use pellucid_tsql_testing::{assert_prints_back, Choices, Random, ToSql};

const SEED: u64 = 0x5eed_0007;

fn batches(count: usize) -> impl Iterator<Item = Vec<Statement>> {
    eprintln!("seed {SEED:#x}");
    let mut random = Random(SEED);
    (0..count).map(move |_| Choices::new(&random.bytes(400)).batch())
}

#[test]
fn generated_trees_print_back() {
    let mut kinds = HashSet::new();
    for batch in batches(20_000) {
        kinds.extend(batch.iter().map(|statement| std::mem::discriminant(&statement.kind)));
        assert_prints_back(&batch);
    }
    assert_eq!(kinds.len(), 20, "every kind of statement is generated");
}

#[test]
fn damaged_text_fails_and_never_panics() {
    let mut random = Random(SEED ^ 1);
    let (mut parsed, mut failed) = (0, 0);
    for batch in batches(5_000) {
        let text: String =
            batch.iter().map(|one| format!("{}\n", *one.to_sql_with_secrets())).collect();
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..=random.number() % 3 {
            let at = (random.number() % letters.len() as u64) as usize;
            match random.number() % 3 {
                0 => drop(letters.remove(at)),
                1 => letters.insert(
                    at,
                    ['\'', '(', ')', '[', ';', '-', '/', '*', ' ', '@']
                        [(random.number() % 10) as usize],
                ),
                _ => letters.truncate(at.max(1)),
            }
            if letters.is_empty() {
                letters.push(' ');
            }
        }
        let damaged: String = letters.into_iter().collect();
        match pellucid_tsql::parse(&damaged) {
            Ok(statements) => {
                parsed += 1;
                assert_prints_back(&statements);
            }
            Err(error) => {
                failed += 1;
                assert!(error.offset <= damaged.len() && error.line >= 1);
            }
        }
    }
    assert!(parsed > 100 && failed > 1_000, "{parsed} parsed, {failed} failed");
}
