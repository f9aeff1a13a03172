//! Goal: OUTPUT gives values of the types of T-SQL, before and after a change. Method: tables whose values SQLite keeps in
//! other forms, changed and compared.

use pellucid_sql::message::Result;
use pellucid_sql::values::convert::Value;
use pellucid_sql::values::types::SqlType;
use pellucid_tsql::ast::StatementKind;
use pellucid_tsql::parse;

use crate::server::Session;

fn session() -> Session {
    let mut session = Session::new();
    session.table(
        "t",
        "CREATE TABLE t(a INTEGER, name TEXT COLLATE NOCASE, price, made, \"c1\" DEFAULT 7);
         INSERT INTO t VALUES (1, 'one', '1.50', 1412345109, 5), (2, 'Two', 2.5, '2014-10-03', NULL), (3, NULL, NULL, NULL, 1)",
        &[
            ("a", SqlType::Int),
            ("name", SqlType::nvarchar(10)),
            ("price", SqlType::numeric(9, 2)),
            ("made", SqlType::DateTime),
            ("c1", SqlType::Int),
        ],
    );
    session.table(
        "u",
        "CREATE TABLE u(a INTEGER, b); INSERT INTO u VALUES (1, 'x'), (1, 'y'), (2, 'z')",
        &[("a", SqlType::Int), ("b", SqlType::nvarchar(10))],
    );
    session.declare("v", SqlType::Int, Value::Integer(100));
    session
}

fn given(session: &mut Session, text: &str) -> Vec<String> {
    let rows = session.run(text).unwrap_or_else(|message| panic!("{text}\n{message:?}"));
    rows.iter().map(|row| row.join("|")).collect()
}

#[test]
fn values_have_their_types() {
    let mut session = session();
    for (text, expected) in [
        (
            "INSERT t (a, name, price) OUTPUT inserted.*, inserted.price * 2 VALUES (4, 'IV', 4), (@v, N'V', 5.25)",
            &["4|IV|4.00|NULL|7|8.00", "100|V|5.25|NULL|7|10.50"][..],
        ),
        (
            "UPDATE t SET price = price + 1, c1 = @v OUTPUT deleted.price, inserted.price, inserted.c1 - @v, deleted.made WHERE a < 3",
            &["1.50|2.50|0|2014-10-03 14:05:09.000", "2.50|3.50|0|2014-10-03 00:00:00.000"],
        ),
        (
            "DELETE TOP (1) t OUTPUT deleted.a, CASE WHEN deleted.name = 'two' THEN NULLIF(deleted.c1, 1) END FROM t WHERE name LIKE 'TW%'",
            &["2|100"],
        ),
        ("WITH w AS (SELECT 1 AS a) UPDATE t SET name = b OUTPUT inserted.a, w.a, u.a FROM t JOIN w ON w.a = t.a JOIN u ON u.a = w.a", &["1|1|1"]),
        ("DELETE u OUTPUT deleted.b, t.name FROM t RIGHT JOIN u ON u.a = t.a AND t.a = 9", &["x|NULL", "y|NULL", "z|NULL"]),
    ] {
        assert_eq!(given(&mut session, text), expected, "{text}");
    }
}

/// Without its clause it is not translated: nobody would see the rows.
#[test]
fn a_clause_is_not_left_out() {
    let session = session();
    let refused = |text: &str| -> Result<()> {
        let translator = session.translator();
        match parse(text).unwrap().remove(0).kind {
            StatementKind::Insert(insert) => translator.insert(&insert).map(drop),
            StatementKind::Update(update) => translator.update(&update).map(drop),
            StatementKind::Delete(delete) => translator.delete(&delete).map(drop),
            other => panic!("{other:?}"),
        }
    };
    for text in [
        "INSERT t (a) OUTPUT inserted.a VALUES (1)",
        "UPDATE t SET a = 1 OUTPUT inserted.a",
        "DELETE t OUTPUT deleted.a",
    ] {
        assert_eq!(refused(text).unwrap_err().number, 50_001, "{text}");
    }
}

/// Only what a clause may name is kept meanwhile.
#[test]
fn the_stage_has_what_is_named() {
    let session = session();
    let StatementKind::Delete(delete) =
        parse("DELETE t OUTPUT deleted.name").unwrap().remove(0).kind
    else {
        panic!()
    };
    let change = session.translator().delete_output(&delete, "temp.s").unwrap();
    assert_eq!(
        change.stage.sql,
        "DELETE FROM \"t\" WHERE 0; CREATE TABLE temp.s(k PRIMARY KEY, \"f0_1\")"
    );
    assert_eq!(
        change.fill.unwrap().sql,
        "INSERT OR IGNORE INTO temp.s SELECT t1.rowid, t1.\"name\" FROM \"t\" AS t1"
    );
    assert_eq!(
        change.rows.sql,
        "SELECT s.\"f0_1\" AS c1 FROM temp.s AS s WHERE s.k IS NOT NULL ORDER BY s.k"
    );
}
