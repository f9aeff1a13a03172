//! Goal: procedures of the server that scripts call besides their own show what is there, or say what SQL Server says.
//!
//! Method: called by `pellucid sql`; what they show is compared with the instance.

use crate::sql_server::{errors, Server};

#[track_caller]
fn shown(server: &Server, script: &str) -> Vec<String> {
    server.rows(&format!("SET NOCOUNT ON {script}"))
}

fn refused(server: &Server, script: &str) -> Vec<(String, String)> {
    errors(&server.run(script).all())
}

#[test]
fn the_log_of_the_server_is_read_and_listed() {
    let server = Server::with(&[]);
    let all = shown(&server, "EXEC sp_readerrorlog");
    assert!(all.len() > 1, "{all:?}");
    for row in &all {
        let parts: Vec<&str> = row.splitn(3, '|').collect();
        assert!(parts[0].starts_with("20") && parts[1] == "Server", "{row}");
        assert!(parts[2].starts_with('{') && parts[2].ends_with('}'), "{row}");
    }
    let turned = "EXEC xp_readerrorlog 0, 1, NULL, NULL, '2020-01-01', NULL, N'desc'";
    let mut turned = shown(&server, turned);
    turned.reverse();
    // Each session that opens a database is an event.
    assert_eq!(turned[..all.len()], all);
    let found = "EXEC master.dbo.xp_readerrorlog 0, 1, N'Master', N'database', NULL, NULL, N'asc'";
    let found = shown(&server, found);
    assert!(!found.is_empty() && found.len() < all.len(), "{found:?}");
    for none in ["1", "0, 2", "0, 1, N'nothing of that'", "0, 1, NULL, NULL, NULL, '2020-01-01'"] {
        let rows = shown(&server, &format!("EXEC xp_readerrorlog {none}"));
        assert!(rows.is_empty(), "{none}: {rows:?}");
    }
    let listed = shown(&server, "EXEC sp_enumerrorlogs");
    let parts: Vec<&str> = listed[0].split('|').collect();
    assert_eq!((listed.len(), parts[0]), (1, "0"), "{listed:?}");
    assert!(parts[2].parse::<u64>().unwrap() > 100, "{listed:?}");
    assert!(shown(&server, "EXEC xp_enumerrorlogs 2").is_empty());
    let kept = "CREATE TABLE #l(n int, d datetime, s bigint) INSERT #l EXEC xp_enumerrorlogs 1
        SELECT COUNT(*) FROM #l WHERE d > '20200101'";
    assert_eq!(shown(&server, kept), ["1"]);
    let events = shown(&server, "EXEC sp_readerrorlog").len();
    let told = server.run("EXEC sp_cycle_errorlog").succeeded();
    assert!(told.contains("The log of events is one file here, and goes on"), "{told}");
    assert!(shown(&server, "EXEC sp_readerrorlog").len() >= events);
}

#[test]
fn the_shell_is_off_and_stays_so() {
    let server = Server::with(&[]);
    let told = server.run("EXEC master..xp_cmdshell 'id', no_output\nPRINT 'behind'").all();
    assert!(told.contains("Msg 15281, Level 16") && told.contains("behind"), "{told}");
    let set = |value: u8| {
        format!("EXEC sp_configure 'show advanced options', 1\nRECONFIGURE\nEXEC sp_configure 'xp_cmdshell', {value}")
    };
    let told = server.run(&set(1)).all();
    assert!(told.contains("Msg 50001") && told.contains("sp_configure 'xp_cmdshell', 1"), "{told}");
    let told = server.run(&format!("{}\nRECONFIGURE\nEXEC xp_cmdshell 'id'", set(0))).all();
    assert!(told.contains("Msg 15281") && !told.contains("50001"), "{told}");
}

#[test]
fn a_procedure_is_marked_as_the_systems_without_effect() {
    let server = Server::with(&[]);
    let script = "CREATE PROC sp_own AS PRINT DB_NAME()
GO
EXEC sys.sp_MS_marksystemobject 'dbo.sp_own'
GO
USE tempdb
EXEC sp_own";
    let told = server.run(script).all();
    assert!(told.ends_with("tempdb\n") && !told.contains("Msg "), "{told}");
    let none = refused(&server, "EXEC sp_MS_marksystemobject 'sp_none'");
    let text = "Object 'sp_none' does not exist or is not a valid object for this operation.";
    assert_eq!(none, [("Msg 15001".to_owned(), text.to_owned())]);
}

