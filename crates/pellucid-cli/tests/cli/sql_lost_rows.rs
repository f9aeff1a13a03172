//! Goal: no statement changes rows that it does not name, or takes rows and keeps them nowhere.

use crate::sql_server::{errors, Server};

fn numbers(server: &Server, script: &str) -> Vec<String> {
    let shown = server.run(script).all();
    errors(&shown).into_iter().map(|(number, _)| number.replace("Msg ", "")).collect()
}

/// SQLite's number of a row goes by three names, each of which may be a column's.
#[test]
fn a_column_called_rowid_is_no_number_of_rows() {
    let server = Server::with(&[]);
    server.run("CREATE DATABASE app").succeeded();
    for (columns, table) in [
        ("rowid int NULL, x int", "t1"),
        ("RowID int NULL, _rowid_ int NULL, x int", "t2"),
        ("k varchar(5) NULL, rowid int NULL, x int", "#t3"),
    ] {
        let script = format!(
            "SET NOCOUNT ON
             CREATE TABLE {table} ({columns})
             INSERT INTO {table} (rowid, x) VALUES (1, 5), (1, 6), (2, 7), (NULL, 8)
             DELETE FROM {table} WHERE x = 5
             UPDATE {table} SET x = 80 WHERE x = 8
             ;WITH c AS (SELECT * FROM {table} WHERE x = 6) UPDATE c SET x = 60
             SELECT ISNULL(rowid, 0) AS r, x FROM {table} ORDER BY x"
        );
        let mut shown = server.rows(&format!("USE app {script}"));
        shown.retain(|line| line.contains('|'));
        assert_eq!(shown, ["2|7", "1|60", "0|80"], "{table}");
    }
    let variable = "SET NOCOUNT ON DECLARE @t TABLE (rowid int, x int) INSERT INTO @t VALUES (1, 5), (1, 6) DELETE @t WHERE x = 5 \
                    SELECT x FROM @t";
    assert_eq!(server.rows(variable), ["6"]);
    // With all three taken rows cannot be told apart.
    let all = "USE app CREATE TABLE t4 (rowid int, _rowid_ int, oid int, x int) INSERT INTO t4 VALUES (1, 1, 1, 1) DELETE FROM t4";
    assert_eq!(numbers(&server, all), ["50001"]);
    assert_eq!(server.rows("SELECT COUNT(*) FROM app.dbo.t4"), ["1"]);
}

/// A table without numbers of rows, however its text ends.
#[test]
fn a_strict_table_without_numbers_is_left_alone() {
    let server = Server::with(&[]);
    server.run("CREATE DATABASE app\nGO\nUSE app\nCREATE TABLE made(a int)").succeeded();
    let path = server.0.path("keys/data/app.db");
    let own = rusqlite::Connection::open(path).unwrap();
    own.execute_batch(
        "CREATE TABLE s(k TEXT PRIMARY KEY, rowid INTEGER) WITHOUT ROWID, STRICT; INSERT INTO s VALUES ('a', 1), ('b', 1)",
    )
    .unwrap();
    drop(own);
    assert_eq!(numbers(&server, "DELETE FROM app.dbo.s WHERE k = 'a'"), ["50001"]);
    assert_eq!(server.rows("SELECT COUNT(*) FROM app.dbo.s"), ["2"]);
}

/// The rows of the server's views are made for a statement: what is put there would be gone.
#[test]
fn nothing_is_put_into_a_view_of_the_server() {
    let server = Server::with(&[]);
    let made =
        "CREATE DATABASE app\nGO\nUSE app CREATE TABLE t(v sysname) INSERT INTO t VALUES ('x')";
    server.run(made).succeeded();
    for (script, number) in [
        ("INSERT INTO sys.databases(name) VALUES ('q')", "259"),
        ("INSERT INTO msdb.dbo.sysjobs(name) VALUES ('q')", "50001"),
        ("USE app DELETE t OUTPUT deleted.v INTO sys.databases(name)", "259"),
        ("USE app DELETE t OUTPUT deleted.v INTO msdb.dbo.backupset(name)", "50001"),
        ("INSERT INTO sys.databases(name) EXEC ('SELECT 1')", "259"),
    ] {
        assert_eq!(numbers(&server, script), [number], "{script}");
    }
    assert_eq!(server.rows("SELECT v FROM app.dbo.t"), ["x"]);
}

