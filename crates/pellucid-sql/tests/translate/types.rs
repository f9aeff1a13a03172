//! Goal: expressions have SQL Server's types. Method: types and values typed by hand from Microsoft's pages, named
//! at each table.

use crate::server::Session;

fn types(table: &[(&str, &str)]) {
    let session = Session::new();
    for (expression, expected) in table {
        assert_eq!(session.type_of(expression), *expected, "{expression}");
    }
}

/// "Constants (Transact-SQL)", "int, bigint, smallint, and tinyint".
#[test]
fn constants() {
    types(&[
        ("1", "int"),
        ("2147483648", "numeric(10,0)"),
        ("1.50", "numeric(3,2)"),
        ("0.5", "numeric(1,1)"),
        ("1e0", "float"),
        ("1e", "float"),
        ("1.e", "float"),
        ("$1", "money"),
        ("'abc'", "varchar(3)"),
        ("N'abc'", "nvarchar(3)"),
        ("''", "varchar(1)"),
        ("0xAB", "varbinary(1)"),
        ("GETDATE()", "datetime"),
        ("SYSDATETIME()", "datetime2(7)"),
    ]);
}

/// "Precision, scale, and length": table of operations.
#[test]
fn arithmetic_of_decimals() {
    let of = |a: &str, operator: &str, b: &str| {
        format!("CAST(1 AS decimal({a})) {operator} CAST(1 AS decimal({b}))")
    };
    for (a, operator, b, expected) in [
        // max(s1, s2) + max(p1-s1, p2-s2) + 1
        ("10,2", "+", "5,3", "numeric(12,3)"),
        ("38,10", "-", "38,10", "numeric(38,10)"),
        // p1 + p2 + 1, s1 + s2
        ("10,2", "*", "5,3", "numeric(16,5)"),
        // the page's own example: decimal(38,20) * decimal(38,20) is decimal(38,6)
        ("38,20", "*", "38,20", "numeric(38,6)"),
        // the page's own example: decimal(30,10) * decimal(30,10)
        ("30,10", "*", "30,10", "numeric(38,6)"),
        // p1 - s1 + s2 + max(6, s1 + p2 + 1)
        ("10,2", "/", "5,3", "numeric(19,8)"),
        ("20,0", "/", "4,0", "numeric(26,6)"),
        // min(p1-s1, p2-s2) + max(s1, s2)
        ("10,2", "%", "5,3", "numeric(5,3)"),
    ] {
        assert_eq!(Session::new().type_of(&of(a, operator, b)), expected, "{a} {operator} {b}");
    }
}

/// "Data type precedence", "+ (Addition)", "/ (Division)".
#[test]
fn what_wins() {
    types(&[
        ("CAST(1 AS tinyint) + CAST(1 AS smallint)", "smallint"),
        ("1 + CAST(1 AS bigint)", "bigint"),
        ("1 + 1.0", "numeric(3,1)"),
        ("1 + 1e0", "float"),
        ("1 + '1'", "int"),
        ("CAST(1 AS bit) + NULL", "int"),
        ("CAST(1 AS bit) + 1", "int"),
        ("1.0 * DATEDIFF(SECOND, GETDATE(), GETDATE())", "numeric(13,1)"),
        ("'a' + N'b'", "nvarchar(2)"),
        ("CAST('a' AS char(5)) + 'b'", "varchar(6)"),
        ("CAST('a' AS varchar(8000)) + 'b'", "varchar(8000)"),
        ("CAST('a' AS varchar(max)) + 'b'", "varchar(max)"),
        ("GETDATE() + 1", "datetime"),
        ("ISNULL(CAST(NULL AS varchar(3)), 'abcdef')", "varchar(3)"),
        ("COALESCE(CAST(NULL AS varchar(3)), 'abcdef')", "varchar(6)"),
        ("NULLIF(1, 2.5)", "int"),
        ("COUNT(*)", "int"),
        ("COUNT_BIG(*)", "bigint"),
        ("SUM(CAST(1 AS tinyint))", "int"),
        ("SUM(CAST(1 AS decimal(5,2)))", "numeric(38,2)"),
        ("AVG(CAST(1 AS decimal(5,2)))", "numeric(38,6)"),
        ("AVG(1)", "int"),
        ("LEN('x')", "int"),
        ("-CAST(1 AS tinyint)", "smallint"),
        ("POWER(1.01, 2)", "numeric(38,2)"),
        ("SIGN(0.5)", "numeric(38,1)"),
        ("POWER(2, 2)", "int"),
        ("DB_NAME()", "nvarchar(128)"),
        ("@@ROWCOUNT", "int"),
    ]);
}

/// "Data type precedence": numeric, money, smallmoney, bigint, int.
#[test]
fn money_wins_over_whole_numbers_and_numeric_over_money() {
    types(&[
        ("$1 / 3", "money"),
        ("3 * CAST(1 AS smallmoney)", "smallmoney"),
        ("CAST(1 AS smallmoney) + $1", "money"),
        ("$1 * 1.5", "numeric(22,5)"),
        ("$1 + 10000000000", "numeric(20,4)"),
        ("SUM(CAST(1 AS smallmoney)) / 3", "money"),
        ("CASE WHEN 1 = 1 THEN 1 ELSE $2 END", "money"),
        ("COALESCE(CAST(NULL AS smallmoney), 2)", "smallmoney"),
        ("CASE WHEN 1 = 1 THEN 1 WHEN 2 = 2 THEN 2.5 ELSE $2 END", "numeric(19,4)"),
    ]);
    Session::new().values(&[
        ("CAST(100 AS money) / 3", "33.3333"),
        ("CAST(100 AS money) / 3 * 3", "99.9999"),
        ("CAST(CAST(100 AS money) / 7 AS varchar(20))", "14.29"),
        ("CONVERT(varchar(20), CAST(10 AS money) / 4)", "2.50"),
        ("CASE WHEN $2 = 2 THEN 'same' END", "same"),
    ]);
}

/// Values: division cuts off, multiplication and CAST round, integers stay integers.
#[test]
fn computed() {
    Session::new().values(&[
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 4", "-3"),
        ("7.0 / 2", "3.500000"),
        ("2.0 / 3", "0.666666"),
        ("1 + 2 * 3 - 4", "3"),
        ("1.5 + 1", "2.5"),
        ("10 - 2.50", "7.50"),
        ("'1' + 1", "2"),
        ("'a' + 'b' + NULL", "NULL"),
        ("'a' + 'b' + 'c'", "abc"),
        ("5 & 3", "1"),
        ("5 | 3", "7"),
        ("5 ^ 3", "6"),
        ("~5", "-6"),
        // Without digits an exponent is 0.
        ("1.e", "1"),
        ("2.5E", "2.5"),
        ("1e+1", "10"),
        ("1e + @@ROWCOUNT * 0", "1"),
        ("-(-2147483647)", "2147483647"),
        ("CAST(1.005 AS decimal(5,2))", "1.01"),
        ("CAST(-1.005 AS decimal(5,2))", "-1.01"),
        ("CAST(1.999 AS int)", "1"),
        ("CAST($1.9999 AS int)", "2"),
        ("CAST(0.1 AS float) + CAST(0.2 AS float)", "0.30000000000000004"),
        ("99999999999999999999999999999999999999 - 1", "99999999999999999999999999999999999998"),
        ("$10.50 * 2", "21.0000"),
        ("CONVERT(varchar(30), GETDATE() - 1, 120)", "2014-10-02 14:05:09"),
        ("0x0102 + 0x03", "0x010203"),
    ]);
}
