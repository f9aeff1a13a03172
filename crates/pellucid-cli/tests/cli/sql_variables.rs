//! Goal: variables are there as SQL Server has them, and a batch that uses an unknown one is not begun.
//!
//! Method: `pellucid sql`; what a batch would have changed is looked at behind its refusal.

use crate::sql_server::{errors, Server};

/// The messages of a script, each as `number line text`.
fn refused(server: &Server, script: &str) -> Vec<String> {
    let told = server.run(script).all();
    let lines = told.lines().filter(|line| line.starts_with("Msg "));
    let places = lines.map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned());
    let of = errors(&told).into_iter().zip(places);
    of.map(|((number, text), line)| format!("{} {line} {text}", number.trim_start_matches("Msg ")))
        .collect()
}

#[test]
fn a_batch_that_uses_an_unknown_variable_changes_nothing() {
    let server = Server::with(&[]);
    server
        .run("CREATE DATABASE d\nGO\nUSE d\nCREATE TABLE t(a int)\nINSERT INTO t VALUES (1)")
        .succeeded();
    let scalar = |name: &str| format!("Must declare the scalar variable \"@{name}\".");
    let table = |name: &str| format!("Must declare the table variable \"@{name}\".");
    for (batch, told) in [
        ("DELETE FROM t\nPRINT @typo", vec![format!("137 2 {}", scalar("typo"))]),
        (
            "DELETE FROM t\nSELECT 1,\n  @a, @b\nPRINT @c; INSERT INTO @e VALUES (1)",
            vec![
                format!("137 3 {}", scalar("a")),
                format!("137 4 {}", scalar("c")),
                format!("1087 4 {}", table("e")),
            ],
        ),
        // A declaration counts from its place on, and of itself it knows nothing.
        ("DELETE FROM t SET @a = 1 DECLARE @a int", vec![format!("137 1 {}", scalar("a"))]),
        ("DELETE FROM t DECLARE @a int = @a", vec![format!("137 1 {}", scalar("a"))]),
        ("DECLARE @a int = 1\nGO\nDELETE FROM t PRINT @A", vec![format!("137 1 {}", scalar("A"))]),
        ("DELETE FROM t IF 1 = 0 SELECT * FROM @t", vec![format!("1087 1 {}", table("t"))]),
        (
            "DELETE FROM t BEGIN TRY PRINT @a END TRY BEGIN CATCH END CATCH",
            vec![format!("137 1 {}", scalar("a"))],
        ),
        // A text has its parameters alone, and changes nothing either.
        ("DECLARE @a int EXEC('DELETE FROM t PRINT @a')", vec![format!("137 1 {}", scalar("a"))]),
        (
            "EXEC sp_executesql N'DELETE FROM t SELECT @a, @b', N'@a int', @a = 1",
            vec![format!("137 1 {}", scalar("b"))],
        ),
        (
            "CREATE PROCEDURE p @a int AS\nSELECT @a\nSELECT @b",
            vec![format!("137 3 {}", scalar("b"))],
        ),
        (
            "CREATE FUNCTION f(@a int) RETURNS int AS BEGIN RETURN @b END",
            vec![format!("137 1 {}", scalar("b"))],
        ),
        ("CREATE VIEW v AS SELECT @a AS a", vec![format!("137 1 {}", scalar("a"))]),
    ] {
        let script = format!("USE d\nGO\n{batch}\nGO\n");
        assert_eq!(refused(&server, &script), told, "{batch}");
    }
    let left = server
        .run(
            "USE d IF (SELECT COUNT(*) FROM t) <> 1 OR OBJECT_ID('p') IS NOT NULL OR OBJECT_ID('f') IS NOT NULL \
             OR OBJECT_ID('v') IS NOT NULL RAISERROR('it was begun', 16, 1)",
        )
        .all();
    assert!(!left.contains("Msg "), "{left}");
}

/// The name of a parameter of what is called is no variable of the batch.
#[test]
fn names_of_parameters_need_no_declaration() {
    let server = Server::with(&[]);
    let told = server
        .run(
            "CREATE DATABASE d\nGO\nUSE d\nGO\nCREATE PROCEDURE p @a int, @b int = 2 OUTPUT AS SET @b = @a + 1\nGO
DECLARE @r int EXEC p @a = 4, @b = @r OUTPUT PRINT @r
EXEC sp_executesql N'PRINT @x + @y', N'@x int, @y int', @x = 1, @y = @r",
        )
        .succeeded();
    assert!(!told.contains("Msg ") && told.contains("5\n6\n"), "{told}");
}

