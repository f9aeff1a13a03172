//! Goal: no argument makes a function panic or hang; whatever it does not take is a message. Method: every function
//! with every combination of odd arguments, executed.

use crate::server::Session;
use pellucid_sql::message::OF_SQLITE;

const ODD: &[&str] = &[
    "NULL",
    "''",
    "'x'",
    "N'é%[_'",
    "-1",
    "0",
    "2147483647",
    "-9223372036854775808",
    "99999999999999999999999999999999999999",
    "1e308",
    "$-0.5",
    "'2014-02-30'",
    "CAST('9999-12-31 23:59:59.9999999' AS datetime2)",
    "CAST('0001-01-01' AS date)",
    "0x",
    "0xFFFFFFFFFFFFFFFFFF",
];

/// Few enough for three arguments at once.
const ODDER: &[&str] = &["NULL", "''", "N'é%[_'", "-1", "2147483647", "1e308", "GETDATE()", "0xFF"];

/// Executes, and says whether there was a value.
fn value(session: &mut Session, expression: &str) -> bool {
    match session.value(expression) {
        Ok(_) => true,
        Err(message) => {
            assert!(!message.text.contains("panic"), "{expression}\n{message:?}");
            let too_big = message.text.contains("too big");
            assert!(message.number != OF_SQLITE || too_big, "{expression}\n{message:?}");
            false
        }
    }
}

fn all(forms: &[&str], operands: &[&str]) {
    let operands: Vec<String> = operands.iter().map(|one| one.replace("$-0.5", "-$0.5")).collect();
    let mut session = Session::new();
    let mut values = 0;
    for form in forms {
        let count = ["{a}", "{b}", "{c}"].iter().filter(|mark| form.contains(**mark)).count();
        let mut total = operands.len().pow(count as u32);
        while total > 0 {
            total -= 1;
            let pick = |place: u32| &operands[total / operands.len().pow(place) % operands.len()];
            let expression =
                form.replace("{a}", pick(0)).replace("{b}", pick(1)).replace("{c}", pick(2));
            values += u32::from(value(&mut session, &expression));
        }
    }
    assert!(values > 100, "{values}");
}

#[test]
fn one_argument() {
    let mut forms: Vec<String> = [
        "ABS",
        "ACOS",
        "ASCII",
        "ASIN",
        "CEILING",
        "CHAR",
        "DATALENGTH",
        "DAY",
        "EOMONTH",
        "EXP",
        "FLOOR",
        "ISDATE",
        "ISNUMERIC",
        "LEN",
        "LOG",
        "LOG10",
        "LOWER",
        "LTRIM",
        "MONTH",
        "NCHAR",
        "QUOTENAME",
        "RADIANS",
        "REVERSE",
        "RTRIM",
        "SIGN",
        "SPACE",
        "SQRT",
        "SQUARE",
        "STR",
        "TAN",
        "TRIM",
        "UNICODE",
        "UPPER",
        "YEAR",
        "SUM",
        "AVG",
        "MIN",
        "COUNT",
        "-",
        "~",
    ]
    .iter()
    .map(|name| format!("{name}({{a}})"))
    .collect();
    for data_type in [
        "bit",
        "tinyint",
        "int",
        "bigint",
        "money",
        "smallmoney",
        "numeric(38, 10)",
        "numeric(3, 3)",
        "real",
        "float",
        "date",
        "time(3)",
        "smalldatetime",
        "datetime",
        "datetime2(0)",
        "char(3)",
        "varchar(2)",
        "nvarchar(max)",
        "binary(3)",
        "varbinary(max)",
        "uniqueidentifier",
        "xml",
        "sql_variant",
    ] {
        forms.push(format!("CAST({{a}} AS {data_type})"));
        forms.push(format!("TRY_CAST({{a}} AS {data_type})"));
    }
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    all(&forms, ODD);
}

#[test]
fn two_arguments() {
    all(
        &[
            "{a} + {b}",
            "{a} - {b}",
            "{a} * {b}",
            "{a} / {b}",
            "{a} % {b}",
            "{a} ^ {b}",
            "IIF({a} < {b}, 1, 0)",
            "IIF({a} LIKE {b}, 1, 0)",
            "IIF({a} = {b}, 1, 0)",
            "LEFT({a}, {b})",
            "RIGHT({a}, {b})",
            "CHARINDEX({a}, {b})",
            "PATINDEX({a}, {b})",
            "POWER({a}, {b})",
            "ROUND({a}, {b})",
            "ATN2({a}, {b})",
            "LOG({a}, {b})",
            "EOMONTH({a}, {b})",
            "FORMAT({a}, {b})",
            "FORMAT({a}, 'yyyy.FFF ddd')",
            "FORMAT({a}, '#,##0.0#;(0,);x')",
            "FORMAT({a}, 'N30')",
            "HASHBYTES({a}, {b})",
            "PARSENAME({a}, {b})",
            "QUOTENAME({a}, {b})",
            "ISNULL({a}, {b})",
            "NULLIF({a}, {b})",
            "COALESCE({a}, {b})",
            "CONCAT({a}, {b})",
            "DATEDIFF(ns, {a}, {b})",
            "DATEDIFF(week, {a}, {b})",
            "DATEADD(year, {a}, {b})",
            "DATEADD(ns, {a}, {b})",
            "DATEADD(month, {a}, {b})",
            "DATEADD(hour, {a}, {b})",
            "DATENAME(week, {a}) + DATENAME(iso_week, {b})",
            "CONVERT(varchar(30), {a}, {b})",
            "CONVERT(datetime, {a}, {b})",
            "STR({a}, {b})",
            "CONVERT(varbinary(4), {a}, {b})",
        ],
        ODD,
    );
}

#[test]
fn three_arguments() {
    all(
        &[
            "SUBSTRING({a}, {b}, {c})",
            "REPLACE({a}, {b}, {c})",
            "STUFF({a}, {b}, {c}, 'x')",
            "STR({a}, {b}, {c})",
            "ROUND({a}, {b}, {c})",
            "CHARINDEX({a}, {b}, {c})",
            "TRANSLATE({a}, {b}, {c})",
            "DATEFROMPARTS({a}, {b}, {c})",
            "CONCAT_WS({a}, {b}, {c})",
            "IIF({a} LIKE {b} ESCAPE {c}, 1, 0)",
            "IIF({a} BETWEEN {b} AND {c}, 1, 0)",
            "CASE {a} WHEN {b} THEN 1 ELSE {c} END",
            "CHOOSE({a}, {b}, {c})",
        ],
        ODDER,
    );
}
