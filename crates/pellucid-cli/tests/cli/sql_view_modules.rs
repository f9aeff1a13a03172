//! Goal: views of scripts do what they do on SQL Server, and what is kept of them is sealed.
//!
//! Method: made, changed, named in queries and dropped by `pellucid sql`; each message; then every file of the instance
//! is searched.

use crate::sql_server::{errors, Server};

const MADE: &str = "CREATE DATABASE app
GO
USE app
GO
CREATE TABLE t (id int IDENTITY PRIMARY KEY, name nvarchar(20), price decimal(9, 2))
INSERT INTO t (name, price) VALUES ('a', 1.5), ('B', 2.25), ('c', NULL)
GO
";

fn app() -> Server {
    let server = Server::with(&[]);
    server.run(MADE).succeeded();
    server
}

/// The numbers of the messages that a script of `app` meets.
#[track_caller]
fn refused(server: &Server, script: &str) -> Vec<String> {
    let told = server.run(&format!("USE app\nGO\n{script}")).all();
    let found = errors(&told);
    assert!(!found.is_empty(), "{script}\n{told}");
    found.into_iter().map(|(number, _)| number.trim_start_matches("Msg ").to_owned()).collect()
}

#[track_caller]
fn made(server: &Server, script: &str) {
    let told = server.run(&format!("USE app\nGO\n{script}")).all();
    assert!(errors(&told).is_empty(), "{script}\n{told}");
}

#[track_caller]
fn rows(server: &Server, query: &str) -> Vec<String> {
    let mut rows = server.rows(&format!("SET NOCOUNT ON; USE app; {query}"));
    rows.retain(|row| !row.starts_with("Changed database"));
    rows
}