/// Two databases commit one behind the other.
#[test]
fn rows_do_not_go_from_one_database_into_another() {
    let server = Server::with(&[]);
    let made = "CREATE DATABASE a CREATE DATABASE b\nGO\nUSE b CREATE TABLE kept(v int)\nGO\nUSE a CREATE TABLE t(v int) \
                CREATE TABLE own(v int)";
    server.run(made).succeeded();
    server.run("INSERT INTO a.dbo.t VALUES (1), (2)").succeeded();
    assert_eq!(numbers(&server, "DELETE a.dbo.t OUTPUT deleted.v INTO b.dbo.kept"), ["50001"]);
    assert_eq!(
        numbers(&server, "USE b UPDATE x SET v = 3 OUTPUT deleted.v INTO kept FROM a.dbo.t AS x"),
        ["50001"]
    );
    assert_eq!(server.rows("SELECT v FROM a.dbo.t ORDER BY v"), ["1", "2"]);
    assert_eq!(numbers(&server, "DELETE a.dbo.t OUTPUT deleted.v INTO a.dbo.own"), [""; 0]);
    assert_eq!(server.rows("SELECT v FROM a.dbo.own ORDER BY v"), ["1", "2"]);
}

/// A procedure's temporary table is not its caller's of the same name.
#[test]
fn a_procedure_does_not_write_into_its_callers_table() {
    let server = Server::with(&[]);
    let script = "CREATE PROCEDURE dbo.inner_one AS BEGIN CREATE TABLE #q(z varchar(9)) INSERT INTO #q VALUES ('inner') END
GO
CREATE TABLE #q(z varchar(9))
EXEC dbo.inner_one
GO
SELECT COUNT(*) AS n FROM #q";
    let shown = server.run(script).all();
    assert!(shown.contains("'a second table #q within a procedure' is not supported."), "{shown}");
    assert!(shown.contains("\n0\n"), "{shown}");
}

/// A reader of a database with a rollback journal keeps each commit away. What failed so leaves no transaction behind, in
/// which the session would go on without anybody's knowledge.
#[test]
fn a_commit_that_fails_leaves_no_transaction() {
    let server = Server::with(&[]);
    let made = "CREATE DATABASE app\nGO\nUSE app\nCREATE TABLE t(a int, b int, c int)\nINSERT INTO t VALUES (1, 2, 3)\n\
                CREATE TABLE u(id int IDENTITY(5, 1), a int)\nINSERT INTO u(a) VALUES (1)\nGO\nCREATE PROCEDURE p AS SELECT 4";
    server.run(made).succeeded();
    let path = server.0.path("keys/data/app.db");
    let reader = rusqlite::Connection::open(path).unwrap();
    reader.execute_batch("PRAGMA journal_mode = DELETE; BEGIN; SELECT * FROM t").unwrap();
    for statement in [
        "CREATE TABLE n(a int)",
        "CREATE TABLE n(id int IDENTITY(7, 1), a int, INDEX i (a))",
        "ALTER TABLE t ADD d int NULL",
        "ALTER TABLE u ADD CONSTRAINT unique_a UNIQUE (a)",
        "ALTER TABLE t DROP COLUMN b, c",
        "TRUNCATE TABLE u",
        "DROP TABLE t",
        "CREATE INDEX i ON t(a)",
        "CREATE CLUSTERED COLUMNSTORE INDEX i ON t",
        "ALTER INDEX ALL ON t REBUILD",
        "SELECT 1 AS a INTO n",
        "INSERT INTO u(a) EXEC p",
        "INSERT INTO u(a) OUTPUT inserted.id VALUES (9)",
        "INSERT INTO u(a) VALUES (9)",
    ] {
        let script = format!(
            "SET LOCK_TIMEOUT 0\nUSE app\nGO\n{statement}\nGO\nBEGIN TRANSACTION; ROLLBACK; PRINT CONCAT('free ', @@TRANCOUNT)"
        );
        let told = server.run(&script).all();
        let numbers: Vec<_> = errors(&told).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, ["Msg 1222"], "{statement}\n{told}");
        assert!(told.ends_with("free 0\n"), "{statement}\n{told}");
    }
    reader.execute_batch("COMMIT").unwrap();
    let left = "SELECT (SELECT COUNT(*) FROM app.sys.tables), (SELECT a + b + c FROM app.dbo.t), (SELECT id FROM app.dbo.u)";
    assert_eq!(server.rows(left), ["2|6|5"]);
}

