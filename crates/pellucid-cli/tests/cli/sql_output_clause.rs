//! Goal: OUTPUT clauses give the rows of a change as SQL Server does, all or nothing.
//!
//! Method: changes by `pellucid sql`, with and without INTO, whose rows, counts and messages are compared; and what is
//! left behind one that fails.

use crate::sql_server::{errors, Server};

const MADE: &str = "CREATE DATABASE app
GO
USE app
GO
CREATE TABLE t (id int IDENTITY PRIMARY KEY, name nvarchar(20), price decimal(9, 2) DEFAULT 1.25, made datetime)
CREATE TABLE s.log (number int NOT NULL, name nvarchar(20))
INSERT INTO t (name, price, made) VALUES ('a', 1.5, '2020-01-02'), ('B', 2.25, NULL), ('c', NULL, NULL)
GO
";

fn app() -> Server {
    let server = Server::with(&[]);
    server.run(MADE).succeeded();
    server
}

/// What a script of `app` shows, without headings: lines that are not empty.
#[track_caller]
fn shown(server: &Server, script: &str) -> Vec<String> {
    let told = server.run(&format!("USE app\nGO\n{script}")).all();
    assert!(errors(&told).is_empty(), "{script}\n{told}");
    let lines = told.lines().filter(|line| !line.is_empty() && !line.starts_with("Changed"));
    lines.map(str::to_owned).collect()
}

#[track_caller]
fn rows(server: &Server, query: &str) -> Vec<String> {
    let mut rows = server.rows(&format!("SET NOCOUNT ON; USE app; {query}"));
    rows.retain(|row| !row.starts_with("Changed database"));
    rows
}

#[track_caller]
fn refused(server: &Server, script: &str) -> String {
    let told = server.run(&format!("USE app\nGO\n{script}")).all();
    let found = errors(&told);
    assert_eq!(found.len(), 1, "{script}\n{told}");
    found[0].0.trim_start_matches("Msg ").to_owned()
}

#[test]
fn rows_that_are_put_in() {
    let server = app();
    assert_eq!(
        rows(&server, "INSERT INTO t (name, price) OUTPUT inserted.* VALUES ('d', 7), ('e', NULL)"),
        ["4|d|7.00|NULL", "5|e|NULL|NULL"]
    );
    assert_eq!(
        shown(
            &server,
            "INSERT t (name) OUTPUT inserted.id AS number, inserted.price * 2 twice, UPPER(inserted.name), NULLIF(inserted.id, 7)
SELECT name + '!' FROM t WHERE id < 3 ORDER BY id
SELECT @@ROWCOUNT AS n, SCOPE_IDENTITY() AS i"
        ),
        [
            "number twice    ",
            "------ ----- - -",
            "6 2.50 A! 6",
            "7 2.50 B! NULL",
            "(2 rows affected)",
            "n i",
            "- -",
            "2 7",
            "(1 rows affected)",
        ]
    );
    assert_eq!(
        rows(&server, "INSERT t OUTPUT inserted.id, inserted.price DEFAULT VALUES"),
        ["8|1.25"]
    );
    // With a WITH, a variable, and into a table of its own kind.
    let script = "DECLARE @n int = 3, @o TABLE (a int, at int IDENTITY);
WITH x AS (SELECT 5 AS a UNION SELECT 6)
INSERT @o OUTPUT inserted.a * @n, inserted.at SELECT a FROM x";
    assert_eq!(rows(&server, script), ["15|1", "18|2"]);
}