#[test]
fn a_view_is_a_table_of_queries() {
    let server = app();
    made(
        &server,
        "CREATE VIEW dbo.named (number, called) WITH SCHEMABINDING, VIEW_METADATA AS
SELECT id, name FROM dbo.t WHERE price > 1
GO
CREATE VIEW [odd .. schema].[odd \"view] AS
WITH x AS (SELECT *, price * 2 AS twice FROM t) SELECT x.*, named.called FROM x LEFT JOIN named ON number = x.id
GO
CREATE VIEW best AS SELECT TOP 1 WITH TIES name FROM t ORDER BY price DESC",
    );
    assert_eq!(rows(&server, "SELECT * FROM named"), ["1|a", "2|B"]);
    assert_eq!(
        rows(
            &server,
            "SELECT v.id, twice, called FROM [odd .. schema].[odd \"view] AS v ORDER BY id"
        ),
        ["1|3.00|a", "2|4.50|B", "3|NULL|NULL"]
    );
    assert_eq!(rows(&server, "SELECT * FROM best"), ["B"]);
    // The names around are not seen within, those within not around.
    let around = "WITH t AS (SELECT 7 AS id, N'hidden' AS name, 9 AS price)
SELECT t.name, named.called FROM t CROSS JOIN dbo.named ORDER BY called";
    assert_eq!(rows(&server, around), ["hidden|a", "hidden|B"]);
    assert_eq!(refused(&server, "SELECT t.name FROM named"), ["4104"]);
    // It is as its tables are when it is named.
    made(&server, "INSERT INTO t (name, price) VALUES ('d', 9) ALTER TABLE t ADD more int");
    assert_eq!(rows(&server, "SELECT COUNT(*) FROM named"), ["3"]);
    assert_eq!(rows(&server, "SELECT MAX(more) FROM [odd .. schema].[odd \"view]"), ["NULL"]);
    // In every place where a query is.
    for (query, shown) in [
        ("SELECT name FROM t WHERE id IN (SELECT number FROM named) AND id < 2", "a"),
        ("SELECT x.called FROM t CROSS APPLY (SELECT called FROM named WHERE number = t.id) x WHERE t.id = 2", "B"),
        ("DECLARE @n int SELECT @n = MAX(number) FROM named PRINT @n", "4"),
        ("SELECT number INTO #copy FROM named SELECT SUM(number) FROM #copy", "7"),
        ("IF EXISTS (SELECT * FROM named WHERE called = 'a') PRINT 'there'", "there"),
        ("DELETE t FROM t JOIN named ON number = id WHERE called = 'd' SELECT COUNT(*) FROM t", "3"),
        ("DECLARE c CURSOR FOR SELECT called FROM named OPEN c FETCH c", "a"),
    ] {
        assert_eq!(rows(&server, query), [shown], "{query}");
    }
}

/// Its names are those of its database, its settings those of its making.
#[test]
fn it_keeps_where_and_how_it_was_made() {
    let server = app();
    server
        .run(
            "CREATE TABLE t (id int, name nvarchar(20))
INSERT INTO t VALUES (1, 'of master')
GO
CREATE VIEW of_master AS SELECT name FROM t
GO
USE app
SET QUOTED_IDENTIFIER OFF
SET ANSI_NULLS OFF
GO
CREATE VIEW settings AS SELECT \"text\" AS quoted, id FROM dbo.t WHERE price = NULL
GO
CREATE VIEW both AS SELECT m.name FROM master..of_master AS m JOIN t ON t.id = 1
GO",
        )
        .succeeded();
    let elsewhere = "SET QUOTED_IDENTIFIER ON; SELECT * FROM app.dbo.settings; SELECT 0 AS id";
    assert_eq!(server.rows(elsewhere), ["text|3"]);
    assert_eq!(server.rows("SELECT * FROM app..both"), ["of master"]);
    assert_eq!(server.rows("SELECT * FROM of_master"), ["of master"]);
    assert_eq!(
        rows(&server, "SELECT uses_ansi_nulls, uses_quoted_identifier FROM sys.sql_modules WHERE object_id = OBJECT_ID('settings')"),
        ["0|0"]
    );
    // A procedure names it where it is.
    server.run("USE app\nGO\nCREATE PROC asks AS SELECT id FROM settings").succeeded();
    assert_eq!(server.rows("EXEC app..asks"), ["3"]);
    // It goes with its database.
    server.run("DROP DATABASE app").succeeded();
    server.run("CREATE DATABASE app").succeeded();
    assert_eq!(refused(&server, "SELECT * FROM settings"), ["208"]);
    for database in ["tempdb", "msdb", "model"] {
        let script = format!("USE {database}\nGO\nCREATE VIEW v AS SELECT 1 AS a");
        assert_eq!(refused(&server, &script), ["50001"], "{database}");
    }
}

#[test]
fn create_alter_and_drop() {
    let server = app();
    made(&server, "CREATE VIEW v AS SELECT id FROM t\nGO\nCREATE PROC p AS PRINT 1");
    made(&server, "ALTER VIEW v AS SELECT name FROM t WHERE id = 1");
    assert_eq!(rows(&server, "SELECT * FROM v"), ["a"]);
    made(&server, "CREATE OR ALTER VIEW v AS SELECT name FROM t WHERE id = 2");
    assert_eq!(rows(&server, "SELECT * FROM v"), ["B"]);
    made(&server, "EXEC ('CREATE VIEW w AS SELECT * FROM v')");
    for (script, number) in [
        ("CREATE VIEW v AS SELECT 1 AS a", "2714"),
        ("CREATE VIEW DBO.V AS SELECT 1 AS a", "2714"),
        ("CREATE VIEW t AS SELECT 1 AS a", "2714"),
        ("CREATE VIEW p AS SELECT 1 AS a", "2714"),
        ("CREATE PROC v AS PRINT 1", "2714"),
        ("CREATE TABLE v (a int)", "2714"),
        ("CREATE TABLE p (a int)", "2714"),
        ("SELECT 1 AS a INTO v", "2714"),
        ("SELECT 1 AS a INTO app.dbo.p", "2714"),
        ("ALTER VIEW nothing AS SELECT 1 AS a", "208"),
        ("ALTER VIEW t AS SELECT 1 AS a", "2010"),
        ("CREATE OR ALTER VIEW p AS SELECT 1 AS a", "2010"),
        ("ALTER PROC v AS PRINT 1", "2010"),
        ("DROP VIEW t", "3705"),
        ("DROP VIEW IF EXISTS p", "3705"),
        ("DROP TABLE v", "3705"),
        ("DROP TABLE IF EXISTS p", "3705"),
        ("DROP PROC v", "3705"),
        ("DROP VIEW nothing", "3701"),
        ("DROP VIEW app.dbo.v", "166"),
        ("EXEC v", "2809"),
        ("PRINT 1 CREATE VIEW x AS SELECT 1 AS a", "111"),
        ("CREATE PROC x AS CREATE VIEW y AS SELECT 1 AS a", "111"),
        ("CREATE VIEW app.dbo.x AS SELECT 1 AS a", "166"),
        ("CREATE VIEW sys.x AS SELECT 1 AS a", "2760"),
        ("CREATE VIEW #x AS SELECT 1 AS a", "4103"),
        ("CREATE VIEW x AS SELECT 1", "4511"),
        ("CREATE VIEW x AS SELECT 1 AS a, 2 AS A", "4506"),
        ("CREATE VIEW x (a, a) AS SELECT 1, 2", "4506"),
        ("CREATE VIEW x (a) AS SELECT 1, 2", "8158"),
        ("CREATE VIEW x (a, b) AS SELECT 1", "8159"),
        ("CREATE VIEW x AS SELECT id FROM t ORDER BY id", "1033"),
        ("CREATE VIEW x AS SELECT id FROM t OPTION (MAXRECURSION 5)", "156"),
        ("CREATE VIEW x AS SELECT * FROM #t", "4508"),
        ("CREATE VIEW x AS SELECT @a AS a", "137"),
        ("CREATE VIEW x AS SELECT a FROM @a", "1087"),
        ("CREATE VIEW x AS SELECT a FROM nowhere", "208"),
        ("CREATE VIEW x AS SELECT nothing FROM t", "207"),
        ("CREATE VIEW x WITH SCHEMABINDING AS SELECT * FROM dbo.t", "1054"),
        ("CREATE VIEW x WITH SCHEMABINDING AS SELECT id FROM t", "4512"),
        ("CREATE VIEW x WITH ENCRYPTION AS SELECT 1 AS a", "50001"),
        ("CREATE VIEW x AS SELECT id FROM t WITH CHECK OPTION", "50001"),
        ("BEGIN TRAN EXEC ('CREATE VIEW x AS SELECT 1 AS a') ROLLBACK", "226"),
        ("BEGIN TRAN DROP VIEW v ROLLBACK", "226"),
        ("ALTER VIEW v AS SELECT name FROM w", "4429"),
        ("INSERT INTO v VALUES ('x')", "50001"),
        ("UPDATE v SET name = 'x'", "50001"),
        ("DELETE v", "50001"),
        ("DELETE x FROM v AS x", "50001"),
    ] {
        assert_eq!(refused(&server, script)[0], number, "{script}");
    }
    assert_eq!(rows(&server, "SELECT name FROM w"), ["B"]);
    assert_eq!(rows(&server, "SELECT COUNT(*) FROM t"), ["3"]);
    made(&server, "DROP VIEW IF EXISTS nothing, v");
    assert_eq!(refused(&server, "SELECT * FROM v"), ["208"]);
    assert_eq!(refused(&server, "SELECT * FROM w"), ["208", "4413"]);
    made(&server, "CREATE TABLE v (name int) INSERT INTO v VALUES (5)");
    assert_eq!(rows(&server, "SELECT * FROM w"), ["5"]);
    made(&server, "ALTER DATABASE app SET READ_ONLY");
    assert_eq!(refused(&server, "CREATE VIEW x AS SELECT 1 AS a"), ["3906"]);
}

/// One that cannot be used any more is in nobody else's way.
#[test]
fn the_catalog_has_it() {
    let server = app();
    made(
        &server,
        "-- what it is for
CREATE VIEW s.v AS SELECT id, name, price * 2 AS twice FROM t
GO
CREATE TABLE gone (a int)
GO
CREATE VIEW broken AS SELECT a FROM gone
GO
CREATE VIEW lists AS SELECT name FROM sys.columns
GO
DROP TABLE gone",
    );
    for (query, shown) in [
        ("SELECT name, type, type_desc FROM sys.objects WHERE object_id = OBJECT_ID('s.v')", "v|V|VIEW"),
        ("SELECT COUNT(*) FROM sys.views", "3"),
        ("SELECT COUNT(*) FROM sys.procedures", "0"),
        ("SELECT COUNT(*) FROM INFORMATION_SCHEMA.ROUTINES", "0"),
        ("SELECT xtype FROM sysobjects WHERE name = 'v'", "V"),
        ("SELECT SCHEMA_NAME(schema_id), s.name FROM sys.schemas AS s WHERE name = 's'", "NULL|s"),
        ("SELECT OBJECT_NAME(OBJECT_ID(N's.v', N'V'))", "v"),
        ("SELECT ISNULL(OBJECT_ID('s.v', 'U'), 0)", "0"),
        ("SELECT LEFT(OBJECT_DEFINITION(OBJECT_ID('s.v')), 17)", "-- what it is for"),
        ("SELECT LEFT(definition, 17) FROM sys.sql_modules WHERE object_id = OBJECT_ID('s.v')", "-- what it is for"),
        ("SELECT TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'v'", "VIEW"),
        (
            "SELECT TABLE_SCHEMA, LEFT(VIEW_DEFINITION, 7), CHECK_OPTION, IS_UPDATABLE FROM INFORMATION_SCHEMA.VIEWS WHERE \
             TABLE_NAME = 'v'",
            "s|-- what|NONE|NO",
        ),
        ("SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('s.v') AND column_id = 3", "twice"),
        ("SELECT DATA_TYPE FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'v' AND ORDINAL_POSITION = 2", "nvarchar"),
        ("SELECT COL_LENGTH('s.v', 'name')", "40"),
        ("SELECT COUNT(*) FROM lists WHERE name = 'twice'", "1"),
    ] {
        assert_eq!(rows(&server, query), [shown], "{query}");
    }
    assert!(server.run("USE app EXEC sp_helptext 's.v'").succeeded().contains("-- what it is for"));
    // What is wrong with another statement is not said to be a view's fault.
    assert_eq!(refused(&server, "SELECT nothing FROM sys.columns"), ["207"]);
    assert_eq!(refused(&server, "SELECT * FROM broken"), ["208", "4413"]);
    let told = server.run("USE app SELECT * FROM broken").all();
    assert!(
        told.contains("Could not use view or function 'broken' because of binding errors."),
        "{told}"
    );
}

/// A list of columns looks into views of more databases than are attached at once: those that are named stay.
#[test]
fn listing_columns_makes_no_room() {
    let server = app();
    let (mut script, mut parts) = (String::new(), Vec::new());
    for number in 1..=9 {
        let name = format!("other{number}");
        script += &format!("CREATE DATABASE {name}\nGO\nCREATE TABLE {name}.dbo.t (x int)\nGO\n");
        parts.push(format!("SELECT x FROM {name}..t"));
    }
    script += &format!("USE app\nGO\nCREATE VIEW nine AS {}", parts.join(" UNION ALL "));
    server.run(&script).succeeded();
    let query =
        "SELECT t.name FROM t JOIN sys.columns AS c ON c.column_id = t.id WHERE c.name = 'name'";
    assert_eq!(rows(&server, query), ["B"]);
}

/// Views within views end with a message, however they are made.
#[test]
fn nesting_has_an_end() {
    let server = app();
    let mut script = String::new();
    let chain = |prefix: &str, select: &dyn Fn(&str) -> String, count: usize| {
        let mut text = String::new();
        let mut before = "t".to_owned();
        for number in 1..=count {
            let name = format!("{prefix}{number}");
            text += &format!("CREATE VIEW {name} AS {}\nGO\n", select(&before));
            before = name;
        }
        text
    };
    script += &chain("line", &|before| format!("SELECT id FROM {before}"), 32);
    script += &chain("double", &|before| format!("SELECT x.id FROM {before} x, {before} y"), 8);
    let deep = |before: &str| {
        let ends = ")".repeat(90);
        format!("SELECT {}(SELECT MAX(id) FROM {before}){ends} AS id", "ABS(".repeat(90))
    };
    script += &chain("deep", &deep, 2);
    made(&server, &script);
    assert_eq!(rows(&server, "SELECT MAX(id) FROM line32"), ["3"]);
    assert_eq!(refused(&server, "CREATE VIEW line33 AS SELECT id FROM line32"), ["217"]);
    assert_eq!(
        refused(
            &server,
            "CREATE VIEW double9 AS SELECT x.id FROM double8 x, double8 y, double8 z, double8 w"
        ),
        ["8623"]
    );
    assert_eq!(rows(&server, "SELECT id FROM deep1"), ["3"]);
    assert_eq!(refused(&server, &format!("CREATE VIEW deep3 AS {}", deep("deep2"))), ["8623"]);
}

/// Nothing of a view lies in clear in any file, nor do rows that go through it.
#[test]
fn definitions_and_rows_are_sealed() {
    let server = Server::with(&[]);
    let (marker, row) = ("marker of a view 3f9d", "marker of a row 81ac");
    let script = format!(
        "CREATE TABLE notes (note nvarchar(40))
INSERT INTO notes VALUES ('{row}')
GO
CREATE VIEW hides AS SELECT note, '{marker}' AS marker FROM notes
GO
SELECT * INTO #copy FROM hides
SELECT note FROM hides ORDER BY marker"
    );
    let told = server.run(&script).succeeded();
    assert!(told.contains(row), "{told}");
    let mut waiting = vec![server.0.path("keys")];
    let mut files = 0;
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|one| one.unwrap().path()));
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).unwrap_or_default();
        for text in [marker, row] {
            let found = bytes.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!found, "{text}: {}", path.display());
        }
    }
    assert!(files > 3, "{files}");
}
