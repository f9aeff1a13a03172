//! Functions that scripts make: scalar ones, and those that give a table by one query.

use crate::sql_server::{errors, Server};

const MADE: &str = "CREATE DATABASE Shop
GO
USE Shop
CREATE TABLE dbo.Item(ItemID int NOT NULL PRIMARY KEY, Name nvarchar(50))
INSERT INTO dbo.Item VALUES (1, N'bread'), (2, N'milk')
GO
CREATE FUNCTION dbo.Twice(@n int) RETURNS int AS BEGIN RETURN @n * 2 END
GO
CREATE FUNCTION dbo.Factorial(@n int = 3) RETURNS bigint WITH RETURNS NULL ON NULL INPUT AS
BEGIN
  IF @n <= 1 RETURN 1
  RETURN @n * dbo.Factorial(@n - 1)
END
GO
CREATE FUNCTION dbo.Names(@between varchar(5)) RETURNS nvarchar(200)
BEGIN
  DECLARE @all nvarchar(200), @i int = 0
  SELECT @all = ISNULL(@all + @between, '') + Name FROM dbo.Item ORDER BY Name
  WHILE 1 = 1 BEGIN
    SET @i += 1
    IF @i < 3 CONTINUE
    BREAK
  END
  RETURN @all + CAST(@i AS varchar(5)) + DB_NAME()
END
GO
CREATE FUNCTION dbo.Items(@least int) RETURNS TABLE AS RETURN (SELECT ItemID, Name, @least AS least FROM dbo.Item WHERE ItemID >= @least)
GO
";

fn server() -> Server {
    let server = Server::with(&[]);
    let shown = server.run(MADE).succeeded();
    assert!(!shown.contains("Msg "), "{shown}");
    server
}

#[track_caller]
fn says(server: &Server, script: &str, number: u32, text: &str) {
    let shown = server.run(script).succeeded();
    assert_eq!(errors(&shown), [(format!("Msg {number}"), text.to_owned())], "{script}\n{shown}");
}

#[test]
fn a_scalar_function_is_called_by_queries() {
    let server = server();
    for (query, rows) in [
        (
            "SELECT Shop.dbo.Twice(4), Shop.dbo.Twice(NULL), Shop.dbo.Twice('7') FROM Shop.dbo.Item WHERE Shop.dbo.Twice(ItemID) > 2",
            &["8|NULL|14"][..],
        ),
        // Defaults, NULL, itself.
        (
            "SELECT Shop.dbo.Factorial(5), Shop.dbo.Factorial(DEFAULT), ISNULL(Shop.dbo.Factorial(NULL), -1)",
            &["120|6|-1"],
        ),
        // Its names are those of its database, its columns those of now; the session's database is the caller's.
        ("SELECT Shop.dbo.Names(', ')", &["bread, milk3master"]),
        ("DECLARE @a int = 3 SET @a = Shop.dbo.Twice(@a) IF Shop.dbo.Twice(@a) = 12 SELECT @a", &["6"]),
        ("SELECT SUM(Shop.dbo.Twice(ItemID)), Shop.dbo.Twice(COUNT(*)) FROM Shop.dbo.Item", &["6|4"]),
        ("SELECT Name FROM Shop.dbo.Item ORDER BY Shop.dbo.Twice(-ItemID)", &["milk", "bread"]),
    ] {
        assert_eq!(server.rows(query), rows, "{query}");
    }
    says(
        &server,
        "SELECT Shop.dbo.Factorial(33)",
        217,
        "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).",
    );
    assert_eq!(server.rows("SELECT Shop.dbo.Factorial(20)"), ["2432902008176640000"]);
    says(
        &server,
        "SELECT Shop.dbo.Twice(1, 2)",
        8144,
        "Procedure or function Shop.dbo.Twice has too many arguments specified.",
    );
    says(
        &server,
        "SELECT Shop.dbo.Twice()",
        313,
        "An insufficient number of arguments were supplied for the procedure or function Shop.dbo.Twice.",
    );
    says(
        &server,
        "SELECT Shop.dbo.Thrice(1)",
        4121,
        "Cannot find either column \"dbo\" or the user-defined function or aggregate \"Shop.dbo.Thrice\", or the name is ambiguous.",
    );
    says(
        &server,
        "SELECT Shop.dbo.Twice('x')",
        245,
        "Conversion failed when converting the varchar value 'x' to data type int.",
    );
}

