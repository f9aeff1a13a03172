//! Goal: INSERT, UPDATE and DELETE change the rows that SQL Server would. Method: executed and read back.

use crate::server::Session;
use pellucid_sql::values::types::SqlType;

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

/// The target may be called by its name where FROM gives it an alias, by an alias, or stand beside FROM.
#[test]
fn targets_and_from() {
    let mut session = session();
    let read = "SELECT a, b FROM t ORDER BY a";
    for (change, count, rows) in [
        ("UPDATE t SET b = u.c FROM t AS x JOIN u ON u.a = x.a", "2", "1 one|2 two|3 z"),
        ("UPDATE dbo.t SET b = 'd' FROM t AS x WHERE x.a = 3", "1", "1 one|2 two|3 d"),
        ("UPDATE t SET b = x.b FROM t JOIN t AS x ON x.a = t.a + 1", "2", "1 two|2 d|3 d"),
        ("UPDATE t SET b = u.c FROM u WHERE u.a = t.a", "2", "1 one|2 two|3 d"),
        ("UPDATE x SET b = 'on!' FROM u LEFT JOIN t AS x ON x.a = u.a - 1", "1", "1 on!|2 two|3 d"),
        ("DELETE t FROM t AS x JOIN u ON u.a = x.a WHERE u.c = 'two'", "1", "1 on!|3 d"),
        ("DELETE FROM t FROM u WHERE u.a = t.a", "1", "3 d"),
    ] {
        assert_eq!(session.run(change).unwrap(), [[count]], "{change}");
        let found: Vec<String> =
            session.run(read).unwrap().iter().map(|row| row.join(" ")).collect();
        assert_eq!(found.join("|"), rows, "{change}");
    }
    // The alias of another table is that table.
    assert_eq!(session.run("UPDATE t SET c = 'q' FROM u AS t WHERE t.a = 1").unwrap(), [["1"]]);
    assert_eq!(session.run("SELECT c FROM u ORDER BY a").unwrap(), [["q"], ["two"]]);
    session.run("INSERT INTO @v VALUES (1), (2)").unwrap();
    for (change, count) in [
        ("UPDATE @v SET a = w.a + 10 FROM @v AS w JOIN u ON u.a = w.a WHERE u.c = 'q'", "1"),
        ("UPDATE w SET a = w.a + 10 FROM @v AS w WHERE w.a < 10", "1"),
        ("DELETE @v FROM @v AS w JOIN u ON u.a + 10 = w.a", "2"),
    ] {
        assert_eq!(session.run(change).unwrap(), [[count]], "{change}");
    }
    session.fails(&[
        ("UPDATE t SET b = '' FROM t AS x, t AS y", 8154, "The table 't' is ambiguous."),
        ("UPDATE nope SET b = '' FROM t AS x", 208, "Invalid object name 'nope'."),
        (
            "UPDATE t SET b = t.b FROM t AS x",
            4104,
            "The multi-part identifier \"t.b\" could not be bound.",
        ),
        (
            "DELETE x FROM (SELECT a FROM t) AS x",
            50_001,
            "'change of a derived table' is not supported.",
        ),
    ]);
}