#[test]
fn rows_before_and_after() {
    let server = app();
    assert_eq!(
        rows(
            &server,
            "UPDATE t SET price += 1, name = name + 'x' OUTPUT deleted.name, inserted.name, inserted.price - deleted.price \
             WHERE id < 3"
        ),
        ["a|ax|1.00", "B|Bx|1.00"]
    );
    assert_eq!(
        rows(
            &server,
            "UPDATE t SET made = '2021-02-03' OUTPUT deleted.*, inserted.made WHERE id = 3"
        ),
        ["3|c|NULL|NULL|2021-02-03 00:00:00.000"]
    );
    // What stands beside the table is what the row was found with.
    server.run("USE app INSERT s.log VALUES (1, 'one'), (2, 'two'), (1, 'one')").succeeded();
    assert_eq!(
        rows(
            &server,
            "UPDATE x SET name = y.name OUTPUT inserted.id, y.name, deleted.name FROM t AS x JOIN s.log AS y ON y.number = x.id"
        ),
        ["1|one|ax", "2|two|Bx"]
    );
    assert_eq!(
        rows(
            &server,
            "DELETE t OUTPUT deleted.id, y.name, CASE WHEN deleted.name = 'ONE' THEN 'same' ELSE 'other' END FROM s.log AS y LEFT \
             JOIN t ON y.number = t.id AND t.id = 1"
        ),
        ["1|one|same"]
    );
    assert_eq!(rows(&server, "DELETE TOP (1) FROM t OUTPUT deleted.id, deleted.name"), ["2|two"]);
    assert_eq!(rows(&server, "DELETE t OUTPUT deleted.* WHERE id > 99"), Vec::<String>::new());
    assert_eq!(rows(&server, "SELECT id, name FROM t"), ["3|c"]);
    // A table of SQLite's own, whose key is the number of its rows.
    let own = rusqlite::Connection::open(server.0.path("keys/data/app.db")).unwrap();
    own.execute_batch("CREATE TABLE k (id INTEGER PRIMARY KEY, a int)").unwrap();
    drop(own);
    let script = "INSERT k VALUES (1, 2), (2, 3)
UPDATE k SET a = a + 1 OUTPUT inserted.a
CREATE TABLE m (id int PRIMARY KEY, a int) INSERT m VALUES (1, 2), (2, 3)
UPDATE m SET id = id + 5 OUTPUT deleted.id, inserted.id";
    assert_eq!(rows(&server, script)[..2], ["3", "4"]);
    assert_eq!(
        rows(&server, "UPDATE m SET id = id + 10 OUTPUT deleted.id, inserted.id"),
        ["6|16", "7|17"]
    );
    assert_eq!(refused(&server, "UPDATE k SET id = id + 1 OUTPUT deleted.id"), "50001");
    assert_eq!(rows(&server, "SELECT id FROM k"), ["1", "2"]);
}

#[test]
fn rows_go_into_tables() {
    let server = app();
    let script = "DECLARE @o TABLE (name nvarchar(20), at int IDENTITY, id int)
DELETE FROM t OUTPUT deleted.id, deleted.name INTO @o (id, name) OUTPUT deleted.price WHERE id < 3
SELECT @@ROWCOUNT AS n, id, name, at FROM @o";
    let expected = [
        "price",
        "-----",
        "1.50",
        "2.25",
        "(2 rows affected)",
        "n id name at",
        "- -- ---- --",
        "2 1 a 1",
        "2 2 B 2",
        "(2 rows affected)",
    ];
    assert_eq!(shown(&server, script), expected);
    // Only counted; the identity is that of the table which is changed.
    let script = "INSERT t (name) OUTPUT inserted.id, inserted.name INTO s.log VALUES ('d'), ('e')
SELECT SCOPE_IDENTITY() AS i";
    assert_eq!(shown(&server, script), ["(2 rows affected)", "i", "-", "5", "(1 rows affected)"]);
    assert_eq!(rows(&server, "SELECT * FROM s.log"), ["4|d", "5|e"]);
    let script = "SELECT TOP 0 number INTO #n FROM s.log
UPDATE t SET name = 'f' OUTPUT inserted.id INTO #n
SELECT SUM(number) FROM #n";
    assert_eq!(rows(&server, script), ["12"]);
    let script = "DECLARE @o TABLE (id int, name nvarchar(20))
INSERT @o EXEC ('UPDATE t SET name = ''g'' OUTPUT inserted.id, deleted.name WHERE id > 3')
SELECT * FROM @o";
    assert_eq!(rows(&server, script), ["4|f", "5|f"]);
}