#[test]
fn a_function_gives_a_table() {
    let server = server();
    for (query, rows) in [
        ("DECLARE @n int = 2 SELECT * FROM Shop.dbo.Items(@n)", &["2|milk|2"][..]),
        (
            "SELECT i.Name, x.Name, x.least FROM Shop.dbo.Item i CROSS APPLY Shop.dbo.Items(i.ItemID) x ORDER BY 1, 2",
            &["bread|bread|1", "bread|milk|1", "milk|milk|2"],
        ),
        ("SELECT COUNT(*) FROM Shop.dbo.Items(0) a JOIN Shop.dbo.Items(2) AS b ON a.ItemID = b.ItemID", &["1"]),
        ("SELECT Name FROM Shop.dbo.Item WHERE EXISTS (SELECT * FROM Shop.dbo.Items(2) x WHERE x.ItemID = Item.ItemID)", &["milk"]),
    ] {
        assert_eq!(server.rows(query), rows, "{query}");
    }
    says(&server, "SELECT * FROM Shop.dbo.Twice(1)", 208, "Invalid object name 'Shop.dbo.Twice'.");
}

#[test]
fn functions_are_kept_altered_and_dropped() {
    let server = server();
    let found = "SELECT name, type, type_desc FROM Shop.sys.objects WHERE type IN ('FN', 'IF') ORDER BY name";
    let all = [
        "Factorial|FN|SQL_SCALAR_FUNCTION",
        "Items|IF|SQL_INLINE_TABLE_VALUED_FUNCTION",
        "Names|FN|SQL_SCALAR_FUNCTION",
        "Twice|FN|SQL_SCALAR_FUNCTION",
    ];
    assert_eq!(server.rows(found), all);
    let named = "SELECT CASE WHEN OBJECT_ID('Shop.dbo.Twice', 'FN') IS NOT NULL AND OBJECT_ID('Shop.dbo.Twice', 'P') IS NULL THEN 1 END";
    assert_eq!(server.rows(named), ["1"]);
    let routines =
        "SELECT COUNT(*) FROM Shop.INFORMATION_SCHEMA.ROUTINES WHERE ROUTINE_TYPE = 'FUNCTION'";
    assert_eq!(server.rows(routines), ["4"]);
    let script = "USE Shop
GO
ALTER FUNCTION dbo.Twice(@n int) RETURNS int AS BEGIN RETURN @n * 20 END
GO
SELECT dbo.Twice(1)
EXEC sp_helptext 'dbo.Twice'
DROP FUNCTION dbo.Names, dbo.Items
DROP FUNCTION IF EXISTS dbo.Names
GO
SELECT dbo.Names('')
GO
DROP PROCEDURE dbo.Twice
GO
DROP FUNCTION dbo.Names";
    let shown = server.run(script).succeeded();
    assert!(shown.contains("\n20\n") && shown.contains("RETURN @n * 20 END"), "{shown}");
    let numbers: Vec<String> = errors(&shown).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, ["Msg 4121", "Msg 3705", "Msg 3701"], "{shown}");
}

/// What a function cannot do is said when it is made, and none is made.
#[test]
fn a_function_changes_nothing() {
    let server = server();
    for (body, number, text) in [
        (
            "BEGIN DELETE FROM dbo.Item RETURN 1 END",
            443,
            "Invalid use of a side-effecting operator 'DELETE' within a function.",
        ),
        (
            "BEGIN INSERT INTO dbo.Item VALUES (3, '') RETURN 1 END",
            443,
            "Invalid use of a side-effecting operator 'INSERT' within a function.",
        ),
        (
            "BEGIN EXEC ('DROP TABLE dbo.Item') RETURN 1 END",
            443,
            "Invalid use of a side-effecting operator 'EXECUTE STRING' within a function.",
        ),
        (
            "BEGIN IF 1 = 1 PRINT 'x' RETURN 1 END",
            443,
            "Invalid use of a side-effecting operator 'PRINT' within a function.",
        ),
        (
            "BEGIN SELECT 1 RETURN 1 END",
            444,
            "Select statements included within a function cannot return data to a client.",
        ),
        (
            "BEGIN DECLARE @a int END",
            455,
            "The last statement included within a function must be a return statement.",
        ),
        ("BEGIN RETURN @unknown END", 137, "Must declare the scalar variable \"@unknown\"."),
        (
            "BEGIN RETURN (SELECT COUNT(*) FROM dbo.Gone) END",
            208,
            "Invalid object name 'dbo.Gone'.",
        ),
    ] {
        let script = format!("USE Shop\nGO\nCREATE FUNCTION dbo.Bad() RETURNS int AS {body}");
        says(&server, &script, number, text);
    }
    says(
        &server,
        "USE Shop\nGO\nCREATE FUNCTION dbo.Bad() RETURNS @t TABLE (a int) AS BEGIN RETURN END",
        50001,
        "'function of several statements that gives a table' is not supported.",
    );
    says(
        &server,
        "USE Shop\nGO\nCREATE FUNCTION dbo.Item() RETURNS int AS BEGIN RETURN 1 END",
        2714,
        "There is already an object named 'Item' in the database.",
    );
    assert_eq!(server.rows("SELECT COUNT(*) FROM Shop.sys.objects WHERE name = 'Bad'"), ["0"]);
    assert_eq!(server.rows("SELECT COUNT(*) FROM Shop.dbo.Item"), ["2"]);
}
