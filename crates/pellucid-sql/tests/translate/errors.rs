//! Goal: what is wrong is said in SQL Server's words. Method: numbers and texts typed by hand from Microsoft's list
//! of database engine errors.

use crate::server::Session;
use pellucid_sql::values::types::SqlType;

fn session() -> Session {
    let mut session = Session::new();
    session.table(
        "t",
        "CREATE TABLE t(a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y');",
        &[("a", SqlType::Int), ("b", SqlType::varchar(10))],
    );
    session
}

#[test]
fn of_names() {
    session().fails(&[
        ("SELECT * FROM dbo.nope", 208, "Invalid object name 'dbo.nope'."),
        ("SELECT * FROM nowhere..t", 911, "Database 'nowhere' does not exist."),
        ("SELECT c FROM t", 207, "Invalid column name 'c'."),
        ("SELECT x.a FROM t", 4104, "The multi-part identifier \"x.a\" could not be bound."),
        ("SELECT a FROM t AS x, t AS y", 209, "Ambiguous column name 'a'."),
        ("SELECT nope(1)", 195, "'nope' is not a recognized built-in function name."),
        ("SELECT @v", 137, "Must declare the scalar variable \"@v\"."),
        ("SELECT * FROM @v", 1087, "Must declare the table variable \"@v\"."),
        ("SELECT CAST(1 AS nothing)", 243, "Type nothing is not a defined system type."),
        ("SELECT LEN('a', 'b')", 174, "The len function requires 1 argument(s)."),
        ("SELECT ROUND(1)", 189, "The round function requires 2 to 3 arguments."),
        (
            "SELECT DATEDIFF(fortnight, 0, 1)",
            155,
            "'fortnight' is not a recognized datediff option.",
        ),
    ]);
}

#[test]
fn of_values() {
    session().fails(&[
        (
            "SELECT CONVERT(int, 'abc')",
            245,
            "Conversion failed when converting the varchar value 'abc' to data type int.",
        ),
        (
            "SELECT * FROM t WHERE b = 1",
            245,
            "Conversion failed when converting the varchar value 'x' to data type int.",
        ),
        (
            "SELECT CAST('abc' AS smalldatetime)",
            295,
            "Conversion failed when converting character string to smalldatetime data type.",
        ),
        (
            "SELECT CAST(N'1e5' AS numeric(9))",
            8114,
            "Error converting data type nvarchar to numeric.",
        ),
        (
            "SELECT CAST(922337203685477 AS money) + 1",
            8115,
            "Arithmetic overflow error converting expression to data type money.",
        ),
        (
            "SELECT CAST(214748 AS smallmoney) * 2",
            8115,
            "Arithmetic overflow error converting expression to data type smallmoney.",
        ),
        ("SELECT 1 / 0", 8134, "Divide by zero error encountered."),
        ("SELECT 1.0 / (a - 1) FROM t", 8134, "Divide by zero error encountered."),
        ("SELECT 5 % 0", 8134, "Divide by zero error encountered."),
        (
            "SELECT 2147483647 + 1",
            8115,
            "Arithmetic overflow error converting expression to data type int.",
        ),
        (
            "SELECT SUM(a * 1500000000) FROM t",
            8115,
            "Arithmetic overflow error converting expression to data type int.",
        ),
        (
            "SELECT CAST(123.4 AS numeric(3,1))",
            8115,
            "Arithmetic overflow error converting numeric to data type numeric.",
        ),
        ("SELECT CAST(256 AS tinyint)", 220, "Arithmetic overflow error for data type tinyint, value = 256."),
        (
            "SELECT CAST('9999999999' AS int)",
            248,
            "The conversion of the varchar value '9999999999' overflowed an int column.",
        ),
        (
            "SELECT CAST('x' AS datetime)",
            241,
            "Conversion failed when converting date and/or time from character string.",
        ),
        (
            "SELECT CAST('2014-02-30' AS datetime)",
            242,
            "The conversion of a varchar data type to a datetime data type resulted in an out-of-range value.",
        ),
        (
            "SELECT CAST('x' AS uniqueidentifier)",
            8169,
            "Conversion failed when converting from a character string to uniqueidentifier.",
        ),
        (
            "SELECT CONVERT(varchar(20), GETDATE(), 99)",
            281,
            "99 is not a valid style number when converting from datetime to a character string.",
        ),
        (
            "SELECT CONVERT(datetime, '20141003', 99)",
            281,
            "99 is not a valid style number when converting from varchar to a character string.",
        ),
        (
            "SELECT LEFT('abc', -1)",
            537,
            "Invalid length parameter passed to the LEFT or SUBSTRING function.",
        ),
        ("SELECT RIGHT('abc', -1)", 536, "Invalid length parameter passed to the RIGHT function."),
        (
            "SELECT (SELECT a FROM t)",
            512,
            "Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression.",
        ),
        ("SELECT TOP (-1) a FROM t", 127, "A TOP N or FETCH rowcount value may not be negative."),
        (
            "SELECT DATEADD(year, 9000, GETDATE())",
            517,
            "Adding a value to a 'datetime' column caused an overflow.",
        ),
    ]);
}

