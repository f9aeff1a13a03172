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
    let cycle = refused(&server, "EXEC sp_cycle_errorlog");
    assert_eq!(cycle[0].1, "'sp_cycle_errorlog' is not supported.");
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
