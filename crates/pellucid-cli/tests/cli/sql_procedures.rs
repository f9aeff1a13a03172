//! Goal: procedures of scripts do what they do on SQL Server, and what is kept of them is sealed.
//!
//! Method: made, changed, called and dropped by `pellucid sql`; each message; then every file of the instance is searched.

use std::io::Write;
use std::process::Stdio;

use crate::sql_server::{errors, Server};
use crate::support::PELLUCID;

fn printed(server: &Server, script: &str) -> Vec<String> {
    let told = server.run(script).all();
    assert!(!told.contains("Msg "), "{script}\n{told}");
    told.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn refused(server: &Server, script: &str) -> Vec<String> {
    let told = server.run(script).all();
    let found = errors(&told);
    assert!(!found.is_empty(), "{script}\n{told}");
    found.into_iter().map(|(number, _)| number.trim_start_matches("Msg ").to_owned()).collect()
}

#[test]
fn parameters_defaults_output_and_return() {
    let server = Server::with(&[]);
    let made = "CREATE PROCEDURE dbo.area
  @width int,
  @height decimal(5, 2) = 1.50,
  @name nvarchar(20) = N'none',
  @out decimal(9, 2) = NULL OUTPUT
AS
SET NOCOUNT ON;
SET @out = @width * @height;
PRINT CONCAT(@name, ' ', @out);
IF @width < 0 RETURN -1;
RETURN @width + 1
GO
";
    let script = format!(
        "{made}DECLARE @o decimal(9, 2), @rc int;
EXEC @rc = area 2, 3, 'x', @o OUTPUT;
PRINT CONCAT('o=', @o, ' rc=', @rc);
EXECUTE @rc = dbo.area @height = 2.25, @width = 4, @out = @o OUT;
PRINT CONCAT('o=', @o, ' rc=', @rc);
EXEC @rc = master.dbo.area -1, DEFAULT, @name = 'y';
PRINT CONCAT('o=', @o, ' rc=', @rc);
DECLARE @p sysname = '[dbo].[area]';
EXEC @p @width = 1;"
    );
    assert_eq!(
        printed(&server, &script),
        [
            "x 6.00",
            "o=6.00 rc=3",
            "none 9.00",
            "o=9.00 rc=5",
            "y -1.50",
            "o=9.00 rc=-1",
            "none 1.50"
        ]
    );
    for (call, number) in [
        ("EXEC area", "201"),
        ("EXEC area 1, 2, 3, 4, 5", "8144"),
        ("EXEC area @none = 1", "8145"),
        ("DECLARE @o int EXEC area @width = @o OUTPUT", "8162"),
        ("EXEC nowhere", "2812"),
        ("EXEC area 'x'", "8114"),
    ] {
        assert_eq!(refused(&server, call), [number], "{call}");
    }
}

/// In a session of its own: it is kept. Its settings are those of its making.
#[test]
fn it_is_kept_with_its_settings() {
    let server = Server::with(&[]);
    server
        .run(
            "CREATE DATABASE app
GO
USE app
GO
SET QUOTED_IDENTIFIER OFF
SET ANSI_NULLS OFF
GO
-- what it is for
CREATE PROC show @v int = NULL AS
IF @v = NULL PRINT \"it's null\"
PRINT DB_NAME()
PRINT OBJECT_NAME(@@PROCID)
PRINT @@NESTLEVEL
GO",
        )
        .succeeded();
    let script = "USE app; SET QUOTED_IDENTIFIER ON; SET ANSI_NULLS ON
GO
EXEC show
GO
USE master
GO
EXEC app..show 1
PRINT DB_NAME()";
    let shown: Vec<String> = printed(&server, script)
        .into_iter()
        .filter(|line| !line.starts_with("Changed database"))
        .collect();
    assert_eq!(shown[..4], ["it's null", "app", "show", "1"]);
    assert_eq!(shown[4..].first().map(String::as_str), Some("app"));
    assert_eq!(shown.last().map(String::as_str), Some("master"));
    let of_app = |query: &str| server.rows(&format!("SET NOCOUNT ON; USE app; {query}"));
    let last = |query: &str| of_app(query).pop().unwrap();
    assert_eq!(last("SELECT name, type FROM sys.objects WHERE type = 'P'"), "show|P");
    assert_eq!(last("SELECT uses_ansi_nulls, uses_quoted_identifier FROM sys.sql_modules"), "0|0");
    assert_eq!(
        last("SELECT CASE WHEN OBJECT_ID('dbo.show', 'P') = OBJECT_ID('show') THEN 'same' END"),
        "same"
    );
    assert!(server
        .run("USE app EXEC sp_helptext 'dbo.show'")
        .succeeded()
        .contains("-- what it is for"));
    // It goes with its database.
    server.run("DROP DATABASE app").succeeded();
    server.run("CREATE DATABASE app").succeeded();
    assert_eq!(refused(&server, "EXEC app..show"), ["2812"]);
}

#[test]
fn create_alter_and_drop() {
    let server = Server::with(&[]);
    server.run("CREATE PROCEDURE p AS PRINT 1").succeeded();
    assert_eq!(refused(&server, "CREATE PROCEDURE p AS PRINT 2"), ["2714"]);
    assert_eq!(refused(&server, "ALTER PROCEDURE q AS PRINT 2"), ["208"]);
    assert_eq!(printed(&server, "ALTER PROC p AS PRINT 2\nGO\nEXEC p"), ["2"]);
    assert_eq!(printed(&server, "CREATE OR ALTER PROCEDURE p AS PRINT 3\nGO\nEXEC p"), ["3"]);
    // Scripts make a stub first, and change it then.
    let stub = "IF NOT EXISTS (SELECT * FROM sys.objects WHERE object_id = OBJECT_ID(N'[dbo].[stub]') AND type in (N'P', N'PC'))
BEGIN
EXEC dbo.sp_executesql @statement = N'CREATE PROCEDURE [dbo].[stub] AS'
END
GO
ALTER PROCEDURE [dbo].[stub] AS BEGIN SET NOCOUNT ON PRINT 'whole' END
GO
EXEC stub";
    assert_eq!(printed(&server, stub), ["whole"]);
    assert_eq!(refused(&server, "DROP PROCEDURE nowhere"), ["3701"]);
    server.run("DROP PROCEDURE IF EXISTS nowhere, p").succeeded();
    assert_eq!(refused(&server, "EXEC p"), ["2812"]);
    for (script, number) in [
        ("PRINT 1 CREATE PROCEDURE p AS PRINT 1", "111"),
        ("CREATE PROCEDURE app.dbo.p AS PRINT 1", "166"),
        ("CREATE PROCEDURE p @a int, @A int AS PRINT 1", "134"),
        ("CREATE PROCEDURE p AS GOTO nowhere", "133"),
        ("CREATE PROCEDURE p AS SELECT FROM", "156"),
        ("CREATE PROCEDURE ##p AS PRINT 1", "50001"),
        ("CREATE PROCEDURE p WITH ENCRYPTION AS PRINT 1", "50001"),
        ("CREATE PROCEDURE p WITH EXECUTE AS 'dbo' AS PRINT 1", "50001"),
        ("BEGIN TRAN EXEC ('CREATE PROCEDURE p AS PRINT 1') ROLLBACK", "226"),
        ("RETURN 1", "178"),
    ] {
        assert_eq!(refused(&server, script)[0], number, "{script}");
    }
}

/// Errors say the procedure and its own line; a transaction that it leaves open is told; what it makes for itself ends with it.
#[test]
fn what_happens_within() {
    let server = Server::with(&[]);
    let script = "CREATE PROC inner_p @n int AS
BEGIN
  IF @n = 0 SELECT 1 / @n;
  IF @n = 1 THROW 50001, 'thrown', 1;
  RETURN 7;
END
GO
CREATE PROC outer_p @n int AS
DECLARE @rc int = 99;
CREATE TABLE #own (a int);
EXEC @rc = inner_p @n;
PRINT CONCAT('rc=', @rc);
GO
EXEC outer_p 2
EXEC outer_p 0
IF OBJECT_ID('tempdb..#own') IS NULL PRINT 'gone'
BEGIN TRY
  EXEC outer_p 1
END TRY
BEGIN CATCH
  PRINT CONCAT(ERROR_NUMBER(), ' ', ERROR_PROCEDURE(), ' ', ERROR_LINE(), ' ', @@NESTLEVEL)
END CATCH";
    let told = server.run(script).all();
    for line in [
        "rc=7",
        "Msg 8134, Level 16, State 1, Server",
        "Procedure inner_p, Line 3",
        "gone",
        "50001 inner_p 4 0",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    let script = "CREATE PROC leaves AS BEGIN TRAN\nGO\nEXEC leaves\nROLLBACK";
    assert_eq!(refused(&server, script), ["266"]);
    let script = "CREATE PROC again @n int AS SET @n += 1; EXEC again @n\nGO\nEXEC again 0";
    assert_eq!(refused(&server, script), ["217"]);
}

/// A procedure of `master` whose name begins with `sp_` works in the database that it is called in.
#[test]
fn sp_of_master_is_for_all() {
    let server = Server::with(&[]);
    let script = "CREATE DATABASE app
GO
CREATE PROC sp_here AS PRINT DB_NAME()
GO
CREATE PROC there AS PRINT DB_NAME()
GO
USE app
GO
EXEC sp_here";
    assert_eq!(printed(&server, script).last().unwrap(), "app");
    assert_eq!(refused(&server, "USE app EXEC there"), ["2812"]);
}

/// Nothing of a procedure lies in clear in any file.
#[test]
fn definitions_are_sealed() {
    let server = Server::with(&[]);
    let marker = "marker of a procedure 7c1e";
    server
        .run(&format!("CREATE PROC hides AS OPEN MASTER KEY DECRYPTION BY PASSWORD = '{marker}'"))
        .succeeded();
    assert!(server.run("EXEC sp_helptext 'hides'").succeeded().contains(marker));
    let mut waiting = vec![server.0.path("keys")];
    let mut files = 0;
    while let Some(path) = waiting.pop() {
        match path.is_dir() {
            true => {
                waiting.extend(std::fs::read_dir(&path).unwrap().map(|one| one.unwrap().path()))
            }
            false => {
                files += 1;
                let bytes = std::fs::read(&path).unwrap_or_default();
                let found = bytes.windows(marker.len()).any(|part| part == marker.as_bytes());
                assert!(!found, "{}", path.display());
            }
        }
    }
    assert!(files > 3, "{files}");
}

/// `master` has tables, where tools keep their logs: sealed, in a file of the instance that is no database of anybody's.
#[test]
fn master_has_tables_of_tools() {
    let server = Server::with(&[]);
    let made = "CREATE TABLE dbo.CommandLog (ID int IDENTITY NOT NULL PRIMARY KEY, Command nvarchar(max) NOT NULL)
INSERT INTO CommandLog (Command) VALUES ('marker of a log 5a2b')
GO
USE tempdb
GO
SET NOCOUNT ON
INSERT INTO master.dbo.CommandLog (Command) VALUES ('second')";
    server.run(made).succeeded();
    assert_eq!(
        server.rows("SET NOCOUNT ON; SELECT ID, Command FROM CommandLog WHERE ID = 2"),
        ["2|second"]
    );
    assert_eq!(
        server.rows(
            "SELECT name, type FROM sys.objects WHERE object_id = OBJECT_ID('dbo.CommandLog')"
        ),
        ["CommandLog|U"]
    );
    let bytes = std::fs::read(server.0.path("keys/master.db")).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"marker"));
    // A plain one in its place is no `master`.
    let (path, aside) = (server.0.path("keys/master.db"), server.0.path("aside.db"));
    std::fs::rename(&path, &aside).unwrap();
    for plain in ["CREATE TABLE CommandLog (ID, Command)", ""] {
        server.0.sqlite3(path.to_str().unwrap(), &format!("{plain}; VACUUM")).succeeded();
        let told = server
            .run("SELECT * FROM CommandLog; INSERT INTO CommandLog (Command) VALUES ('x')")
            .all();
        assert!(told.contains("Msg "), "{told}");
        std::fs::remove_file(&path).unwrap();
    }
    std::fs::write(&path, b"").unwrap();
    let told = server.run("CREATE TABLE clear_table (marker int)").all();
    assert!(told.contains("Msg ") && std::fs::read(&path).unwrap().is_empty(), "{told}");
    std::fs::rename(&aside, &path).unwrap();
    // It is none of the databases, and nothing is asked of it.
    assert_eq!(server.rows("SELECT COUNT(*) FROM sys.databases WHERE database_id > 4"), ["0"]);
    server.run("DROP TABLE CommandLog").succeeded();
    assert_eq!(refused(&server, "SELECT * FROM CommandLog"), ["208"]);
    // What is in no table of anybody's is not made by a question.
    let other = Server::with(&[]);
    assert_eq!(refused(&other, "SELECT * FROM nowhere"), ["208"]);
    assert!(!other.0.path("keys/master.db").exists());
}

