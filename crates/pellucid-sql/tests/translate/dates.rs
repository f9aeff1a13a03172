//! Goal: dates are read, computed and printed as SQL Server does. Method: expected values typed by hand from
//! Microsoft's pages "CAST and CONVERT", "DATEDIFF", "DATEADD", "DATEPART", "DATENAME", "EOMONTH", "FORMAT"; the clock
//! stands at 2014-10-03 14:05:09.1234567, a Friday.

use crate::server::Session;

/// "CAST and CONVERT": the table of date and time styles.
#[test]
fn styles() {
    let mut session = Session::new();
    for (style, expected) in [
        ("0", "Oct  3 2014  2:05PM"),
        ("1", "10/03/14"),
        ("101", "10/03/2014"),
        ("2", "14.10.03"),
        ("102", "2014.10.03"),
        ("3", "03/10/14"),
        ("103", "03/10/2014"),
        ("4", "03.10.14"),
        ("104", "03.10.2014"),
        ("5", "03-10-14"),
        ("105", "03-10-2014"),
        ("6", "03 Oct 14"),
        ("106", "03 Oct 2014"),
        ("7", "Oct 03, 14"),
        ("107", "Oct 03, 2014"),
        ("8", "14:05:09"),
        ("108", "14:05:09"),
        ("109", "Oct  3 2014  2:05:09:123PM"),
        ("10", "10-03-14"),
        ("110", "10-03-2014"),
        ("11", "14/10/03"),
        ("111", "2014/10/03"),
        ("12", "141003"),
        ("112", "20141003"),
        ("113", "03 Oct 2014 14:05:09:123"),
        ("114", "14:05:09:123"),
        ("20", "2014-10-03 14:05:09"),
        ("120", "2014-10-03 14:05:09"),
        ("21", "2014-10-03 14:05:09.123"),
        ("121", "2014-10-03 14:05:09.123"),
        ("23", "2014-10-03"),
        ("126", "2014-10-03T14:05:09.123"),
        ("127", "2014-10-03T14:05:09.123"),
    ] {
        let shown = session.value(&format!("CONVERT(varchar(40), GETDATE(), {style})")).unwrap();
        assert_eq!(shown, expected, "style {style}");
    }
    session.values(&[
        ("CONVERT(varchar(10), GETDATE(), 120)", "2014-10-03"),
        ("CONVERT(varchar(40), SYSDATETIME())", "2014-10-03 14:05:09.1234567"),
        ("CONVERT(varchar(40), CAST(GETDATE() AS date))", "2014-10-03"),
        ("CONVERT(varchar(40), CAST(GETDATE() AS date), 101)", "10/03/2014"),
        ("CONVERT(varchar(40), CAST(GETDATE() AS time(0)))", "14:05:09"),
        ("CONVERT(varchar(40), CAST(GETDATE() AS smalldatetime), 120)", "2014-10-03 14:05:00"),
        ("GETUTCDATE()", "2014-10-03 12:05:09.123"),
    ]);
}

