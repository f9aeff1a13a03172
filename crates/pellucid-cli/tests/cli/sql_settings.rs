//! Goal: SET options of scripts mean what they mean on SQL Server.
//!
//! Method: batches whose text or results depend on them, by `pellucid sql`.

use crate::sql_server::{errors, Server};

/// From the statement on, in the same batch, in the next ones, and not in a string's surroundings.
#[test]
fn quoted_identifier_decides_how_the_text_behind_it_is_read() {
    let server = Server::with(&[]);
    let rows = |script: &str| server.rows(&format!("SET NOCOUNT ON;\n{script}"));
    assert_eq!(rows("SET QUOTED_IDENTIFIER OFF; SELECT \"it's \"\"here\"\"\""), ["it's \"here\""]);
    assert_eq!(rows("SET QUOTED_IDENTIFIER OFF\nGO\nSELECT \"a\" + 'b'"), ["ab"]);
    assert_eq!(rows("IF 1 = 0 SET QUOTED_IDENTIFIER OFF\nSELECT \"x\""), ["x"]);
    // It is OFF at first, as sqlcmd has it.
    assert_eq!(rows("SELECT \"a b\", [c d] = 2"), ["a b|2"]);
    assert_eq!(rows("SET QUOTED_IDENTIFIER ON; SELECT 1 AS \"a b\", [c d] = 2"), ["1|2"]);
    assert_eq!(
        rows("SET QUOTED_IDENTIFIER OFF; SELECT \"a\"; SET QUOTED_IDENTIFIER ON; SELECT 'b' AS \"b\"")[0],
        "a"
    );
    // What a string sets ends with it.
    assert_eq!(
        rows("SET QUOTED_IDENTIFIER ON\nGO\nEXEC ('SET QUOTED_IDENTIFIER OFF; PRINT \"p\"')\nGO\nSELECT 1 AS \"a\"")
            .last()
            .unwrap(),
        "1"
    );
    // With ON it is a name.
    assert_eq!(errors(&server.run("SET QUOTED_IDENTIFIER ON; SELECT \"x\"").all())[0].0, "Msg 207");
    // A database of a name in brackets, a password in quotes: masked as any other.
    let told = server.run("SET QUOTED_IDENTIFIER OFF; CREATE MASTER KEY ENCRYPTION BY PASSWORD = \"Pa55 of mine\" x").all();
    assert!(!told.contains("Pa55"), "{told}");
}

#[test]
fn ansi_nulls_off_compares_null_literals_and_variables_alone() {
    let server = Server::with(&[]);
    let begin = "SET NOCOUNT ON;
        CREATE TABLE #t (a int, b int);
        INSERT INTO #t VALUES (1, 1), (2, NULL), (NULL, NULL);
        SET ANSI_NULLS OFF;
        DECLARE @null int, @one int = 1;\n";
    for (condition, count) in [
        ("b = NULL", "2"),
        ("b <> NULL", "1"),
        ("NULL = b", "2"),
        ("b = @null", "2"),
        ("b <> @null", "1"),
        ("b = @one", "1"),
        // Neither is NULL, so that a NULL of the column is unknown still.
        ("b <> @one", "0"),
        ("a = b", "1"),
        ("@null = @null", "3"),
        ("a > @null", "0"),
        ("a IN (1, NULL)", "2"),
        ("a NOT IN (1, NULL)", "1"),
        ("3 NOT IN (1, 2, NULL)", "3"),
        ("@null IN (1, NULL)", "3"),
    ] {
        let script = format!("{begin}SELECT COUNT(*) FROM #t WHERE {condition}");
        assert_eq!(server.rows(&script), [count], "{condition}");
    }
    let script = format!("{begin}SET ANSI_NULLS ON; SELECT COUNT(*) FROM #t WHERE b = NULL");
    assert_eq!(server.rows(&script), ["0"]);
}

/// The others are taken where they leave errors that they would hide, and refused where something else would come out.
#[test]
fn what_is_taken_and_what_is_refused() {
    let server = Server::with(&[]);
    for taken in [
        "ANSI_PADDING OFF",
        "ANSI_WARNINGS OFF",
        "ARITHABORT OFF",
        "ANSI_NULLS, QUOTED_IDENTIFIER ON",
    ] {
        let told = server.run(&format!("SET {taken}")).all();
        assert!(errors(&told).is_empty(), "{taken}\n{told}");
    }
    assert_eq!(
        errors(&server.run("SET ANSI_WARNINGS OFF; SET ARITHABORT OFF; SELECT 1 / 0").all())[0].0,
        "Msg 8134"
    );
    for refused in [
        "CONCAT_NULL_YIELDS_NULL OFF",
        "IMPLICIT_TRANSACTIONS ON",
        "NUMERIC_ROUNDABORT ON",
        "ANSI_DEFAULTS OFF",
    ] {
        let told = server.run(&format!("SET {refused}")).all();
        assert_eq!(errors(&told)[0].0, "Msg 50001", "{refused}\n{told}");
    }
}