/// UPDATE and DELETE of a common table expression change the one table that it selects from; the name that it hides is
/// the table's within it.
#[test]
fn common_table_expressions_are_changed() {
    let mut session = session();
    let read = "SELECT a, b, n FROM t ORDER BY a";
    for (change, count, rows) in [
        (
            "WITH x AS (SELECT a, n, ROW_NUMBER() OVER (ORDER BY a DESC) AS r FROM t WHERE b > 'x') UPDATE x SET n = r * 10",
            "2",
            "1 x 1.50|2 y 20.00|3 z 10.00",
        ),
        (
            "WITH t AS (SELECT * FROM t WHERE a = 1) UPDATE t SET b = 'q'",
            "1",
            "1 q 1.50|2 y 20.00|3 z 10.00",
        ),
        (
            "WITH x (k, v) AS (SELECT a, b FROM dbo.t) UPDATE y SET v = 'r' FROM x AS y WHERE k = 2",
            "1",
            "1 q 1.50|2 r 20.00|3 z 10.00",
        ),
        (
            "WITH w AS (SELECT 3 AS i), x AS (SELECT * FROM t WHERE a = (SELECT i FROM w)) UPDATE x SET n += 1",
            "1",
            "1 q 1.50|2 r 20.00|3 z 11.00",
        ),
        (
            "WITH x AS (SELECT *, ROW_NUMBER() OVER (ORDER BY a) AS r FROM t) DELETE FROM x WHERE r > 2",
            "1",
            "1 q 1.50|2 r 20.00",
        ),
        ("WITH t AS (SELECT TOP 1 * FROM t ORDER BY a) DELETE FROM t", "1", "2 r 20.00"),
        ("WITH x AS (SELECT * FROM t WHERE a = 2) DELETE y FROM x AS y", "1", ""),
    ] {
        assert_eq!(session.run(change).unwrap(), [[count]], "{change}");
        let found = session.run(read).unwrap();
        let found: Vec<String> = found.iter().map(|row| row.join(" ")).collect();
        assert_eq!(found.join("|"), rows, "{change}");
    }
    let refused = "'change of such a common table expression' is not supported.";
    session.fails(&[
        ("WITH x AS (SELECT DISTINCT a FROM t) DELETE FROM x", 50_001, refused),
        ("WITH x AS (SELECT a FROM t GROUP BY a) UPDATE x SET a = 1", 50_001, refused),
        ("WITH x AS (SELECT t.a FROM t JOIN u ON t.a = u.a) DELETE FROM x", 50_001, refused),
        ("WITH x AS (SELECT a FROM t UNION SELECT a FROM u) DELETE FROM x", 50_001, refused),
        (
            "WITH x AS (SELECT a, 'c' AS c FROM t) UPDATE x SET c = 'd'",
            4406,
            "Update or insert of view or function 'x' failed because it contains a derived or constant field.",
        ),
        (
            "WITH x AS (SELECT a FROM t) UPDATE x SET b = 'd'",
            207,
            "Invalid column name 'b'.",
        ),
        (
            "WITH t AS (SELECT a FROM u) INSERT INTO t (a) VALUES (9)",
            50_001,
            "'change of a common table expression' is not supported.",
        ),
    ]);
    assert_eq!(
        session.run("INSERT INTO t VALUES (7, 's', 1), (8, 's', 1), (9, 's', 1)").unwrap(),
        [["3"]]
    );
    // Behind a schema it is the table that is meant.
    assert_eq!(session.run("WITH t AS (SELECT 1 AS a) DELETE FROM dbo.t").unwrap(), [["3"]]);
}

#[test]
fn recursion_has_the_limit_that_is_written() {
    let mut session = session();
    let with = "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 150)";
    for change in [
        "INSERT INTO u SELECT i, 'n' FROM n",
        "UPDATE t SET b = 'm' FROM t JOIN n ON n.i = t.a + 147",
        "DELETE t FROM t JOIN n ON n.i = t.a + 147",
    ] {
        let text = |most: u32| format!("{with} {change} OPTION (MAXRECURSION {most})");
        assert_eq!(session.run(&text(120)).unwrap_err().number, 530, "{change}");
        session.run(&text(150)).unwrap_or_else(|message| panic!("{change}\n{message:?}"));
    }
}

#[test]
fn identities() {
    let mut session = session();
    session.names.0.get_mut("t").unwrap().columns[0].writable = false;
    session.fails(&[
        ("UPDATE t SET a = a + 1", 8102, "Cannot update identity column 'a'."),
        (
            "INSERT INTO t (a, b) VALUES (9, 'x')",
            544,
            "Cannot insert explicit value for identity column in table 't' when IDENTITY_INSERT is set to OFF.",
        ),
    ]);
    assert_eq!(session.run("INSERT INTO t VALUES ('n', 4)").unwrap(), [["1"]]);
    assert_eq!(session.run("SELECT b FROM t WHERE a = 4").unwrap(), [["n"]]);
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
        // SQLite looks at each row, not at the table as the statement leaves it.
        (
            "UPDATE t SET a = a + 1",
            2627,
            "Violation of UNIQUE KEY constraint 't.a'. Cannot insert duplicate key in object 't'.",
        ),
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
