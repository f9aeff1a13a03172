//! Goal: nothing that nests as deep as it may ends the process.
//!
//! Method: procedures that call themselves as often as they can, each out of as many blocks as the parser takes; then a batch
//! that is to be executed.

use crate::sql_server::{errors, Server};

/// As many as the parser takes of IF with BEGIN.
const BLOCKS: usize = 48;

fn within(blocks: usize, begin: &str, body: &str, end: &str) -> String {
    format!("{}{body}{}", begin.repeat(blocks), end.repeat(blocks))
}

/// A procedure whose body is executed ends with `number`, and the session goes on.
#[track_caller]
fn ends_with(body: &str, number: &str) {
    let server = Server::with(&[]);
    let script =
        format!("CREATE PROCEDURE deep @n int AS\n{body}\nGO\nEXEC deep 1\nGO\nPRINT 'alive'\n");
    let told = server.run(&script);
    let shown = told.all();
    assert!(shown.lines().any(|line| line == "alive"), "{shown}");
    let found: Vec<_> = errors(&shown).into_iter().map(|(number, _)| number).collect();
    assert_eq!(found, [format!("Msg {number}")], "{shown}");
}

const CALL: &str = "DECLARE @m int = @n + 1; EXEC deep @m;\n";

#[test]
fn blocks_times_calls() {
    ends_with(&within(BLOCKS, "IF 1 = 1 BEGIN\n", CALL, "END\n"), "217");
    ends_with(&within(BLOCKS, "WHILE 1 = 1 BEGIN\n", CALL, "BREAK END\n"), "217");
}

#[test]
fn the_other_branch_and_a_goto_into_the_depth() {
    let body = within(BLOCKS, "IF 1 = 0 PRINT 'x' ELSE BEGIN\n", CALL, "END\n");
    ends_with(&body, "217");
    let body = within(BLOCKS, "IF 1 = 0 BEGIN\n", &format!("here: {CALL}"), "END\n");
    ends_with(&format!("GOTO here;\n{body}"), "217");
}

/// What is raised is caught and raised again on the way out, 32 times as often as blocks nest.
#[test]
fn try_and_catch() {
    let blocks = 90;
    ends_with(
        &within(blocks, "BEGIN TRY\n", CALL, "END TRY BEGIN CATCH THROW; END CATCH\n"),
        "217",
    );
    // The call stands in CATCH.
    let begin = "BEGIN TRY SELECT 1 / 0 AS x END TRY BEGIN CATCH\n";
    let server = Server::with(&[]);
    let body = within(blocks, begin, CALL, "END CATCH\n");
    let script = format!("CREATE PROCEDURE deep @n int AS\nSET NOCOUNT ON;\n{body}\nGO\nEXEC deep 1\nGO\nPRINT 'alive'\n");
    let shown = server.run(&script).all();
    assert!(shown.lines().any(|line| line == "alive"), "{shown}");
}

#[test]
fn strings_cursors_and_expressions_at_the_end_of_it() {
    let string = "DECLARE @m int = @n + 1; EXEC sp_executesql N'EXEC deep @m', N'@m int', @m;\n";
    ends_with(&within(BLOCKS, "IF 1 = 1 BEGIN\n", string, "END\n"), "217");
    let string = "DECLARE @s nvarchar(99) = CONCAT('EXEC deep ', @n + 1); EXEC (@s);\n";
    ends_with(&within(BLOCKS, "IF 1 = 1 BEGIN\n", string, "END\n"), "217");
    let cursor = "DECLARE c CURSOR LOCAL FOR SELECT @n + 1; OPEN c; DECLARE @m int; FETCH c INTO @m; EXEC deep @m;\n";
    ends_with(&within(BLOCKS, "IF 1 = 1 BEGIN\n", cursor, "END\n"), "217");
    let deep = format!("DECLARE @x int = {}@n{};\n", "ABS(".repeat(90), ")".repeat(90));
    let blocks = within(BLOCKS, "IF 1 = 1 BEGIN\n", CALL, "END\n");
    ends_with(&format!("{deep}{blocks}"), "217");
}

#[test]
fn within_insert_execute() {
    let server = Server::with(&[]);
    let body = within(BLOCKS, "IF 1 = 1 BEGIN\n", &format!("SELECT @n AS n; {CALL}"), "END\n");
    let shown = server
        .run(&format!(
            "CREATE PROCEDURE deep @n int AS\n{body}\nGO\nCREATE TABLE #t(n int);\nINSERT INTO #t EXEC deep 1\nGO\n\
             SELECT COUNT(*) AS kept FROM #t\nGO\nPRINT 'alive'\n"
        ))
        .all();
    assert!(shown.contains("Msg 217") && shown.lines().any(|line| line == "alive"), "{shown}");
    assert!(shown.lines().any(|line| line == "0"), "{shown}");
}
