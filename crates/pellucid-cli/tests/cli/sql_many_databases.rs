//! Goal: SQLite attaches few databases at once, and no statement is told so by its words, nor loses one that it uses.
//!
//! Method: a dozen databases, named by statements, transactions and cursors; more than fit are refused before anything.

use crate::sql_server::{errors, Server};

fn a_dozen() -> Server {
    let server = Server::with(&[]);
    let make = |number: u32| {
        format!(
            "CREATE DATABASE m{number}\nGO\nUSE m{number}\nGO\nCREATE TABLE t(a int); INSERT INTO t VALUES ({number})\nGO\n"
        )
    };
    let script: String = (1..=12).map(make).collect();
    let told = server.run(&script).all();
    assert!(!told.contains("Msg "), "{told}");
    server
}

fn sum_of(numbers: std::ops::RangeInclusive<u32>) -> String {
    let tables: Vec<_> = numbers.map(|number| format!("SELECT a FROM m{number}.dbo.t")).collect();
    format!("SELECT SUM(a) AS a FROM ({}) AS x", tables.join(" UNION ALL "))
}

const MANY: [&str; 2] = ["Msg 50001", "'more than 8 databases in one statement' is not supported."];

fn first(told: &str) -> [String; 2] {
    errors(told).into_iter().next().map(|(number, text)| [number, text]).unwrap_or_default()
}

#[test]
fn eight_in_a_statement_and_no_more() {
    let server = a_dozen();
    assert_eq!(server.rows(&sum_of(1..=8)), ["36"]);
    assert_eq!(server.rows(&format!("{};", sum_of(5..=12))), ["68"]);
    let all: String = (1..=12).map(|number| format!("SELECT a FROM m{number}.dbo.t; ")).collect();
    let told = server.run(&all).all();
    assert!(!told.contains("Msg "), "{told}");
    assert_eq!(first(&server.run(&sum_of(1..=9)).all()), MANY);
    let change = format!("INSERT INTO m1.dbo.t {}", sum_of(2..=9));
    assert_eq!(first(&server.run(&change).all()), MANY);
    assert_eq!(server.rows("SELECT COUNT(*) FROM m1.dbo.t"), ["1"]);
    // The session's own database and the server's views take no place of one that is named.
    let told = server.run(&format!(
        "USE m12; {} CROSS JOIN (SELECT COUNT(*) AS n FROM sys.master_files) AS f",
        sum_of(1..=8).replace(") AS x", ") AS x")
    ));
    assert!(!told.all().contains("Msg "), "{told:?}");
}

#[test]
fn a_transaction_keeps_what_it_has_used() {
    let server = a_dozen();
    let updates: String =
        (1..=9).map(|number| format!("UPDATE m{number}.dbo.t SET a = 0; ")).collect();
    let told = server.run(&format!("SET XACT_ABORT ON; BEGIN TRAN; {updates} COMMIT")).all();
    let wanted = ["Msg 50001", "'more than 8 databases in one transaction' is not supported."];
    assert_eq!(first(&told), wanted, "{told}");
    assert_eq!(server.rows(&sum_of(1..=8)), ["36"]);
    let updates: String =
        (1..=8).map(|number| format!("UPDATE m{number}.dbo.t SET a = 1; ")).collect();
    let told = server.run(&format!("BEGIN TRAN; {updates} COMMIT; {}", sum_of(9..=12))).all();
    assert!(!told.contains("Msg ") && told.lines().any(|line| line == "42"), "{told}");
}

/// Others have taken the place of its database before it is opened.
#[test]
fn a_cursor_finds_its_database_again() {
    let server = a_dozen();
    let others: String =
        (2..=12).map(|number| format!("SELECT a FROM m{number}.dbo.t; ")).collect();
    let script = format!(
        "DECLARE c CURSOR FOR SELECT a + 100 AS a FROM m1.dbo.t; {others} OPEN c; FETCH NEXT FROM c;"
    );
    let told = server.run(&script).all();
    assert!(!told.contains("Msg ") && told.lines().any(|line| line == "101"), "{told}");
}

/// An expression that is asked for again is read again where what it names has changed meanwhile.
#[test]
fn what_is_asked_for_often_is_asked_anew() {
    let server = a_dozen();
    let others: String =
        (2..=12).map(|number| format!("SELECT a FROM m{number}.dbo.t; ")).collect();
    let script = format!(
        "SET NOCOUNT ON; DECLARE @i int = 0;
WHILE @i < 3 BEGIN
  IF @i = 1 CREATE TABLE #t(b int, a int) ELSE CREATE TABLE #t(a int)
  INSERT INTO #t (a) VALUES (@i)
  PRINT CONCAT('t=', (SELECT MAX(a) FROM #t))
  IF EXISTS (SELECT 1 FROM m1.dbo.t WHERE a = 1) PRINT 'there'
  DROP TABLE #t
  {others}
  SET @i += 1
END
DROP DATABASE m1;
IF EXISTS (SELECT 1 FROM m1.dbo.t) PRINT 'still there'"
    );
    let told = server.run(&script).all();
    for line in ["t=0", "t=1", "t=2"] {
        assert!(told.lines().any(|told| told == line), "{line}\n{told}");
    }
    assert_eq!(told.lines().filter(|line| *line == "there").count(), 3, "{told}");
    assert_eq!(first(&told)[0], "Msg 208", "{told}");
}