#[test]
fn what_fails_leaves_nothing() {
    let server = app();
    for (script, number) in [
        ("UPDATE t SET name = 'x' OUTPUT 1 / (inserted.id - 2)", "8134"),
        ("INSERT t (name) OUTPUT 1 / (inserted.id - 5) VALUES ('x'), ('y')", "8134"),
        ("DELETE t OUTPUT NULL, deleted.name INTO s.log", "515"),
        ("UPDATE t SET name = 'x' OUTPUT 1, REPLICATE(inserted.name, 21) INTO s.log", "2628"),
        ("BEGIN TRAN DELETE t OUTPUT 1 / (deleted.id - 2) COMMIT", "8134"),
        ("DELETE t OUTPUT deleted.id INTO s.log", "213"),
        ("DELETE t OUTPUT deleted.id INTO s.log (nothing)", "207"),
        ("DELETE t OUTPUT deleted.id INTO nowhere", "208"),
        ("DELETE t OUTPUT deleted.id INTO t (id)", "544"),
        ("INSERT t OUTPUT deleted.id DEFAULT VALUES", "4104"),
        ("DELETE t OUTPUT inserted.*", "107"),
        ("DELETE t OUTPUT inserted.id", "4104"),
        ("DELETE t OUTPUT t.id FROM t", "4104"),
        ("DELETE t OUTPUT id", "207"),
        ("DELETE t OUTPUT deleted.nothing", "207"),
        ("DELETE t OUTPUT (SELECT 1)", "10705"),
        ("DELETE t OUTPUT CASE WHEN EXISTS (SELECT 1 AS a) THEN 1 END", "10705"),
        ("DELETE t OUTPUT COUNT(deleted.id)", "158"),
        ("DELETE t OUTPUT ROW_NUMBER() OVER (ORDER BY deleted.id)", "4108"),
        ("DELETE t OUTPUT $action", "50001"),
        ("INSERT t (name) OUTPUT inserted.id EXEC ('SELECT 1')", "483"),
        ("SET ROWCOUNT 1 DELETE t OUTPUT deleted.id", "50001"),
        ("ALTER DATABASE app SET READ_ONLY\nGO\nDELETE t OUTPUT deleted.id", "3906"),
        ("DELETE t OUTPUT deleted.id", "3906"),
        ("SELECT * INTO #t FROM t DELETE #t OUTPUT deleted.id, deleted.name INTO s.log", "3906"),
    ] {
        assert_eq!(refused(&server, script), number, "{script}");
    }
    assert_eq!(rows(&server, "SELECT id, name FROM t"), ["1|a", "2|B", "3|c"]);
    assert_eq!(rows(&server, "SELECT COUNT(*) FROM s.log"), ["0"]);
}

/// In a transaction it is a part of it.
#[test]
fn it_is_rolled_back() {
    let server = app();
    let script = "BEGIN TRAN
DELETE t OUTPUT deleted.id, deleted.name INTO s.log
UPDATE s.log SET name = 'x' OUTPUT inserted.name WHERE number = 1
ROLLBACK
SELECT (SELECT COUNT(*) FROM t), (SELECT COUNT(*) FROM s.log)";
    assert_eq!(rows(&server, script)[0], "x");
    assert_eq!(rows(&server, "SELECT COUNT(*) FROM t"), ["3"]);
    // Nothing of it is among the tables of tempdb.
    let script = "UPDATE t SET name = 'x' OUTPUT inserted.name INTO s.log (name) WHERE id > 9
SELECT COUNT(*) FROM tempdb.sys.tables";
    assert_eq!(rows(&server, script), ["0"]);
}

/// What it reads is locked before: sessions beside one another wait, and none loses what another one has written.
#[test]
fn sessions_wait_for_one_another() {
    let server = app();
    let script = "USE app
GO
SET NOCOUNT ON
DECLARE @i int = 0, @o TABLE (price decimal(9, 2))
WHILE @i < 100
BEGIN
  UPDATE t SET price += 1 OUTPUT deleted.price INTO @o WHERE id = 1
  SET @i += 1
END
PRINT CONCAT('seen ', (SELECT COUNT(DISTINCT price) FROM @o))";
    std::thread::scope(|scope| {
        let run = || server.run(script).all();
        let all: Vec<_> = (0..3).map(|_| scope.spawn(run)).collect();
        for told in all.into_iter().map(|one| one.join().unwrap()) {
            assert!(told.contains("seen 100") && errors(&told).is_empty(), "{told}");
        }
    });
    assert_eq!(rows(&server, "SELECT price FROM t WHERE id = 1"), ["301.50"]);
}