#[test]
fn a_definition_is_had_by_its_number() {
    let server = Server::with(&[]);
    let script = "CREATE PROC who AS -- Version: 7
PRINT SUBSTRING(OBJECT_DEFINITION(@@PROCID), CHARINDEX('Version: ', OBJECT_DEFINITION(@@PROCID)) + LEN('Version: ') + 1, 1)
GO
EXEC who";
    assert_eq!(printed(&server, script), ["7"]);
    assert_eq!(server.rows("SELECT ISNULL(OBJECT_DEFINITION(1), 'none')"), ["none"]);
}

/// Values are converted by their types, in and out, whatever their form.
#[test]
fn values_keep_their_meaning_between_types() {
    let server = Server::with(&[]);
    server
        .run("CREATE PROC takes @d decimal(5, 2) = NULL OUTPUT, @t varchar(30) = NULL OUTPUT AS PRINT CONCAT(@d, '|', @t)")
        .succeeded();
    for (script, shown) in [
        ("DECLARE @m decimal(10, 4) = 123.4567 EXEC takes @m", &["123.46|"][..]),
        ("DECLARE @m money = 12.3456 EXEC takes @m", &["12.35|"]),
        ("DECLARE @m money = 12.34 EXEC takes @t = @m", &["|12.34"]),
        ("DECLARE @m datetime = '2020-01-02T03:04:05' EXEC takes @t = @m", &["|Jan  2 2020  3:04AM"]),
        ("DECLARE @m decimal(10, 4) = 12.34 EXEC takes @m OUTPUT PRINT @m", &["12.34|", "12.3400"]),
        ("DECLARE @m float = 1.5 EXEC takes @m OUTPUT PRINT @m", &["1.50|", "1.5"]),
        ("DECLARE @m varchar(9) = '1.5' EXEC takes @m OUTPUT PRINT @m", &["1.50|", "1.50"]),
        (
            "DECLARE @m decimal(10, 4) = 123.4567 EXEC sp_executesql N'PRINT @x SET @x = 1.25', N'@x decimal(5, 2) OUTPUT', @m OUTPUT \
             PRINT @m",
            &["123.46", "1.2500"],
        ),
    ] {
        assert_eq!(printed(&server, script), shown, "{script}");
    }
    let over = "DECLARE @m decimal(12, 4) = 12345678.1234 EXEC takes @m";
    assert!(!refused(&server, over).is_empty());
}

