//! Goal: what an error leaves behind is what SQL Server leaves: counters, what CATCH catches, and the texts of RAISERROR.
//!
//! Method: scripts as they stand in migrations; what they show is typed by hand from the pages of Microsoft's reference.

use crate::sql_server::{errors, Server};
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

/// "Errors Unaffected by a TRY...CATCH Construct".
#[test]
fn names_that_are_unknown_are_not_caught_where_they_stand() {
    let server = Server::with(&[]);
    let within = |text: &str| {
        format!(
            "BEGIN TRY {text} PRINT 'behind' END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH"
        )
    };
    let table = "CREATE TABLE #t(a int)";
    for (text, number) in [
        ("SELECT * FROM nosuch", "Msg 208"),
        ("SELECT b FROM #t", "Msg 207"),
        ("SELECT x.b FROM #t", "Msg 4104"),
        ("INSERT nosuch VALUES (1)", "Msg 208"),
        ("UPDATE #t SET b = 1", "Msg 207"),
        ("DELETE nosuch", "Msg 208"),
        ("IF EXISTS (SELECT * FROM nosuch) PRINT 'a'", "Msg 208"),
        ("DECLARE @a int = (SELECT a FROM nosuch)", "Msg 208"),
        ("SELECT dbo.nosuch(1)", "Msg 4121"),
    ] {
        let shown = lines(&server, &format!("{table} {} PRINT 'the rest'", within(text)));
        assert_eq!(shown[..1], [number], "{text}\n{shown:?}");
        assert_eq!(shown.len(), 2, "{text}\n{shown:?}");
        // Blocks within blocks are of one level.
        let shown = lines(&server, &format!("{table} {} PRINT 'the rest'", within(&within(text))));
        assert_eq!((&*shown[0], shown.len()), (number, 2), "{text}\n{shown:?}");
        let caught = number.trim_start_matches("Msg ");
        let string = text.replace('\'', "''");
        for text in [format!("EXEC('{string}')"), format!("EXEC sp_executesql N'{string}'")] {
            prints(
                &server,
                &format!("{table} {} PRINT 'the rest'", within(&text)),
                &[caught, "the rest"],
            );
        }
    }
    let handled = within("SELECT * FROM nosuch");
    let procedure = format!("CREATE PROCEDURE p AS {handled} PRINT 'the rest of it'\nGO\n");
    prints(
        &server,
        &format!("{procedure}EXEC p PRINT 'a'\nGO\n{}", within("EXEC p")),
        &["Msg 208", "Invalid object name 'nosuch'.", "a", "208"],
    );
    // What execution meets is caught.
    prints(&server, &within("DROP TABLE nosuch"), &["3701"]);
    prints(&server, &within("TRUNCATE TABLE nosuch"), &["4701"]);
    prints(&server, &within("EXEC nosuch"), &["2812"]);
    prints(&server, &within("SELECT CAST('x' AS int)"), &["245"]);
}

#[test]
fn raiserror_formats_what_it_is_given() {
    let server = Server::with(&[]);
    prints(
        &server,
        "RAISERROR(N'<<%*.*s>>', 10, 1, 7, 3, N'abcde')
         RAISERROR(N'<<%7.3s>>', 10, 1, N'abcde')
         RAISERROR('a', 10, 1) WITH SETERROR SELECT @@ERROR
         RAISERROR('a', 10, 1) SELECT @@ERROR",
        &["<<    abc>>", "<<    abc>>", "a", "50000", "a", "0"],
    );
    for (argument, told) in [
        ("float = 1.5", "float"),
        ("datetime = '20200102'", "datetime"),
        ("numeric(5, 2) = 1.5", "numeric"),
        ("bit = 1", "bit"),
    ] {
        let text =
            format!("Cannot specify {told} data type (parameter 4) as a substitution parameter.");
        let script = format!("DECLARE @a {argument} RAISERROR('%s', 10, 1, @a)");
        prints(&server, &script, &["Msg 2748", &text]);
    }
    let script = "DECLARE @a bigint = 5 RAISERROR('%I64d', 10, 1, @a) RAISERROR('%d', 16, 1, @a)";
    assert_eq!(lines(&server, script)[..2], ["5", "Msg 2786"]);
    let told = server.run(
        "RAISERROR('%d', 16, 1, 'x')\nRAISERROR('bad %z', 16, 1)\nSELECT FORMATMESSAGE('%s', 1)\n",
    );
    let mismatch = "The data type of substitution parameter 1 does not match the expected type of the format specification.";
    let expected = [
        ("Msg 2786", mismatch),
        ("Msg 2787", "Invalid format specification: '%z'."),
        ("Msg 2786", mismatch),
    ];
    let expected = expected.map(|(number, text)| (number.to_owned(), text.to_owned()));
    assert_eq!(errors(&told.all()), expected);
}