#[test]
fn of_types_and_forms() {
    session().fails(&[
        ("SELECT CAST('a' AS xml) + 1", 8117, "Operand data type xml is invalid for add operator."),
        (
            "SELECT CAST(1 AS bit) + CAST(1 AS bit)",
            402,
            "The data types bit and bit are incompatible in the add operator.",
        ),
        (
            "SELECT CAST(1 AS bit) * CAST(1 AS bit)",
            402,
            "The data types bit and bit are incompatible in the multiply operator.",
        ),
        (
            "SELECT CAST(1 AS bit) + '1'",
            402,
            "The data types bit and varchar are incompatible in the add operator.",
        ),
        (
            "SELECT ISDATE(SYSDATETIME())",
            8116,
            "Argument data type datetime2 is invalid for argument 1 of isdate function.",
        ),
        ("SELECT -CAST(1 AS bit)", 8117, "Operand data type bit is invalid for minus operator."),
        ("SELECT 'a' - 'b'", 8117, "Operand data type varchar is invalid for subtract operator."),
        (
            "SELECT CAST(GETDATE() AS date) + 1",
            206,
            "Operand type clash: date is incompatible with int",
        ),
        (
            "SELECT CAST(CAST(GETDATE() AS date) AS int)",
            529,
            "Explicit conversion from data type date to int is not allowed.",
        ),
        (
            "SELECT a, b FROM t GROUP BY a",
            8120,
            "Column 't.b' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.",
        ),
        (
            "SELECT COUNT(*) FROM t HAVING a > 1",
            8121,
            "Column 't.a' is invalid in the HAVING clause because it is not contained in either an aggregate function or the GROUP BY clause.",
        ),
        (
            "SELECT a, (SELECT t.b) FROM t GROUP BY a",
            8120,
            "Column 't.b' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause.",
        ),
        (
            "SELECT a FROM t WHERE COUNT(*) > 1",
            147,
            "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or a select list, and the column being aggregated is an outer reference.",
        ),
        (
            "SELECT a FROM t WHERE ROW_NUMBER() OVER (ORDER BY a) = 1",
            4108,
            "Windowed functions can only appear in the SELECT or ORDER BY clauses.",
        ),
        (
            "SELECT a FROM t UNION SELECT a, b FROM t",
            205,
            "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.",
        ),
        (
            "SELECT a FROM t UNION SELECT b FROM t ORDER BY b",
            104,
            "ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT operator.",
        ),
        (
            "SELECT x.a FROM t AS x UNION SELECT y.a FROM t AS y ORDER BY y.a",
            104,
            "ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT operator.",
        ),
        (
            "SELECT a FROM t UNION SELECT a FROM t ORDER BY a + 1",
            104,
            "ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT operator.",
        ),
        ("SELECT a, a FROM t UNION SELECT 1, 2 ORDER BY a", 209, "Ambiguous column name 'a'."),
        ("SELECT x.a AS m, a FROM t AS x UNION SELECT 1, 2 ORDER BY x.a", 209, "Ambiguous column name 'a'."),
        (
            "SELECT * FROM (SELECT a FROM t ORDER BY a) AS x",
            1033,
            "The ORDER BY clause is invalid in views, inline functions, derived tables, subqueries, and common table expressions, unless TOP, OFFSET or FOR XML is also specified.",
        ),
        (
            "SELECT * FROM (SELECT 1) AS x",
            8155,
            "No column name was specified for column 1 of 'x'.",
        ),
        (
            "SELECT * FROM (SELECT a, a FROM t) AS x",
            8156,
            "The column 'a' was specified multiple times for 'x'.",
        ),
        (
            "SELECT 1 FROM t AS x, t AS x",
            1011,
            "The correlation name 'x' is specified multiple times in a FROM clause.",
        ),
        (
            "SELECT DISTINCT a FROM t ORDER BY b",
            145,
            "ORDER BY items must appear in the select list if SELECT DISTINCT is specified.",
        ),
    ]);
}