/// 0 is success: what fails gives nothing back, and what ends with an error says so.
#[test]
fn a_failed_call_is_no_success() {
    let server = Server::with(&[]);
    server.run("CREATE PROC fails @o int = 1 OUTPUT AS SET @o = 42; SELECT 1 / 0").succeeded();
    server.run("CREATE PROC throws @o int OUTPUT AS SET @o = 42; THROW 50001, 'x', 1").succeeded();
    for (script, shown) in [
        ("DECLARE @r int = -99 EXEC @r = fails 1, 2 PRINT @r", "-99"),
        ("DECLARE @r int = -99 EXEC @r = throws PRINT @r", "-99"),
        ("DECLARE @r int = -99 EXEC @r = fails PRINT @r", "-6"),
        (
            "DECLARE @r int = -99, @o int = 7 BEGIN TRY EXEC @r = throws @o OUTPUT END TRY BEGIN CATCH PRINT CONCAT(@r, ' ', @o) \
             END CATCH",
            "-99 7",
        ),
    ] {
        let told = server.run(script).all();
        assert!(told.lines().any(|line| line == shown), "{script}\n{told}");
    }
    let again = "CREATE PROC deep @n int AS DECLARE @r int SET @n += 1 EXEC @r = deep @n RETURN 1\nGO\nDECLARE @r int EXEC @r = deep 0 \
                 PRINT 'goes on'";
    let told = server.run(again).all();
    assert!(told.contains("Msg 217,") && !told.contains("goes on"), "{told}");
}