/// A column of numerics is one of SQLite's numbers, which hold 15 digits: no statement keeps another value than it was given.
#[test]
fn no_numeric_becomes_another_one_in_a_table() {
    let server = Server::with(&[]);
    server
        .run("CREATE DATABASE app\nGO\nUSE app\nCREATE TABLE t(n numeric(30, 4), m money)")
        .succeeded();
    for refused in [
        "INSERT app.dbo.t(n) VALUES (12345678901234567.1234)",
        "INSERT app.dbo.t(m) VALUES (922337203685477.5807)",
        "INSERT app.dbo.t(n) VALUES (1) UPDATE app.dbo.t SET n = n + 12345678901234567.1234",
        "SELECT CAST(1234567890123456.78 AS numeric(18, 2)) AS a INTO #x",
        "DECLARE @t TABLE (a money) INSERT @t VALUES (922337203685477.5807)",
        "CREATE TABLE #x (a decimal(20, 2)) INSERT #x EXEC('SELECT 1234567890123456.78')",
    ] {
        assert_eq!(numbers(&server, refused), ["50001"], "{refused}");
    }
    let kept = "SET NOCOUNT ON DELETE app.dbo.t
        INSERT app.dbo.t VALUES (9007199254740993, 92233720368547), (1234567890.1234, -99999999999.9999), (0.0001, 0.0001)
        SELECT n, m FROM app.dbo.t ORDER BY n";
    assert_eq!(
        server.rows(kept),
        [
            ".0001|.0001",
            "1234567890.1234|-99999999999.9999",
            "9007199254740993.0000|92233720368547.0000"
        ]
    );
    // The last digits of a quotient are not what was counted.
    let percent =
        "SET NOCOUNT ON SELECT 100.0 * CAST(1 AS bigint) / CAST(3 AS bigint) AS pct INTO #x
        SELECT CAST(pct AS numeric(18, 6)) FROM #x";
    assert_eq!(server.rows(percent), ["33.333333"]);
}

/// What looks for the value of a key that is there twice reads, whatever stands in the strings of the statement.
#[test]
fn a_refused_insert_writes_nothing() {
    let server = Server::with(&[]);
    let script = "CREATE DATABASE app
GO
USE app
CREATE TABLE gen(id int PRIMARY KEY, t varchar(200))
INSERT gen VALUES (1, 'a')
GO
WITH src AS (SELECT 'INSERT INTO dbo.x (\"id\", \"t\") VALUES (1)' AS t)
INSERT gen(id, t) SELECT CASE WHEN t LIKE 'INSERT%' THEN 1 ELSE 2 END, t FROM src";
    assert_eq!(numbers(&server, script), ["2627"]);
    assert_eq!(server.rows("SELECT id, t FROM app.dbo.gen"), ["1|a"]);
}

/// A number of a row is an identity's only where there is one: rows of children are put under it.
#[test]
fn a_table_without_an_identity_gives_none() {
    let server = Server::with(&[]);
    let script = "SET NOCOUNT ON
        CREATE TABLE #par(id int IDENTITY(100, 1) PRIMARY KEY, n varchar(9)); CREATE TABLE #lg(code int PRIMARY KEY, m varchar(9))
        CREATE TABLE #chd(pid int, m varchar(9))
        INSERT #par VALUES ('p'); INSERT #lg VALUES (55, 'log'); INSERT #lg OUTPUT inserted.code VALUES (56, 'x')
        INSERT #lg EXEC('SELECT 57, ''y''')
        INSERT #chd VALUES (SCOPE_IDENTITY(), 'c')
        SELECT CONCAT('under ', pid) FROM #chd
        INSERT #par OUTPUT inserted.n VALUES ('q')
        SELECT CONCAT('output ', SCOPE_IDENTITY())
        INSERT #par EXEC('SELECT ''r''')
        SELECT CONCAT('execute ', SCOPE_IDENTITY())";
    let told = server.run(script).all();
    for found in ["under 100", "output 101", "execute 102"] {
        assert!(told.contains(found), "{found}\n{told}");
    }
}