/// Wherever its declaration stands, met or not: it is there from the batch's first statement on, and is NULL.
#[test]
fn a_variable_is_there_whether_its_declaration_is_met_or_not() {
    let server = Server::with(&[]);
    for (batch, printed) in [
        ("IF 1 = 0 DECLARE @x int = 5 PRINT ISNULL(@x, -1)", "-1\n"),
        ("GOTO behind DECLARE @x int = 5 behind: PRINT ISNULL(@x, -1)", "-1\n"),
        ("DECLARE @n int = 0 WHILE @n < 3 BEGIN DECLARE @m int SET @m = ISNULL(@m, 0) + 1 SET @n += 1 END PRINT @m", "3\n"),
        ("IF 1 = 0 BEGIN DECLARE @t TABLE(a int) END INSERT INTO @t VALUES (7) PRINT (SELECT a FROM @t)", "7\n"),
        ("IF 1 = 0 DECLARE @c CURSOR SET @c = CURSOR FOR SELECT 1 OPEN @c PRINT CURSOR_STATUS('variable', '@c')", "1\n"),
        ("EXEC('IF 1 = 0 DECLARE @x int = 5 PRINT ISNULL(@x, -1)')", "-1\n"),
    ] {
        let told = server.run(batch).all();
        assert!(!told.contains("Msg ") && told.ends_with(printed), "{batch}\n{told}");
    }
    let told = server
        .run(
            "CREATE DATABASE d\nGO\nUSE d\nGO\nCREATE PROCEDURE p @a int AS IF @a = 2 DECLARE @c int = 7 PRINT ISNULL(@c, -1)\nGO
EXEC p 1 EXEC p 2
GO
CREATE PROCEDURE q @a int AS DECLARE @A int",
        )
        .all();
    assert!(told.contains("-1\n7\n") && told.contains("Msg 134,"), "{told}");
}

/// Source: messages 2715 and 2716.
#[test]
fn a_type_that_there_is_not_is_named_with_the_place_of_its_declaration() {
    let server = Server::with(&[]);
    let unknown = |at: u32| {
        format!("2715 1 Column, parameter, or variable #{at}: Cannot find data type nosuch.")
    };
    for (script, told) in [
        ("DECLARE @x nosuch", unknown(1)),
        ("DECLARE @a int, @x nosuch", unknown(2)),
        ("CREATE PROCEDURE #p AS DECLARE @a int, @x nosuch", unknown(2)),
        ("DECLARE @t TABLE (a int, b nosuch)", unknown(2)),
        ("CREATE TABLE #t (a nosuch)", unknown(1)),
        ("CREATE TABLE #t (a int, b int, c nosuch)", unknown(3)),
        ("CREATE PROCEDURE #p @a int, @b nosuch AS SELECT 1", unknown(2)),
        (
            "CREATE TABLE #t (a int, b int(4))",
            "2716 1 Column, parameter, or variable #2: Cannot specify a column width on data type int."
                .to_owned(),
        ),
        ("SELECT CAST(1 AS nosuch)", "243 1 Type nosuch is not a defined system type.".to_owned()),
    ] {
        assert_eq!(refused(&server, script), [told], "{script}");
    }
    // Nothing of such a batch is executed.
    let told = server.run("PRINT 'begun'\nIF 1 = 0 DECLARE @x nosuch\nPRINT 'ended'").all();
    assert_eq!(errors(&told), [("Msg 2715".to_owned(), unknown(1)[7..].to_owned())], "{told}");
    assert!(!told.contains("begun") && !told.contains("ended"), "{told}");
}

/// What is made within a transaction goes with it: a table that is declared behind the ROLLBACK is there.
#[test]
fn a_table_declared_behind_a_rollback_is_there() {
    let server = Server::with(&[]);
    let told = server
        .run(
            "BEGIN TRANSACTION
GO
ROLLBACK
DECLARE @t TABLE (a int)
INSERT @t VALUES (7)
SELECT CONCAT('found ', a) FROM @t
GO
CREATE PROCEDURE p AS
BEGIN TRY
  SELECT 1 / 0
END TRY
BEGIN CATCH
  IF @@TRANCOUNT > 0 ROLLBACK
  DECLARE @e TABLE (m nvarchar(200))
  INSERT @e VALUES ('kept')
  SELECT m FROM @e
END CATCH
GO
BEGIN TRANSACTION
EXEC p",
        )
        .all();
    let is_there = told.contains("found 7") && told.contains("kept");
    assert!(is_there && !told.contains("50002"), "{told}");
}