#[test]
fn a_name_of_master_is_of_one_thing() {
    let server = Server::with(&[]);
    server.run("CREATE TABLE taken (a int)").succeeded();
    assert_eq!(refused(&server, "CREATE PROC taken AS PRINT 1"), ["2714"]);
    // Damage of its tables is in nobody else's way, and told to whoever names them.
    server.run("CREATE DATABASE app").succeeded();
    std::fs::write(server.0.path("keys/master.db"), [7; 65536]).unwrap();
    let elsewhere = "USE app SELECT ISNULL(OBJECT_ID('nothing'), 0)";
    let told = server.run(elsewhere).all();
    assert!(errors(&told).is_empty(), "{told}");
    assert!(!errors(&server.run("SELECT * FROM taken").all()).is_empty());
}

/// A history that is begun anew without its key leaves no `master` behind that nobody opens.
#[test]
fn a_lost_key_of_the_history_takes_master_along() {
    let server = Server::with(&[]);
    server.run("CREATE TABLE old (a int)").succeeded();
    server.run("CREATE DATABASE app\nGO\nBACKUP DATABASE app TO DISK = 'app.bak'").succeeded();
    std::fs::remove_file(server.0.path("keys/keyring/history")).unwrap();
    server.0.pellucid(&["--yes", "history", "rebuild", "keys/backup/app.bak"]).succeeded();
    let told = server.run("CREATE TABLE new (a int) SELECT OBJECT_ID('old')").all();
    assert!(errors(&told).is_empty(), "{told}");
    let names = std::fs::read_dir(server.0.path("keys")).unwrap();
    let kept = names.filter(|one| {
        one.as_ref().unwrap().file_name().to_string_lossy().starts_with("master.db.")
    });
    assert_eq!(kept.count(), 1);
}

