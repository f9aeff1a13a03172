//! Goal: an error of severity 20 or more ends the session, wherever it is raised: what a script has behind it is not executed.
//!
//! Method: scripts that would drop a table behind the error; the table and its rows are looked at by another session. The texts are
//! those of Microsoft's table of messages.

use crate::sql_server::{count, errors, Server};
use crate::support::{said, said_with, PELLUCID};

const RAISE: &str = "RAISERROR('Wrong database, stopping', 20, -1) WITH LOG";

fn server() -> Server {
    let server = Server::with(&[]);
    server.run("CREATE TABLE keep(a int) INSERT keep VALUES (1)").succeeded();
    server
}

#[track_caller]
fn keeps(server: &Server, script: &str) {
    assert_eq!(server.rows("SET NOCOUNT ON SELECT a FROM keep"), ["1"], "{script}");
}

/// The script says both messages, with these headers, and nothing behind them.
#[track_caller]
fn ends(server: &Server, script: &str) {
    let told = server.run(script);
    assert_eq!(told.code, 1, "{script}\n{told:?}");
    let told = told.all();
    let [(first, before), (second, text)] = &errors(&told)[..] else { panic!("{script}\n{told}") };
    assert_eq!((&**first, &**second), ("Msg 2745", "Msg 50000"), "{script}");
    assert!(before.starts_with("Process ID "), "{before}");
    let end = " has raised user error 50000, severity 20. SQL Server is terminating this process.";
    assert!(before.ends_with(end), "{before}");
    assert_eq!(text, "Wrong database, stopping");
    assert_eq!(
        (
            count(&told, "Msg 2745, Level 16, State 2,"),
            count(&told, "Msg 50000, Level 20, State 1,")
        ),
        (1, 1),
        "{told}"
    );
    assert!(!told.contains("behind"), "{script}\n{told}");
    keeps(server, script);
}

#[test]
fn nothing_of_a_script_is_executed_behind_it() {
    let server = server();
    let rest = "PRINT 'behind'\nDROP TABLE keep\nGO\nPRINT 'behind'\nDROP TABLE keep\nGO 2\n:connect .\nDROP TABLE keep\nGO\n";
    server.run(&format!("CREATE PROCEDURE stops AS {RAISE} PRINT 'behind'")).succeeded();
    for begin in [
        format!("IF DB_NAME() <> 'Prod' {RAISE}"),
        format!("BEGIN TRY {RAISE} END TRY BEGIN CATCH PRINT 'behind' END CATCH"),
        format!("EXEC('{}')", RAISE.replace('\'', "''")),
        "EXEC stops".to_owned(),
        "BEGIN TRY EXEC stops END TRY BEGIN CATCH PRINT 'behind' END CATCH".to_owned(),
        "CREATE TABLE #t(a int) INSERT #t EXEC stops".to_owned(),
        format!("EXEC sp_MSforeachdb '{}'", RAISE.replace('\'', "''")),
        format!("WHILE 1 = 1 BEGIN {RAISE} END"),
        format!("BEGIN TRAN DELETE keep {RAISE}"),
        "SET XACT_ABORT ON BEGIN TRAN DELETE keep EXEC stops".to_owned(),
    ] {
        ends(&server, &format!("{begin}\n{rest}"));
    }
    // 19 is an error as others are.
    let told =
        server.run("RAISERROR('a', 19, 1) WITH LOG\nPRINT 'behind'\nGO\nPRINT 'behind'").all();
    assert_eq!(count(&told, "behind"), 2, "{told}");
}

#[test]
fn the_files_and_arguments_that_follow_are_not_executed() {
    let server = server();
    let (first, rest) = (server.0.path("first.sql"), server.0.path("rest.sql"));
    std::fs::write(&first, format!("{RAISE}\nGO\n")).unwrap();
    std::fs::write(&rest, "DROP TABLE keep\n").unwrap();
    ends(&server, &format!(":r {}\nDROP TABLE keep\n", first.display()));
    let mut both = server.0.command(PELLUCID);
    assert_eq!(said(both.arg("sql").arg("-i").arg(&first).arg("-i").arg(&rest)).code, 1);
    keeps(&server, "-i");
    for options in [&["sql", "-Q"][..], &["sql", "-b", "-Q"], &["sql", "--json", "-Q"]] {
        let text = format!("{RAISE} DROP TABLE keep");
        assert_eq!(said(server.0.command(PELLUCID).args(options).arg(text)).code, 1, "{options:?}");
        keeps(&server, options[1]);
    }
    // With -V the status is the severity.
    let script = format!("{RAISE}\nGO\nDROP TABLE keep");
    assert_eq!(said_with(server.0.command(PELLUCID).args(["sql", "-V", "16"]), &script).code, 20);
    let script = format!("EXIT({RAISE} DROP TABLE keep SELECT 7)");
    assert_eq!(said_with(server.0.command(PELLUCID).arg("sql"), &script).code, 1);
    keeps(&server, &script);
}