#[test]
fn space_is_told_in_kilobytes() {
    let server = Server::with(&[]);
    let made = "CREATE DATABASE app
GO
USE app
GO
CREATE TABLE t(a int NOT NULL PRIMARY KEY, b nvarchar(100))
CREATE INDEX ix ON t(b)
GO
DECLARE @i int = 0
WHILE @i < 200 BEGIN SET @i += 1 INSERT t VALUES (@i, REPLICATE(N'x', 90)) END";
    assert!(refused(&server, made).is_empty());
    let of_table = shown(&server, "USE app EXEC sp_spaceused 'dbo.t'").pop().unwrap();
    let parts: Vec<&str> = of_table.split('|').map(str::trim).collect();
    assert_eq!(parts[..2], ["t", "200"], "{of_table}");
    let kb: Vec<i64> =
        parts[2..].iter().map(|part| part.strip_suffix(" KB").unwrap().parse().unwrap()).collect();
    assert!(kb[1] > 16 && kb[2] > 16 && kb[0] == kb[1] + kb[2] && kb[3] == 0, "{of_table}");
    let whole = server.run("USE app EXEC sp_spaceused @updateusage = N'TRUE'").all();
    assert!(whole.contains("database_name database_size unallocated space"), "{whole}");
    assert!(whole.contains("reserved data index_size unused") && whole.contains(" MB"), "{whole}");
    assert!(shown(&server, "EXEC sp_spaceused")[0].starts_with("master|"));
    let of_msdb = shown(&server, "USE msdb EXEC sp_spaceused");
    assert!(of_msdb.iter().any(|row| row.starts_with("msdb|")), "{of_msdb:?}");
    let temporary =
        shown(&server, "CREATE TABLE #h(a int) INSERT #h VALUES (1) EXEC sp_spaceused '#h'");
    assert!(temporary[0].starts_with("#h|1|"), "{temporary:?}");
    let none = refused(&server, "USE app EXEC sp_spaceused 'none'");
    let text =
        "The object 'none' does not exist in database 'app' or is invalid for this operation.";
    assert_eq!(none, [("Msg 15009".to_owned(), text.to_owned())]);
}

#[test]
fn this_session_and_the_filegroup_are_listed() {
    let server = Server::with(&[]);
    let own = shown(&server, "PRINT @@SPID EXEC sp_who");
    let spid = own[0].clone();
    let parts: Vec<&str> = own[1].split('|').map(str::trim).collect();
    assert_eq!((parts[0], parts[6]), (spid.as_str(), "master"), "{own:?}");
    assert_eq!(shown(&server, "EXEC sp_who 'active'").len(), 1);
    assert!(shown(&server, "EXEC sp_who 1").is_empty());
    let two = shown(&server, "EXEC sp_who2");
    assert!(two.len() == 1 && two[0].contains("RUNNABLE"), "{two:?}");
    assert_eq!(refused(&server, "EXEC sp_who 'nobody else'")[0].0, "Msg 15007");
    assert_eq!(shown(&server, "EXEC sp_helpfilegroup"), ["PRIMARY|1|1"]);
    assert_eq!(refused(&server, "EXEC sp_helpfilegroup 'other'")[0].0, "Msg 15325");
}

#[test]
fn types_of_tables_are_refused_by_name() {
    let server = Server::with(&[]);
    for (statement, text) in [
        ("CREATE TYPE dbo.tt AS TABLE (a int)", "'CREATE TYPE' is not supported."),
        ("DECLARE @t dbo.tt", "'type dbo.tt' is not supported."),
    ] {
        let told = refused(&server, statement);
        assert_eq!(told, [("Msg 50001".to_owned(), text.to_owned())], "{statement}");
    }
}

#[test]
fn tables_of_master_are_gone_through_like_others() {
    let server = Server::with(&[]);
    let told =
        server.run("CREATE TABLE dbo.kept(a int)\nEXEC sp_MSforeachtable 'PRINT ''?'''").all();
    assert!(told.ends_with("[dbo].[kept]\n"), "{told}");
    assert_eq!(
        server.run("USE msdb EXEC sp_MSforeachtable 'PRINT ''?'''").all().lines().count(),
        1
    );
}

/// Taken where it compares as all do here, and shown as it was said.
#[test]
fn a_database_shows_the_collation_that_it_was_made_with() {
    let server = Server::with(&[]);
    let query = "CREATE DATABASE c COLLATE Latin1_General_CI_AS; CREATE DATABASE d
        SELECT name, collation_name, CASE WHEN DATABASEPROPERTYEX(name, 'Collation') = collation_name THEN 'same' END
        FROM sys.databases WHERE database_id > 4 ORDER BY name";
    assert_eq!(
        shown(&server, query),
        ["c|Latin1_General_CI_AS|same", "d|SQL_Latin1_General_CP1_CI_AS|same"]
    );
    for other in ["Latin1_General_CS_AS", "Latin1_General_BIN2", "Latin1_General_CI_AI"] {
        let told = refused(&server, &format!("CREATE DATABASE e COLLATE {other}"));
        assert_eq!(told[0].0, "Msg 50001", "{told:?}");
    }
}
