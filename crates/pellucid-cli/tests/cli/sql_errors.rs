//! Goal: what an error leaves behind is what SQL Server leaves: counters, what CATCH catches, and the texts of RAISERROR.
//!
//! Method: scripts as they stand in migrations; what they show is typed by hand from the pages of Microsoft's reference.

use crate::sql_server::Server;
use crate::support::{said_with, PELLUCID};

/// What a script shows: rows by `|`, errors as `Msg n` and their text, nothing of headings and counts.
fn lines(server: &Server, script: &str) -> Vec<String> {
    let options = ["sql", "-W", "-h", "-1", "-s", "|"];
    let script = format!("SET NOCOUNT ON\nGO\n{script}");
    let said = said_with(server.0.command(PELLUCID).args(options), &script).stdout;
    let cut = |line: &str| match line.strip_prefix("Msg ") {
        Some(rest) => format!("Msg {}", rest.split(',').next().unwrap_or_default()),
        None => line.to_owned(),
    };
    said.lines().filter(|line| !line.is_empty()).map(cut).collect()
}

#[track_caller]
fn prints(server: &Server, script: &str, expected: &[&str]) {
    assert_eq!(lines(server, script), expected, "{script}");
}

#[test]
fn a_statement_that_failed_has_changed_no_row() {
    let server = Server::with(&[]);
    for (before, fails, number) in [
        ("SELECT 1 AS a INTO #t INSERT #t VALUES (1), (2)", "INSERT #t VALUES (1 / 0)", 8134),
        ("CREATE TABLE #t(a int PRIMARY KEY) INSERT #t VALUES (1)", "INSERT #t VALUES (1)", 2627),
        ("DECLARE @a int SELECT @a = 1", "RAISERROR('a', 16, 1)", 50000),
        ("DECLARE @a int SELECT @a = 1", "EXEC('THROW 50001, ''a'', 1')", 50001),
        ("DECLARE @a int SELECT @a = 1", "SET @a = 1 / 0", 8134),
        ("DECLARE @a int SELECT @a = 1", "BACKUP DATABASE model TO DISK = '/nowhere/a'", 0),
    ] {
        let counters = "SELECT CONCAT('e', @@ERROR, ' r', @@ROWCOUNT)";
        let script =
            format!("{before}\nBEGIN TRY {fails} END TRY BEGIN CATCH {counters} END CATCH\nGO\n");
        if number > 0 {
            let counted = format!("e{number} r0");
            assert!(lines(&server, &script).contains(&counted), "{script}");
        }
    }
    prints(
        &server,
        "CREATE TABLE #t(a int PRIMARY KEY, b char(1)) INSERT #t VALUES (1, 'a')
         BEGIN TRY INSERT #t VALUES (1, 'b') END TRY BEGIN CATCH SELECT @@ERROR, @@ROWCOUNT END CATCH
         RAISERROR('x', 16, 1)
         SELECT @@ERROR, @@ROWCOUNT",
        &["2627|0", "Msg 50000", "x", "50000|0"],
    );
    // PRINT and the condition of IF are statements that succeed.
    prints(
        &server,
        "RAISERROR('x', 16, 1) PRINT 'a' SELECT @@ERROR
         RAISERROR('x', 16, 1) IF @@ERROR <> 0 SELECT @@ERROR",
        &["Msg 50000", "x", "a", "0", "Msg 50000", "x", "0"],
    );
}
