//! Goal: no statement makes text, time or memory without bound: it ends with a message. Method: operands nested or
//! chained far beyond what anybody writes; a bound that were missing would not let the test end.

use crate::server::Session;
use pellucid_sql::values::moment::Moment;

const TOO_COMPLEX: u32 = 8623;

/// `form` within itself, `{e}` in it being the form again, and at last `start`.
fn nested(form: &str, start: &str, times: usize) -> String {
    (0..times).fold(start.to_owned(), |inner, _| form.replace("{e}", &inner))
}

#[test]
fn operands_are_written_once() {
    for (form, value) in [
        ("NULLIF({e}, 2)", "1"),
        ("CHOOSE({e}, 1, 2)", "1"),
        ("CASE {e} WHEN 1 THEN 1 WHEN 7 THEN 8 ELSE 2 END", "1"),
        ("IIF({e} BETWEEN 0 AND 9, 1, 2)", "1"),
    ] {
        let expression = nested(form, "1", 31);
        let statement = Session::new().statement(&format!("SELECT {expression}")).unwrap();
        assert!(statement.sql.len() < 10_000, "{form}: {} bytes", statement.sql.len());
        assert_eq!(Session::new().value(&expression).unwrap(), value, "{form}");
    }
}

#[test]
fn what_doubles_is_refused() {
    let computed: Vec<String> = (1..32)
        .map(|n| format!("CROSS APPLY (SELECT x{0}.d + x{0}.d AS d) AS x{n}", n - 1))
        .collect();
    let applied = (1..22).rev().fold(String::new(), |inner, n| {
        let before = n - 1;
        format!(
            "CROSS APPLY (SELECT TOP 1 x{before}.d AS e FROM (SELECT 1 AS d) AS x{n} {inner}) AS y{n}"
        )
    });
    for text in [
        format!("SELECT {}", nested("CASE {e} WHEN 1 THEN 1 WHEN 2.5 THEN 2 END", "1", 31)),
        format!("SELECT {}", nested("IIF({e} BETWEEN 0 AND 9.5, 1, 2)", "1", 31)),
        format!("SELECT {}", nested("(SELECT AVG({e}))", "1", 22)),
        format!("SELECT {}", nested("(SELECT TOP 1 {e} AS a ORDER BY a)", "1", 22)),
        format!("SELECT x31.d FROM (SELECT 1 AS d) AS x0 {}", computed.join(" ")),
        format!("SELECT 1 FROM (SELECT 1 AS d) AS x0 {applied}"),
    ] {
        let message = Session::new().statement(&text).unwrap_err();
        let found = (message.number, message.severity);
        assert_eq!(found, (TOO_COMPLEX, 16), "{text}\n{message:?}");
        assert!(message.text.starts_with("The query processor ran out of internal resources"));
    }
}

#[test]
fn chains_of_numbers() {
    let sum = |operands: usize| vec!["1"; operands].join(" + ");
    assert_eq!(Session::new().value(&sum(800)).unwrap(), "800");
    assert_eq!(Session::new().value(&sum(2000)).unwrap_err().number, TOO_COMPLEX);
}

/// Cut to what its type holds, once, however many parts there are; behind a part of `max`, no more.
#[test]
fn chains_of_texts() {
    let long = vec!["'0123456789'"; 3000].join(" + ");
    Session::new().values(&[
        (&format!("LEN({long})"), "8000"),
        (&format!("LEN({long} + N'x')"), "4000"),
        (&format!("LEN({long} + CAST('x' AS varchar(max)) + 'yz')"), "8003"),
        (&format!("RIGHT({long} + CAST('x' AS varchar(max)), 3)"), "89x"),
    ]);
}

#[test]
fn exponents() {
    Session::new().fails(&[
        (
            "SELECT CAST('1e-2147483648' AS money)",
            235,
            "Cannot convert a char value to money. The char value has incorrect syntax.",
        ),
        (
            "SELECT CAST('1e-2147483648' AS numeric(9))",
            8114,
            "Error converting data type varchar to numeric.",
        ),
    ]);
}

#[test]
fn repeated_text() {
    Session::new().values(&[
        ("DATALENGTH(REPLICATE('é', 2147483647))", "8000"),
        ("DATALENGTH(REPLICATE('€', 9000))", "7998"),
        ("LEN(REPLICATE(N'x', 2147483647))", "4000"),
        ("LEN(REPLICATE('', 2147483647))", "0"),
        ("LEN(REPLICATE(CAST('ab' AS varchar(max)), 9000))", "18000"),
    ]);
    Session::new().fails(&[(
        "SELECT REPLICATE(CAST('€' AS varchar(max)), 1000000000)",
        7119,
        "Attempting to grow LOB beyond maximum allowed size of 1000000000 bytes.",
    )]);
}

#[test]
fn long_texts_are_searched_once() {
    let many = |text: &str| format!("REPLICATE(CAST('{text}' AS varchar(max)), 1000000)");
    Session::new().values(&[
        (&format!("IIF({} LIKE '%b', 1, 0)", many(" ")), "0"),
        (&format!("IIF('a' + {} LIKE 'a', 1, 0)", many(" ")), "1"),
        (&format!("PATINDEX('%a%b%', {})", many("a")), "0"),
        (&format!("PATINDEX('%a%b', {} + 'b')", many("a")), "1"),
    ]);
}

#[test]
fn patterns_of_format() {
    let mut session = Session::new();
    session.values(&[("LEN(FORMAT(1, REPLICATE('0', 4000)))", "4000")]);
    for value in ["1", "1.5", "GETDATE()"] {
        for letter in ["0", "y"] {
            let pattern = format!("REPLICATE(CAST(N'{letter}' AS nvarchar(max)), 70000)");
            let message = session.value(&format!("FORMAT({value}, {pattern})")).unwrap_err();
            assert_eq!(message.number, 50_001, "{value} {letter}: {message:?}");
        }
    }
}

#[test]
fn hours_that_no_day_has() {
    assert_eq!(Moment::epoch().at(i64::MAX, 0, 0, 0), None);
    assert_eq!(Moment::epoch().at(0, i64::MIN, i64::MAX, i64::MAX), None);
    assert_eq!(Moment::epoch().at(23, 59, 59, 1).unwrap().clock(7), "23:59:59.0000001");
}
