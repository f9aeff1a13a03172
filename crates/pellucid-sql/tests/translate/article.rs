//! Goal: the queries of article 0, word for word, give what the article prints. Method: its generator executed on
//! SQLite, and its query of durations on a stand-in of msdb.dbo.backupset with SQL Server's types.

use std::path::Path;

use crate::server::{Session, NVARCHAR_MAX};
use pellucid_sql::translate::{execute_assignments, Selection};
use pellucid_sql::values::convert::Value;
use pellucid_sql::values::types::SqlType;
use pellucid_tsql::ast::StatementKind;
use pellucid_tsql::parse;
use pellucid_tsql_testing::batches;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/articles").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Statements, white space normalised.
fn statements(text: &str) -> Vec<String> {
    let mut all: Vec<String> =
        parse(text).unwrap().iter().map(|one| normal(&text[one.span.clone()])).collect();
    all.sort();
    all
}

#[test]
fn the_generator_makes_the_forty_backups() {
    let script = file("0-generate.sql");
    let batch = batches(&script).remove(0).0;
    let mut session = Session::new();
    session.declare("sql", NVARCHAR_MAX, Value::Text(String::new()));
    let parsed = parse(&batch).unwrap();
    let StatementKind::Select(query) = &parsed[1].kind else { panic!() };
    let Selection::Assign(assignments) = session.translator().select(query).unwrap() else {
        panic!()
    };
    let Session { connection, variables, .. } = &mut session;
    assert_eq!(execute_assignments(|_| connection, &assignments, variables).unwrap(), 40);
    let Value::Text(generated) = session.variables.0["sql"].1.clone() else { panic!() };
    let (made, printed) = (statements(&generated), statements(&file("0-backups.sql")));
    assert_eq!(made.len(), 40);
    // Order is free where the ORDER BY, by r alone, leaves it free; the numbers are not.
    assert_eq!(made, printed);
    let number = |text: &str| text[text.find("test").unwrap() + 4..][..2].to_owned();
    let numbers: Vec<String> =
        parse(&generated).unwrap().iter().map(|one| number(&generated[one.span.clone()])).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] <= pair[1]), "{numbers:?}");
    // And the last statement shows it as XML.
    let StatementKind::Select(query) = &parsed[2].kind else { panic!() };
    let shown = session.translator().query(query).unwrap();
    assert_eq!(shown.columns[0].data_type, SqlType::Xml);
}

#[test]
fn durations_and_sizes_have_sql_servers_types() {
    let mut session = Session::new();
    session.table(
        "backupset",
        "CREATE TABLE backupset(name TEXT, backup_size NUMERIC, compressed_backup_size NUMERIC,
             backup_start_date TEXT, backup_finish_date TEXT);
         INSERT INTO backupset VALUES
             ('test01-NO_ENCRYPTION', 1590689792, '397672448', '2013-11-20 10:00:00', '2013-11-20 10:00:21'),
             ('test01-NO_ENCRYPTION', 1590689792, 397672449, '2013-11-20T10:01:00', '2013-11-20T10:01:20'),
             ('Test01-NO_ENCRYPTION', 1590689793, 397672448, '2013-11-20 10:59:59', '2013-11-20 11:00:19'),
             ('other', 1, 1, '2013-11-20', '2013-11-20');",
        &[
            ("name", SqlType::nvarchar(128)),
            ("backup_size", SqlType::numeric(20, 0)),
            ("compressed_backup_size", SqlType::numeric(20, 0)),
            ("backup_start_date", SqlType::DateTime),
            ("backup_finish_date", SqlType::DateTime),
        ],
    );
    let text = file("0-durations.sql");
    let statement = session.statement(&text).unwrap();
    let columns: Vec<_> = statement
        .columns
        .iter()
        .map(|column| format!("{} {}", column.name, column.data_type))
        .collect();
    // numeric(20,0) / 1024 is numeric(26,6), and that / 1024.0 is numeric(33,12): "Precision, scale, and length".
    assert_eq!(
        columns,
        [
            "name nvarchar(128)",
            "natural_size numeric(33,12)",
            "compressed_size numeric(33,12)",
            "min_duration numeric(13,1)",
            "max_duration numeric(13,1)",
            "avg_duration numeric(38,6)",
        ]
    );
    let rows = session.run(&text).unwrap();
    assert_eq!(rows.len(), 1);
    // 1590689793 / 1024 is 1553408.000976 cut at six places, and / 1024.0 cut at twelve.
    assert_eq!(
        rows[0][1..],
        ["1517.000000953125", "379.250000953125", "20.0", "21.0", "20.333333"]
    );
}