#[test]
fn by_name() {
    session().fails(&[
        ("SELECT CHECKSUM(1)", 50_001, "'CHECKSUM' is not supported."),
        ("SELECT a INTO u FROM t", 50_001, "'SELECT INTO' is not supported."),
        ("SELECT CAST(1 AS datetimeoffset)", 50_001, "'datetimeoffset' is not supported."),
        (
            "SELECT CAST('<a xmlns=\"u\"/>' AS xml)",
            50_001,
            "'a namespace in xml' is not supported.",
        ),
        (
            "SELECT CONVERT(datetime, '03/10/2014', 131)",
            50_001,
            "'CONVERT style 131' is not supported.",
        ),
        (
            "SELECT CONVERT(varchar(30), GETDATE(), 130)",
            50_001,
            "'CONVERT style 130' is not supported.",
        ),
        (
            "SELECT (SELECT SUM(t.a) FROM t AS u) FROM t",
            50_001,
            "'SUM of nothing but outer columns' is not supported.",
        ),
    ]);
    // Beside a column of its own, or of none at all, an aggregate is one of its query.
    let rows = session().run("SELECT (SELECT SUM(t.a + u.a) + SUM(1) FROM t AS u) FROM t").unwrap();
    assert_eq!(rows, [["7"], ["9"]]);
    let rows = session().run("SELECT a, (SELECT t.a) FROM t GROUP BY a").unwrap();
    assert_eq!(rows, [["1", "1"], ["2", "2"]]);
}

/// A value may be a statement: what stands behind PASSWORD in it is in no message and in no `Debug` output.
#[test]
fn secrets() {
    let mut session = session();
    let statement = "'CREATE MASTER KEY ENCRYPTION BY PASSWORD = ''hidden'''";
    for (text, number) in [
        ("SELECT CAST({s} AS int)", 245),
        ("SELECT IIF('x' LIKE 'y' ESCAPE {s}, 1, 0)", 506),
        // Cut within the secret.
        ("INSERT INTO t (b) VALUES ('PASSWORD=''hidden''')", 2628),
    ] {
        let message = session.run(&text.replace("{s}", statement)).unwrap_err();
        assert_eq!(message.number, number, "{message:?}");
        assert!(!message.text.contains("='h") && !message.text.contains("hidden"), "{message:?}");
        assert!(message.text.contains("PASSWORD"), "{message:?}");
    }
    let statement = session.statement(&format!("SELECT {statement}")).unwrap();
    assert!(statement.sql.contains("hidden"));
    assert!(!format!("{statement:?}").contains("hidden"));
}