/// Temporary tables, table variables and sorts of more rows than SQLite's cache has: no file has them in clear.
#[test]
fn rows_of_temporary_tables_are_in_no_file_in_clear() {
    let server = Server::with(&[]);
    let mut command = server.0.command(PELLUCID);
    command.args(["sql", "-W"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let script = "SET NOCOUNT ON
DECLARE @t TABLE (s varchar(2000));
WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
SELECT CONCAT(i, REPLICATE('marker-4e9a', 100)) AS s INTO #t FROM n OPTION (MAXRECURSION 0);
INSERT @t SELECT s FROM #t ORDER BY s DESC;
PRINT 'made'
WAITFOR DELAY '00:01:00'
GO
";
    let input = child.stdin.as_mut().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    input.flush().unwrap();
    let open_files = format!("/proc/{}/fd", child.id());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut looked = 0;
    // While it is filled and behind that: the wait begins when both tables are.
    let ready = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/schedstat")).unwrap_or_default();
        stat.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0)
    };
    let mut before = 0;
    loop {
        for entry in std::fs::read_dir(&open_files).unwrap().flatten() {
            if std::fs::metadata(entry.path()).is_ok_and(|found| found.is_file()) {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                let found = bytes.windows(11).any(|part| part == b"marker-4e9a");
                assert!(!found, "{:?}", std::fs::read_link(entry.path()));
                looked += 1;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(300));
        let now = ready(child.id());
        if (now > 300_000_000 && now - before < 20_000_000) || std::time::Instant::now() > until {
            break;
        }
        before = now;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(looked > 0);
}

/// They are this session's alone, and nothing of them is kept.
#[test]
fn temporary_procedures_end_with_their_session() {
    let server = Server::with(&[]);
    let script = "CREATE PROCEDURE #tell @a int = 1 AS
PRINT CONCAT(DB_NAME(), ' ', @a, ' ', OBJECT_NAME(@@PROCID, DB_ID('tempdb')))
RETURN @a
GO
CREATE DATABASE app
GO
USE app
GO
DECLARE @rc int
EXEC @rc = #tell 3 WITH RECOMPILE
PRINT @rc
EXEC tempdb..#TELL WITH RECOMPILE
IF OBJECT_ID('tempdb..#tell') IS NOT NULL PRINT 'there'
GO
CREATE OR ALTER PROC #tell AS PRINT 'changed'
GO
EXEC #tell
IF OBJECT_ID('tempdb..#tell', 'P') IS NOT NULL DROP PROCEDURE #tell
IF OBJECT_ID('tempdb..#tell') IS NULL PRINT 'gone'
DROP PROC IF EXISTS #tell";
    let shown: Vec<String> = printed(&server, script)
        .into_iter()
        .filter(|line| !line.starts_with("Changed database"))
        .collect();
    assert_eq!(shown[0].split(' ').take(2).collect::<Vec<_>>(), ["app", "3"], "{shown:?}");
    assert_eq!(shown[1], "3");
    assert!(shown[2].starts_with("app 1"), "{shown:?}");
    assert_eq!(shown[3..], ["there", "changed", "gone"]);
    server.run("CREATE PROC #left AS PRINT 'left'").succeeded();
    assert_eq!(refused(&server, "EXEC #left"), ["2812"]);
    assert_eq!(refused(&server, "DROP PROC #left"), ["3701"]);
    assert_eq!(refused(&server, "CREATE PROC ##p AS PRINT 'p'"), ["50001"]);
    assert_eq!(refused(&server, "ALTER PROC #p AS PRINT 'p'"), ["208"]);
    let twice = "CREATE PROC #p AS PRINT 'p'\nGO\nCREATE PROC #p AS PRINT 'p'";
    assert_eq!(refused(&server, twice), ["2714"]);
    assert_eq!(server.rows("SET NOCOUNT ON SELECT COUNT(*) FROM sys.procedures"), ["0"]);
}

/// As it would be made anew: whoever scripts it out runs it elsewhere.
#[test]
fn what_is_kept_of_a_changed_procedure_creates_it() {
    let server = Server::with(&[]);
    let script = "CREATE DATABASE app
GO
USE app
GO
CREATE PROCEDURE p AS SELECT 1
GO
-- first
alter  PROCEDURE p AS SELECT 'ALTER'
GO
CREATE OR ALTER VIEW v AS SELECT 1 AS a
GO
ALTER VIEW v AS SELECT 2 AS a
GO
create or  alter FUNCTION f() RETURNS int AS BEGIN RETURN 1 END
GO
CREATE /* odd */ OR ALTER PROCEDURE q AS SELECT 1
GO
SELECT definition FROM sys.sql_modules ORDER BY OBJECT_NAME(object_id)
GO
EXEC p; SELECT a FROM v; SELECT dbo.f();";
    let told = server.run(script).all();
    for kept in [
        "-- first\nCREATE  PROCEDURE p AS SELECT 'ALTER'",
        "CREATE VIEW v AS SELECT 2 AS a",
        "create    FUNCTION f() RETURNS int",
        "CREATE /* odd */ OR ALTER PROCEDURE q AS SELECT 1",
    ] {
        assert!(told.contains(kept), "{kept}\n{told}");
    }
    assert!(!told.contains("Msg "), "{told}");
}
