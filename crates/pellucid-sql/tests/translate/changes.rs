//! Goal: INSERT, UPDATE and DELETE change the rows that SQL Server would. Method: executed and read back.

use crate::server::Session;
use pellucid_sql::types::SqlType;

fn session() -> Session {
    let mut session = Session::new();
    session.table(
        "t",
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, n NUMERIC);
         INSERT INTO t VALUES (1, 'x', 1.5), (2, 'y', 2), (3, 'z', NULL);",
        &[("a", SqlType::Int), ("b", SqlType::varchar(3)), ("n", SqlType::numeric(10, 2))],
    );
    session.table(
        "u",
        "CREATE TABLE u(a INTEGER, c TEXT); INSERT INTO u VALUES (1, 'one'), (2, 'two');",
        &[("a", SqlType::Int), ("c", SqlType::varchar(10))],
    );
    session.table("@v", "CREATE TABLE v(a INTEGER);", &[("a", SqlType::Int)]);
    session
}

#[test]
fn changes() {
    let mut session = session();
    let read = "SELECT a, b, n FROM t ORDER BY a";
    for (change, count, rows) in [
        (
            "INSERT INTO t VALUES (4, 'abc', 7), (5, NULL, '2.005')",
            "2",
            "1 x 1.50|2 y 2.00|3 z NULL|4 abc 7.00|5 NULL 2.01",
        ),
        ("DELETE FROM t WHERE a > 3", "2", "1 x 1.50|2 y 2.00|3 z NULL"),
        (
            "INSERT t (b, a) SELECT c, a + 10 FROM u",
            "2",
            "1 x 1.50|2 y 2.00|3 z NULL|11 one NULL|12 two NULL",
        ),
        ("DELETE t FROM t INNER JOIN u ON u.a = t.a - 10", "2", "1 x 1.50|2 y 2.00|3 z NULL"),
        (
            "UPDATE t SET n = n * 2, b = b + '!' WHERE n IS NOT NULL",
            "2",
            "1 x! 3.00|2 y! 4.00|3 z NULL",
        ),
        (
            "UPDATE x SET b = u.c FROM t AS x JOIN u ON u.a = x.a",
            "2",
            "1 one 3.00|2 two 4.00|3 z NULL",
        ),
        ("UPDATE t SET n += 1, b = DEFAULT WHERE a = 1", "1", "1 NULL 4.00|2 two 4.00|3 z NULL"),
        (
            "WITH w AS (SELECT 3 AS k) DELETE t FROM t JOIN w ON w.k = t.a",
            "1",
            "1 NULL 4.00|2 two 4.00",
        ),
        ("DELETE TOP (1) FROM t", "1", "2 two 4.00"),
    ] {
        assert_eq!(session.run(change).unwrap(), [[count]], "{change}");
        let found: Vec<String> =
            session.run(read).unwrap().iter().map(|row| row.join(" ")).collect();
        assert_eq!(found.join("|"), rows, "{change}");
    }
    session.run("INSERT INTO @v SELECT a FROM t").unwrap();
    assert_eq!(session.run("SELECT a FROM @v").unwrap(), [["2"]]);
}

#[test]
fn what_does_not_fit() {
    session().fails(&[
        (
            "INSERT INTO t VALUES (1)",
            213,
            "Column name or number of supplied values does not match table definition.",
        ),
        ("INSERT INTO t (q) VALUES (1)", 207, "Invalid column name 'q'."),
        (
            "INSERT INTO t VALUES (7, 'four', 1)",
            2628,
            "String or binary data would be truncated in table 't', column 'b'. Truncated value: 'fou'.",
        ),
        (
            "UPDATE t SET b = b + 'xyz' WHERE a = 1",
            2628,
            "String or binary data would be truncated in table 't', column 'b'. Truncated value: 'xxy'.",
        ),
        ("UPDATE nope SET a = 1", 208, "Invalid object name 'nope'."),
        (
            "INSERT INTO t VALUES (7, 'a', 1234567890)",
            8115,
            "Arithmetic overflow error converting int to data type numeric.",
        ),
        (
            "INSERT INTO t VALUES (1, 'a', 1)",
            2627,
            "Violation of UNIQUE KEY constraint 't.a'. Cannot insert duplicate key in object 't'.",
        ),
        ("UPDATE t SET @x = 1", 50_001, "'UPDATE that assigns to a variable' is not supported."),
    ]);
}
