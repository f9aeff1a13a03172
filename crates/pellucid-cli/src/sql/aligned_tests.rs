//! Goal: results stand as sqlcmd prints them. Method: expected lines are typed by hand, from sqlcmd's own output.

use super::*;
use pellucid_sql::message::Message;
use pellucid_sql::values::convert::decimal_value;
use pellucid_sql::values::decimal::Decimal;

fn layout() -> Layout {
    Layout::default()
}

fn printed(layout: Layout, columns: &[(&str, SqlType)], rows: &[&[Value]]) -> String {
    let (mut form, mut out) = (Aligned::new(layout), String::new());
    let column = |(name, data_type): &(&str, SqlType)| ResultColumn {
        name: (*name).into(),
        data_type: *data_type,
    };
    form.columns(&columns.iter().map(column).collect::<Vec<_>>(), &mut out);
    for row in rows {
        form.row(row, &mut out);
    }
    form.done(Some(rows.len() as u64), &mut out);
    out
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

#[test]
fn numbers_are_on_the_right_and_text_on_the_left() {
    let columns = [("id", SqlType::Int), ("name", SqlType::nvarchar(6)), ("p", SqlType::Money)];
    let price = decimal_value(Decimal::parse("18.0000").unwrap());
    let rows: &[&[Value]] = &[
        &[Value::Integer(1), text("Chai"), price],
        &[Value::Integer(-20), Value::Null, Value::Null],
    ];
    assert_eq!(
        printed(layout(), &columns, rows),
        "id          name   p                    \n\
         ----------- ------ ---------------------\n\
         \x20         1 Chai                 18.0000\n\
         \x20       -20 NULL                    NULL\n\
         \n\
         (2 rows affected)\n"
    );
}

#[test]
fn each_type_has_its_width() {
    for (data_type, width) in [
        (SqlType::SmallInt, 6),
        (SqlType::Int, 11),
        (SqlType::BigInt, 20),
        (SqlType::numeric(20, 0), 22),
        (SqlType::Real, 14),
        (SqlType::Float, 24),
        (SqlType::Date, 16),
        (SqlType::SmallDateTime, 19),
        (SqlType::DateTime, 23),
        (SqlType::UniqueIdentifier, 36),
        (SqlType::varchar(10), 10),
        (SqlType::SYSNAME, 128),
        (SqlType::Binary(32), 66),
        (SqlType::NVARCHAR_MAX, 256),
    ] {
        let shown = printed(layout(), &[("x", data_type)], &[]);
        assert_eq!(shown.lines().nth(1).unwrap(), "-".repeat(width), "{data_type}");
        assert_eq!(shown.lines().next().unwrap().len(), width, "{data_type}");
    }
    let shown =
        printed(layout(), &[("a_name_that_is_longer", SqlType::Int)], &[&[Value::Integer(5)]]);
    assert_eq!(shown.lines().nth(2).unwrap(), "                    5");
}

#[test]
fn dates_are_on_the_right() {
    let columns = [("d", SqlType::Date), ("t", SqlType::DateTime)];
    let rows: &[&[Value]] = &[&[text("2024-01-02"), text("2024-01-02 03:04:05.000")]];
    let shown = printed(layout(), &columns, rows);
    assert_eq!(shown.lines().nth(2).unwrap(), "      2024-01-02 2024-01-02 03:04:05.000");
}

#[test]
fn trimmed_rows_have_no_spaces() {
    let layout = Layout { trim: true, separator: "|".to_owned(), ..layout() };
    let columns = [("id", SqlType::Int), ("", SqlType::NChar(5)), ("name", SqlType::SYSNAME)];
    let rows: &[&[Value]] = &[&[Value::Integer(1), text("ab   "), text("x")]];
    assert_eq!(
        printed(layout, &columns, rows),
        "id| |name\n--|-|----\n1|ab|x\n\n(1 rows affected)\n"
    );
}

#[test]
fn headers_come_never_or_every_so_many_rows() {
    let rows: &[&[Value]] = &[&[Value::Integer(1)], &[Value::Integer(2)], &[Value::Integer(3)]];
    let shown = |headers| {
        let layout = Layout { headers, trim: true, ..layout() };
        printed(layout, &[("a", SqlType::Int)], rows)
    };
    assert_eq!(shown(-1), "1\n2\n3\n\n(3 rows affected)\n");
    assert_eq!(shown(2), "a\n-\n1\n2\n\na\n-\n3\n\n(3 rows affected)\n");
}

#[test]
fn long_values_are_cut_and_long_lines_broken() {
    let long = text(&"é".repeat(300));
    let shown = printed(layout(), &[("a", SqlType::NVARCHAR_MAX)], &[std::slice::from_ref(&long)]);
    assert_eq!(shown.lines().nth(2).unwrap(), "é".repeat(256));
    let whole = Layout { variable: None, ..layout() };
    let shown = printed(whole, &[("a", SqlType::NVARCHAR_MAX)], &[&[long]]);
    assert_eq!(shown.lines().next().unwrap(), "é".repeat(300));
    let cut = Layout { fixed: Some(3), ..layout() };
    let shown = printed(cut, &[("a", SqlType::varchar(10))], &[&[text("abcdef")]]);
    assert_eq!(shown, "a  \n---\nabc\n\n(1 rows affected)\n");
    let narrow = Layout { width: Some(9), ..layout() };
    let shown = printed(narrow, &[("a", SqlType::Int)], &[&[Value::Integer(1)]]);
    assert_eq!(shown, "a        \n  \n---------\n--\n         \n 1\n\n(1 rows a\nffected)\n");
}

#[test]
fn errors_have_a_line_of_their_own() {
    let (mut form, mut out) = (Aligned::new(layout()), String::new());
    let mut report = Report {
        message: Message::new(3013, 16, "BACKUP DATABASE is terminating abnormally."),
        line: 11,
        procedure: None,
        server: "SRV".into(),
    };
    form.message(&report, &mut out);
    report.procedure = Some("sp_helpfile".into());
    form.message(&report, &mut out);
    report.message = Message::new(3211, 10, "5 percent processed.");
    form.message(&report, &mut out);
    assert_eq!(
        out,
        "Msg 3013, Level 16, State 1, Server SRV, Line 11\n\
         BACKUP DATABASE is terminating abnormally.\n\
         Msg 3013, Level 16, State 1, Server SRV, Procedure sp_helpfile, Line 11\n\
         BACKUP DATABASE is terminating abnormally.\n\
         5 percent processed.\n"
    );
}

#[test]
fn a_result_that_breaks_off_ends_with_the_error() {
    let (mut form, mut out) = (Aligned::new(Layout { trim: true, ..layout() }), String::new());
    form.columns(&[ResultColumn { name: "a".into(), data_type: SqlType::Int }], &mut out);
    let report = Report {
        message: Message::new(8134, 16, "Divide by zero error encountered."),
        line: 1,
        procedure: None,
        server: "SRV".into(),
    };
    form.message(&report, &mut out);
    form.end(&mut out);
    assert_eq!(
        out,
        "a\n-\nMsg 8134, Level 16, State 1, Server SRV, Line 1\nDivide by zero error encountered.\n"
    );
}

#[test]
fn rows_stand_in_blocks_or_one_behind_the_other() {
    let columns = [("id", SqlType::Int), ("name", SqlType::nvarchar(9))];
    let rows: &[&[Value]] =
        &[&[Value::Integer(1), text("a\tb")], &[Value::Integer(2), Value::Null]];
    let vertical = Layout { form: RowForm::Vertical, ..layout() };
    let block = "id   1\nname a\tb\n\nid   2\nname NULL\n\n\n(2 rows affected)\n";
    assert_eq!(printed(vertical, &columns, rows), block);
    let ascii = Layout { form: RowForm::Ascii, ..layout() };
    let boxes = "+----+------+\n| id | name |\n+----+------+\n|  1 | a\tb  |\n|  2 | NULL |\n+----+------+\n\n(2 rows affected)\n";
    assert_eq!(printed(ascii, &columns, rows), boxes);
    let stream = Layout { stream: true, ..layout() };
    assert_eq!(printed(stream, &columns, rows), "1a\tb2\n");
}

#[test]
fn control_characters_are_left_out_or_spaces() {
    let columns = [("a", SqlType::nvarchar(9))];
    let shown = |controls| {
        let layout = Layout { controls, trim: true, headers: -1, ..layout() };
        let all = printed(layout, &columns, &[&[text("a\t\nb\u{7}c")]]);
        all.split("\n\n(").next().unwrap_or_default().to_owned()
    };
    assert_eq!(shown(Controls::Kept), "a\t\nb\u{7}c");
    assert_eq!(shown(Controls::Removed), "abc");
    assert_eq!(shown(Controls::Spaces), "a  b c");
    assert_eq!(shown(Controls::OneSpace), "a b c");
}
