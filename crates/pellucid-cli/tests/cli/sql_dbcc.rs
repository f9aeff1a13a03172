//! Goal: DBCC tells of the session and of the logs what SQL Server tells, and caches that are not there are no reason to stop.
//!
//! Method: what each command shows, beside what the session has done.

use crate::sql_server::{errors, Server};

const ENDS: &str =
    "DBCC execution completed. If DBCC printed error messages, contact your system administrator.";

#[track_caller]
fn shown(server: &Server, script: &str) -> String {
    let told = server.run(script).all();
    assert!(errors(&told).is_empty(), "{told}");
    told
}

#[test]
fn the_open_transaction_is_told() {
    let server = Server::with(&[]);
    let told = shown(&server, "DBCC OPENTRAN\nDBCC OPENTRAN('tempdb') WITH NO_INFOMSGS");
    let none = "No active open transactions.";
    assert_eq!(told, format!("{none}\n{ENDS}\n{none}\n"));
    let told = shown(
        &server,
        "CREATE DATABASE app\nGO\nUSE app\nGO\nBEGIN TRAN deep\nDBCC OPENTRAN(app)\nROLLBACK",
    );
    assert!(told.contains("Transaction information for database 'app'."), "{told}");
    assert!(told.contains("Name          : deep") && told.contains(ENDS), "{told}");
    let none = errors(&server.run("DBCC OPENTRAN(none)").all());
    assert_eq!(none[0].0, "Msg 911");
}

#[test]
fn the_batch_and_the_options_of_the_session_are_shown() {
    let server = Server::with(&[]);
    let script = "DECLARE @s nvarchar(99) = CONCAT('DBCC INPUTBUFFER(', @@SPID, ')')
IF 1 = 0 CREATE MASTER KEY ENCRYPTION BY PASSWORD = 's3cret'
EXEC (@s)";
    let told = shown(&server, script);
    assert!(told.contains("EventType Parameters EventInfo"), "{told}");
    assert!(told.contains("Language Event 0 DECLARE @s") && !told.contains("s3cret"), "{told}");
    let none = errors(&server.run("DBCC INPUTBUFFER(1)").all());
    assert_eq!(none, [("Msg 7955".to_owned(), "Invalid SPID 1 specified.".to_owned())]);
    let script = "SET NOCOUNT ON SET XACT_ABORT ON SET QUOTED_IDENTIFIER ON SET ANSI_NULLS OFF
GO
DBCC USEROPTIONS WITH NO_INFOMSGS";
    let rows = server.rows(script);
    for row in ["dateformat|mdy", "nocount|SET", "xact_abort|SET", "quoted_identifier|SET"] {
        assert!(rows.iter().any(|own| own == row), "{row}: {rows:?}");
    }
    assert!(!rows.iter().any(|row| row.starts_with("ansi_nulls")), "{rows:?}");
}

#[test]
fn logs_have_their_size_and_there_are_no_caches() {
    let server = Server::with(&[]);
    server.run("CREATE DATABASE app").succeeded();
    let kept = "SET NOCOUNT ON CREATE TABLE #l(name sysname, mb real, used real, status int)
INSERT #l EXEC ('DBCC SQLPERF(LOGSPACE) WITH NO_INFOMSGS')
SELECT name, status FROM #l WHERE mb >= 0 AND used BETWEEN 0 AND 100 ORDER BY name";
    assert_eq!(server.rows(kept), ["app|0", "master|0", "model|0", "msdb|0", "tempdb|0"]);
    let told = shown(
        &server,
        "DBCC FREEPROCCACHE\nDBCC DROPCLEANBUFFERS\nDBCC FREESYSTEMCACHE('ALL') WITH NO_INFOMSGS",
    );
    assert_eq!(told, format!("{ENDS}\n{ENDS}\n"));
    for refused in ["DBCC SHRINKFILE(1)", "DBCC SQLPERF('sys.dm_os_wait_stats', CLEAR)"] {
        assert_eq!(errors(&server.run(refused).all())[0].0, "Msg 50001", "{refused}");
    }
}