#[test]
fn calls_are_told_with_the_name_of_the_procedure() {
    let server = Server::with(&[]);
    let procedures = "CREATE PROCEDURE p @a int, @b datetime = NULL AS PRINT 'called'
GO
CREATE PROCEDURE opens AS BEGIN TRAN";
    server.run(procedures).succeeded();
    let not_int = "Error converting data type varchar to int.";
    for (call, number, level, state, text) in [
        ("EXEC p 'abc', 1", 8114, 16, 5, not_int),
        ("DECLARE @r int EXEC @r = dbo.p @a = 'abc'", 8114, 16, 5, not_int),
        ("EXEC p N'abc'", 8114, 16, 5, "Error converting data type nvarchar to int."),
        ("EXEC p 1, 'never'", 8114, 16, 5, "Error converting data type varchar to datetime."),
        ("EXEC p", 201, 16, 4, "Procedure or function 'p' expects parameter '@a', which was not supplied."),
        ("EXEC p 1, 2, 3", 8144, 16, 2, "Procedure or function p has too many arguments specified."),
        ("EXEC p @none = 1", 8145, 16, 1, "@none is not a parameter for procedure p."),
        (
            "EXEC opens",
            266,
            16,
            2,
            "Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. Previous count = 0, \
             current count = 1.",
        ),
    ] {
        let told = server.run(&format!("PRINT 'a'\n{call}")).all();
        let name = if number == 266 { "opens" } else { "p" };
        let start = format!("Msg {number}, Level {level}, State {state}, ");
        let header = told.lines().find(|line| line.starts_with("Msg ")).unwrap_or_default();
        let end = format!(", Procedure {name}, Line 0");
        assert!(header.starts_with(&start) && header.ends_with(&end), "{call}\n{told}");
        assert_eq!(errors(&told)[0].1, text, "{call}");
        assert!(!told.contains("called"), "{told}");
    }
    prints(
        &server,
        "BEGIN TRY EXEC p 'abc' END TRY
         BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_LINE(), ERROR_PROCEDURE(), ERROR_STATE() END CATCH",
        &["8114|0|p|5"],
    );
    // A numeric that is written is one, and is cut off.
    prints(
        &server,
        "EXEC p 1.9 EXEC p -2147483648 EXEC p 99999999999.5 EXEC p 99999999999",
        &[
            "called",
            "called",
            "Msg 8114",
            "Error converting data type numeric to int.",
            "Msg 8114",
            "Error converting data type numeric to int.",
        ],
    );
    let wide = "CREATE PROCEDURE wide @a bigint, @b tinyint = 0 AS PRINT CONCAT(@a, ' ', @b)\nGO\n";
    prints(
        &server,
        &format!("{wide}EXEC wide -99999999999, 7 EXEC wide 1, 300"),
        &["-99999999999 7", "Msg 8114", "Error converting data type int to tinyint."],
    );
}