/// "datetime": string literal formats and rounding to 1/300 of a second; "CAST and CONVERT": styles as input.
#[test]
fn reading() {
    Session::new().values(&[
        ("CAST('20141003' AS datetime)", "2014-10-03 00:00:00.000"),
        ("CAST('2014-10-03T14:05:09' AS datetime)", "2014-10-03 14:05:09.000"),
        ("CAST('10/3/2014 2:05 PM' AS datetime)", "2014-10-03 14:05:00.000"),
        ("CAST('Oct 3 2014 2:05PM' AS datetime)", "2014-10-03 14:05:00.000"),
        ("CAST('3 October 2014' AS date)", "2014-10-03"),
        ("CONVERT(date, '03/10/2014', 103)", "2014-10-03"),
        ("CONVERT(date, '03.10.2014', 104)", "2014-10-03"),
        ("CONVERT(date, '10/03/49', 1)", "2049-10-03"),
        ("CONVERT(date, '10/03/50', 1)", "1950-10-03"),
        ("CAST('12:30' AS datetime)", "1900-01-01 12:30:00.000"),
        ("CAST('12AM' AS time(0))", "00:00:00"),
        ("CAST('' AS datetime)", "1900-01-01 00:00:00.000"),
        ("CAST('1998-01-01 23:59:59.999' AS datetime)", "1998-01-02 00:00:00.000"),
        ("CAST('1998-01-01 23:59:59.995' AS datetime)", "1998-01-01 23:59:59.997"),
        ("CAST('1998-01-01 23:59:59.992' AS datetime)", "1998-01-01 23:59:59.993"),
        ("CAST('1998-01-01 23:59:59.990' AS datetime)", "1998-01-01 23:59:59.990"),
        ("CAST(0 AS datetime)", "1900-01-01 00:00:00.000"),
        ("CAST(CAST('1900-01-02 12:00' AS datetime) AS float)", "1.5"),
        ("CAST('2014-10-03 14:05:09.1234567' AS datetime2(3))", "2014-10-03 14:05:09.123"),
        ("ISDATE('2014-10-03')", "1"),
        ("ISDATE('2014-02-30')", "0"),
        ("ISDATE('x')", "0"),
        // What is no text becomes one first.
        ("ISDATE(20240102)", "1"),
        ("ISDATE(20240230)", "0"),
        ("ISDATE(2024)", "1"),
        ("ISDATE(1)", "0"),
        ("ISDATE(1.5)", "0"),
        ("ISDATE(GETDATE())", "1"),
        ("ISDATE(NULL)", "0"),
    ]);
}

/// "datetime": a datetime counts 1/300 of a second, of which its text shows three digits.
#[test]
fn datetimes_are_counted_in_three_hundredths() {
    let tick = "CAST('1900-01-01 00:00:00.003' AS datetime)";
    assert_eq!(
        Session::new().value(&format!("CAST({tick} AS float)")).unwrap(),
        (1.0 / 25_920_000.0).to_string()
    );
    Session::new().values(&[
        (&format!("CAST({tick} AS numeric(20, 12))"), "0.000000038580"),
        (&format!("CAST({tick} AS datetime2(7))"), "1900-01-01 00:00:00.0033333"),
        (&format!("CAST(CAST({tick} AS float) AS datetime)"), "1900-01-01 00:00:00.003"),
        (&format!("{tick} + {tick}"), "1900-01-01 00:00:00.007"),
        ("CAST(CAST('1900-01-02 12:00' AS smalldatetime) AS float)", "1.5"),
        ("CAST('2000-05-08 12:35:29.998' AS smalldatetime)", "2000-05-08 12:35:00"),
        ("CAST('2000-05-08 12:35:29.999' AS smalldatetime)", "2000-05-08 12:36:00"),
        ("CAST('2000-05-08 23:59:29.999' AS smalldatetime)", "2000-05-09 00:00:00"),
    ]);
}

/// "DATEDIFF": boundaries, the page's example of one tick between two years.
#[test]
fn differences() {
    let mut session = Session::new();
    for part in [
        "year",
        "quarter",
        "month",
        "dayofyear",
        "day",
        "week",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
    ] {
        let difference = format!(
            "DATEDIFF({part}, CAST('2005-12-31 23:59:59.9999999' AS datetime2), \
             CAST('2006-01-01 00:00:00.0000000' AS datetime2))"
        );
        assert_eq!(session.value(&difference).unwrap(), "1", "{part}");
    }
    session.values(&[
        ("DATEDIFF(yy, '2013-12-31', '2014-01-01')", "1"),
        ("DATEDIFF(ss, '2014-01-01', '2014-01-02')", "86400"),
        ("DATEDIFF(dd, '2014-01-02', '2014-01-01')", "-1"),
        ("DATEDIFF(ns, CAST('00:00' AS time), CAST('00:00:00.0000001' AS time))", "100"),
        ("DATEDIFF_BIG(ms, '1900-01-01', '2014-01-01')", "3597523200000"),
        ("DATEDIFF(mi, NULL, GETDATE())", "NULL"),
    ]);
}

