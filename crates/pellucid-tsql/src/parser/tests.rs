//! Statements one at a time: what comes before an error, and where each stands.

use super::*;

#[test]
fn statements_come_before_the_error_behind_them() {
    let batch = "PRINT 1;\nUSE master PRINT 2 PRINT";
    let mut statements = statements(batch).unwrap();
    for (line, text) in [(1, "PRINT 1"), (2, "USE master"), (2, "PRINT 2")] {
        let statement = statements.next().unwrap().unwrap();
        assert_eq!((statement.line, &batch[statement.span]), (line, text));
    }
    assert_eq!(statements.next().unwrap().unwrap_err().number(), 102);
    assert!(statements.next().is_none(), "ends at the first error");
    assert_eq!(parse(batch).unwrap_err().number(), 102, "a batch is whole or it is not parsed");
}

#[test]
fn positions_do_not_count_in_comparisons() {
    let (first, second) = (parse("PRINT 1").unwrap(), parse("\n/* x */ print\n1 ;").unwrap());
    assert_eq!(first, second);
    assert_ne!((first[0].line, &first[0].span), (second[0].line, &second[0].span));
}

#[test]
fn nothing_is_a_batch_without_statements() {
    for empty in ["", " \n", ";;;", "-- x", "/* x */"] {
        assert_eq!(parse(empty).unwrap(), [], "{empty:?}");
    }
}

#[test]
fn a_batch_too_long_is_refused_before_it_is_read() {
    let error = parse(&" ".repeat(crate::lexer::TEXT_BYTES_MOST + 1)).unwrap_err();
    let told = "Batch/procedure exceeds maximum length of 67108864 characters.";
    assert_eq!((error.number(), &error.to_string()[..]), (123, told));
}