#[test]
fn an_insert_with_another_number_of_values_is_refused() {
    let server = Server::with(&[]);
    let values = |which: &str| {
        format!(
            "There are {which} columns in the INSERT statement than values specified in the VALUES clause. The number of values in \
             the VALUES clause must match the number of columns specified in the INSERT statement."
        )
    };
    let items = |which: &str| {
        format!(
            "The select list for the INSERT statement contains {which} items than the insert list. The number of SELECT values must \
             match the number of INSERT columns."
        )
    };
    let table =
        "Column name or number of supplied values does not match table definition.".to_owned();
    let rows = "The number of columns for each row in a table value constructor must be the same."
        .to_owned();
    for (insert, number, text) in [
        ("(a, b) VALUES (1)", "Msg 109", values("more")),
        ("(a, b) VALUES (1, 2, 3)", "Msg 110", values("fewer")),
        ("(a, b) SELECT 1", "Msg 120", items("fewer")),
        ("(a, b) SELECT 1, 2, 3", "Msg 121", items("more")),
        ("(a, b) VALUES (1, 2), (3)", "Msg 10709", rows.clone()),
        ("VALUES (1, 2), (3)", "Msg 10709", rows),
        ("VALUES (1)", "Msg 213", table.clone()),
        ("SELECT 1, 2, 3", "Msg 213", table),
    ] {
        let script = format!(
            "CREATE TABLE #t(a int, b int)\nGO\nBEGIN TRY INSERT #t {insert} END TRY BEGIN CATCH PRINT 'no' END CATCH PRINT 'no'"
        );
        prints(&server, &script, &[number, &text]);
    }
}

#[test]
fn sp_executesql_takes_national_text() {
    let server = Server::with(&[]);
    let refused = |parameter: &str| {
        format!("Procedure expects parameter '@{parameter}' of type 'ntext/nchar/nvarchar'.")
    };
    for (call, number, text) in [
        ("'SELECT 1'", "Msg 214", refused("statement")),
        ("N'SELECT @p', '@p int', 1", "Msg 214", refused("params")),
        ("5", "Msg 214", refused("statement")),
        (
            "N'SELECT @p', N'@p int'",
            "Msg 8178",
            "The parameterized query '(@p int)SELECT @p' expects the parameter '@p', which was not supplied.".to_owned(),
        ),
        ("N'SELECT @p', N'@p int', 'abc'", "Msg 8114", "Error converting data type varchar to int.".to_owned()),
    ] {
        prints(&server, &format!("EXEC sp_executesql {call}"), &[number, &text]);
    }
    prints(
        &server,
        "DECLARE @v varchar(20) = 'SELECT 1', @n nvarchar(20) = N'SELECT 7'
         EXEC sp_executesql @v
         EXEC sp_executesql @n",
        &["Msg 214", &refused("statement"), "7"],
    );
}

#[test]
fn arguments_of_dbcc_and_names_of_options_and_devices() {
    let server = Server::with(&[]);
    for argument in ["@@SPID", "@s"] {
        let shown = lines(
            &server,
            &format!("DECLARE @s int = @@SPID DBCC INPUTBUFFER({argument}) WITH NO_INFOMSGS"),
        );
        assert!(shown[0].starts_with("Language Event|0|DECLARE @s"), "{shown:?}");
    }
    prints(
        &server,
        "EXEC sp_configure 'show advanced options', 1
         RECONFIGURE
         EXEC sp_configure 'max', 5
         EXEC sp_configure 'nothing', 5
         EXEC sp_dropdevice 'x'",
        &[
            "Configuration option 'show advanced options' changed from 0 to 1. Run the RECONFIGURE statement to install.",
            "Msg 15124",
            "The configuration option 'max' is not unique.",
            "Msg 15123",
            "The configuration option 'nothing' does not exist, or it may be an advanced option.",
            "Msg 15012",
            "The device 'x' does not exist. Use sys.backup_devices to show available devices.",
        ],
    );
}