/// "DATEADD": the page's examples; "EOMONTH", "DATEFROMPARTS".
#[test]
fn additions() {
    Session::new().values(&[
        ("DATEADD(month, 1, CAST('20060830' AS date))", "2006-09-30"),
        ("DATEADD(month, 1, CAST('2006-08-31' AS date))", "2006-09-30"),
        ("DATEADD(year, 1, CAST('2012-02-29' AS date))", "2013-02-28"),
        ("DATEADD(quarter, -1, CAST('2014-01-31' AS date))", "2013-10-31"),
        ("DATEADD(week, 1, CAST('2014-12-29' AS date))", "2015-01-05"),
        ("DATEADD(day, -3, '2014-10-03')", "2014-09-30 00:00:00.000"),
        ("DATEADD(hour, 25, CAST('2014-10-03' AS datetime))", "2014-10-04 01:00:00.000"),
        ("DATEADD(ms, 2, CAST('2014-10-03' AS datetime))", "2014-10-03 00:00:00.003"),
        ("DATEADD(mi, -5, GETDATE())", "2014-10-03 14:00:09.123"),
        (
            "DATEADD(ns, 150, CAST('2007-01-01 13:10:10.1111111' AS datetime2))",
            "2007-01-01 13:10:10.1111113",
        ),
        ("EOMONTH('2012-02-01')", "2012-02-29"),
        ("EOMONTH('2014-10-03', -8)", "2014-02-28"),
        ("DATEFROMPARTS(2010, 12, 31)", "2010-12-31"),
        ("DATETIMEFROMPARTS(2010, 12, 31, 23, 59, 59, 0)", "2010-12-31 23:59:59.000"),
    ]);
}

/// "DATEPART", "DATENAME": the pages' example of 2007-10-30 12:15:32.1234567.
#[test]
fn parts() {
    let mut session = Session::new();
    for (part, number, name) in [
        ("year", "2007", "2007"),
        ("quarter", "4", "4"),
        ("month", "10", "October"),
        ("dayofyear", "303", "303"),
        ("day", "30", "30"),
        ("week", "44", "44"),
        ("weekday", "3", "Tuesday"),
        ("hour", "12", "12"),
        ("minute", "15", "15"),
        ("second", "32", "32"),
        ("millisecond", "123", "123"),
        ("microsecond", "123456", "123456"),
        ("nanosecond", "123456700", "123456700"),
        ("iso_week", "44", "44"),
    ] {
        let of = "CAST('2007-10-30 12:15:32.1234567' AS datetime2)";
        assert_eq!(session.value(&format!("DATEPART({part}, {of})")).unwrap(), number, "{part}");
        assert_eq!(session.value(&format!("DATENAME({part}, {of})")).unwrap(), name, "{part}");
    }
    session.values(&[
        ("YEAR('2014-10-03')", "2014"),
        ("MONTH(GETDATE())", "10"),
        ("DAY(0)", "1"),
        ("DATEPART(week, CAST('2014-01-01' AS date))", "1"),
        ("DATEPART(week, CAST('2014-01-05' AS date))", "2"),
        ("DATEPART(iso_week, CAST('2012-01-01' AS date))", "52"),
    ]);
}

/// "FORMAT", .NET's "Standard and custom date and time format strings", culture en-US.
#[test]
fn formats() {
    Session::new().values(&[
        ("FORMAT(GETDATE(), 'd')", "10/3/2014"),
        ("FORMAT(GETDATE(), 'D')", "Friday, October 3, 2014"),
        ("FORMAT(GETDATE(), 'yyyy-MM-dd HH:mm:ss')", "2014-10-03 14:05:09"),
        ("FORMAT(GETDATE(), 'yyyyMMdd_HHmmss')", "20141003_140509"),
        ("FORMAT(GETDATE(), 'dd/MM/yyyy', 'en-US')", "03/10/2014"),
        ("FORMAT(GETDATE(), 'MMM d, yy h:mm tt')", "Oct 3, 14 2:05 PM"),
        ("FORMAT(GETDATE(), 'HH:mm:ss.fff')", "14:05:09.123"),
        ("FORMAT(GETDATE(), '''day'' dddd')", "day Friday"),
        ("FORMAT(GETDATE(), 'q')", "NULL"),
    ]);
}
