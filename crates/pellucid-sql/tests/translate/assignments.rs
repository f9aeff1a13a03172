//! Goal: a SELECT that assigns does so row for row, in order. Method: executed, variables read afterwards.

use crate::server::{Session, NVARCHAR_MAX};
use pellucid_sql::values::convert::Value;
use pellucid_sql::values::types::SqlType;

fn session() -> Session {
    let mut session = Session::new();
    session.table(
        "t",
        "CREATE TABLE t(a INTEGER, b TEXT); INSERT INTO t VALUES (3, 'c'), (1, 'a'), (2, 'b');",
        &[("a", SqlType::Int), ("b", SqlType::nvarchar(10))],
    );
    session.declare("s", NVARCHAR_MAX, Value::Text(String::new()));
    session.declare("n", SqlType::Int, Value::Integer(0));
    session.declare("v", SqlType::varchar(2), Value::Null);
    session
}

fn text(session: &Session, name: &str) -> Value {
    session.variables.0[name].1.clone()
}

#[test]
fn in_the_order_of_order_by() {
    let mut session = session();
    session.run("SELECT @s += b FROM t ORDER BY a").unwrap();
    assert_eq!(text(&session, "s"), Value::Text("abc".to_owned()));
    session.run("SELECT @s = @s + N',' + b FROM t WHERE a > 1 ORDER BY a DESC").unwrap();
    assert_eq!(text(&session, "s"), Value::Text("abc,c,b".to_owned()));
}

#[test]
fn the_last_row_stays_and_no_row_changes_nothing() {
    let mut session = session();
    assert_eq!(session.run("SELECT @n = a FROM t ORDER BY a").unwrap(), [["3"]]);
    assert_eq!(text(&session, "n"), Value::Integer(3));
    assert_eq!(session.run("SELECT @n = a FROM t WHERE a > 9").unwrap(), [["0"]]);
    assert_eq!(text(&session, "n"), Value::Integer(3));
    session.run("SELECT @n = COUNT(*) + @n FROM t").unwrap();
    assert_eq!(text(&session, "n"), Value::Integer(6));
}

#[test]
fn one_after_the_other_and_as_long_as_declared() {
    let mut session = session();
    session.run("SELECT @n = 5, @s = @n + 1, @v = 'abc'").unwrap();
    assert_eq!(text(&session, "n"), Value::Integer(5));
    assert_eq!(text(&session, "s"), Value::Text("6".to_owned()));
    assert_eq!(text(&session, "v"), Value::Text("ab".to_owned()));
    session.run("SELECT @n = CASE WHEN @n > a THEN @n ELSE a END FROM t").unwrap();
    assert_eq!(text(&session, "n"), Value::Integer(5));
    session.run("SELECT @s = NULL; ").unwrap();
    session.run("SELECT @s = COALESCE(@s + ',', '') + b FROM t ORDER BY a").unwrap();
    assert_eq!(text(&session, "s"), Value::Text("a,b,c".to_owned()));
}

#[test]
fn what_cannot_be_split_is_refused() {
    session().fails(&[
        (
            "SELECT @n = (SELECT MAX(a) FROM t WHERE a > @n) FROM t",
            50_001,
            "'a variable in a sub-query that the same SELECT assigns' is not supported.",
        ),
        ("SELECT @x = 1", 137, "Must declare the scalar variable \"@x\"."),
    ]);
}
