//! Goal: whatever query there is, it translates or fails with a message, and SQLite takes what translates. Method:
//! trees of `pellucid-tsql-testing` from seeded random bytes, over a catalog that has every name.

use std::collections::HashMap;

use pellucid_sql::message::{Message, Result};
use pellucid_sql::translate::{
    Catalog, OutputChange, Selection, Table, TableColumn, Translator, VariableTypes,
};
use pellucid_sql::values::types::SqlType;
use pellucid_tsql::ast::{Expression, ObjectName, OrderItem, QueryBody, SelectItem, StatementKind};
use pellucid_tsql::parse;

use pellucid_tsql_testing::{Choices, Random};

use crate::server::Session;

const SEED: u64 = 0x5eed_0017;

/// One table under every name.
struct Everything;

const COLUMNS: &[(&str, SqlType)] = &[
    ("a", SqlType::Int),
    ("db", SqlType::SYSNAME),
    ("TestCert", SqlType::numeric(20, 0)),
    ("a b", SqlType::DateTime),
    ("a]b", SqlType::Float),
    ("a\"b", SqlType::Bit),
    ("it's", SqlType::UniqueIdentifier),
    ("select", SqlType::VARCHAR_MAX),
    ("name", SqlType::nvarchar(20)),
    ("N", SqlType::Money),
    ("größe", SqlType::VarBinary(pellucid_sql::values::types::Length::Of(20))),
];

impl Catalog for Everything {
    fn table(&self, _: &ObjectName) -> Result<Option<Table>> {
        let columns = COLUMNS.iter().map(|(name, of)| TableColumn::new(name, *of)).collect();
        Ok(Some(Table { sqlite: "everything".to_owned(), columns, row: Some("rowid".to_owned()) }))
    }

    fn table_variable(&self, _: &str) -> Option<Table> {
        self.table(&pellucid_tsql::ast::Name::new("x")?.into()).ok().flatten()
    }
}

impl VariableTypes for Everything {
    fn variable_type(&self, name: &str) -> Option<SqlType> {
        Some(match name {
            "v" => SqlType::Int,
            "sql" => SqlType::NVARCHAR_MAX,
            _ => SqlType::numeric(10, 2),
        })
    }
}

fn connection() -> rusqlite::Connection {
    let quoted: Vec<String> =
        COLUMNS.iter().map(|(name, _)| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    let connection = Session::new().connection;
    connection.execute_batch(&format!("CREATE TABLE everything({})", quoted.join(", "))).unwrap();
    connection
        .execute_batch(
            "INSERT INTO everything VALUES
                 (1, 'x', 12.5, '2014-10-03 14:05:09.123', 0.5, 1, '0e984725-c51c-4bf4-9960-e1c80e27aba0', '12', 'n', 1.25, x'00ff'),
                 (0, '', '-99999999999999999999', 1412345109, -1e300, 0, NULL, '', 'é', -1, x''),
                 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        )
        .unwrap();
    connection
}

/// Limits of SQLite's that a statement may meet; everything else it has to take.
fn is_limit(error: &str) -> bool {
    ["Expression tree is too large", "parser stack overflow", "too many terms", "at most 64 tables"]
        .iter()
        .any(|limit| error.contains(limit))
}

const STAGE: &str = "temp.\"@output\"";

/// The statements of a change with OUTPUT, the stage made anew before them.
fn staged(change: OutputChange) -> Vec<String> {
    let mut all = vec![format!("DROP TABLE IF EXISTS {STAGE}")];
    all.extend(change.stage.sql.split("; ").map(str::to_owned));
    all.extend(change.fill.into_iter().chain(change.keep).chain([change.rows]).map(|one| one.sql));
    all.push(change.change.sql);
    all
}

/// SQLite takes it, and a query gives rows or a message of SQL Server's; variables are NULL.
fn accepted(connection: &rusqlite::Connection, sql: &str) {
    let mut statement = match connection.prepare(sql) {
        Ok(statement) => statement,
        Err(error) => {
            assert!(is_limit(&error.to_string()), "{sql}\n{error}");
            return;
        }
    };
    if sql.ends_with(" WHERE 0") || sql.contains(" TABLE ") {
        statement.raw_execute().unwrap();
        return;
    }
    if !statement.readonly() {
        return;
    }
    let mut rows = statement.raw_query();
    for _ in 0..20 {
        match rows.next() {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(error) => {
                let message = Message::from(error);
                assert!(message.number < 50_002, "{sql}\n{message:?}");
                return;
            }
        }
    }
}

#[test]
fn every_query_translates_or_says_why_not() {
    eprintln!("seed {SEED:#x}");
    let connection = connection();
    let translator = Translator::new(&Everything, &Everything);
    let mut random = Random(SEED);
    let mut numbers: HashMap<u32, u64> = HashMap::new();
    for _ in 0..20_000 {
        for statement in Choices::new(&random.bytes(300)).batch() {
            let translated = match &statement.kind {
                StatementKind::Select(query) => match translator.select(query) {
                    Ok(Selection::Rows(statement)) => Ok(vec![statement.sql]),
                    Ok(Selection::Assign(all)) => {
                        let steps = all.each.into_iter().map(|one| one.step.sql);
                        Ok(std::iter::once(all.rows.sql).chain(steps).collect())
                    }
                    Err(message) => Err(message),
                },
                StatementKind::Insert(insert) => match insert.output.is_empty() {
                    true => translator.insert(insert).map(|statement| vec![statement.sql]),
                    false => translator.insert_output(insert, STAGE).map(staged),
                },
                StatementKind::Update(update) => match update.output.is_empty() {
                    true => translator.update(update).map(|statement| vec![statement.sql]),
                    false => translator.update_output(update, STAGE).map(staged),
                },
                StatementKind::Delete(delete) => match delete.output.is_empty() {
                    true => translator.delete(delete).map(|statement| vec![statement.sql]),
                    false => translator.delete_output(delete, STAGE).map(staged),
                },
                _ => continue,
            };
            match translated {
                Ok(all) => {
                    *numbers.entry(0).or_default() += 1;
                    all.iter().for_each(|sql| accepted(&connection, sql));
                }
                Err(message) => {
                    assert!(message.number > 100 && message.severity >= 10, "{message:?}");
                    assert!(!message.text.is_empty());
                    *numbers.entry(message.number).or_default() += 1;
                }
            }
        }
    }
    eprintln!("{numbers:?}");
    assert!(numbers[&0] > 20 && numbers.len() > 20, "{numbers:?}");
}

/// A query of one table whose value, condition, group and order are generated: likelier to make sense than a whole one.
#[test]
fn generated_parts_of_a_query_that_makes_sense() {
    eprintln!("seed {SEED:#x}");
    let connection = connection();
    let translator = Translator::new(&Everything, &Everything);
    let mut random = Random(SEED ^ 1);
    let (mut translated, mut refused) = (0, 0);
    for round in 0..30_000 {
        let text = "SELECT a FROM x AS t WHERE a = 1 GROUP BY a HAVING a > 1 ORDER BY a";
        let StatementKind::Select(mut query) = parse(text).unwrap().remove(0).kind else {
            panic!()
        };
        let QueryBody::Select(select) = &mut query.body else { panic!() };
        let bytes = random.bytes(120);
        let mut choices = Choices::new(&bytes);
        if round % 5 != 0 {
            select.group.clear();
            select.having = None;
            query.order.clear();
        }
        match round % 5 {
            0 => select.items = vec![item(choices.expression())],
            1 => select.items = vec![item(choices.expression())],
            2 => select.filter = Some(choices.condition()),
            3 => query.order = vec![OrderItem { value: choices.expression(), descending: true }],
            _ => select.group = vec![choices.expression()],
        }
        match translator.select(&query) {
            Ok(Selection::Rows(statement)) => {
                translated += 1;
                accepted(&connection, &statement.sql);
            }
            Ok(Selection::Assign(_)) => panic!(),
            Err(message) => {
                refused += 1;
                assert!(message.number > 100 && message.severity >= 10, "{message:?}");
            }
        }
    }
    eprintln!("{translated} translated, {refused} refused");
    assert!(translated > 2_000 && refused > 2_000, "{translated} {refused}");
}

fn item(value: Expression) -> SelectItem {
    SelectItem::Value { value, alias: None }
}

/// Expressions that are likelier to have types that fit: operands of a few kinds, nested.
#[test]
fn every_pair_of_types_is_decided() {
    let connection = connection();
    let translator = Translator::new(&Everything, &Everything);
    let operands: Vec<String> = COLUMNS
        .iter()
        .map(|(name, _)| format!("[{}]", name.replace(']', "]]")))
        .chain(
            ["1", "2.5", "'x'", "N'x'", "NULL", "1e0", "$1", "0x01", "@v", "@sql"]
                .map(str::to_owned),
        )
        .collect();
    let mut translated = 0;
    for a in &operands {
        for b in &operands {
            for form in [
                "SELECT {a} + {b} FROM x",
                "SELECT {a} * {b} FROM x",
                "SELECT {a} % {b} FROM x",
                "SELECT COALESCE({a}, {b}) FROM x ORDER BY 1",
                "SELECT CASE WHEN {a} < {b} THEN {a} ELSE {b} END FROM x",
                "SELECT {a} FROM x UNION SELECT {b} FROM x",
                "SELECT COUNT(*) FROM x WHERE {a} IN ({b}, {a}) GROUP BY a",
                "SELECT DATEDIFF(day, {a}, {b}), LEFT({a}, {b}), ISNULL({a}, {b}) FROM x",
                "SELECT MAX({a}), SUM({b}) OVER (PARTITION BY {a} ORDER BY {b}) FROM x GROUP BY {a}, {b}",
            ] {
                let text = form.replace("{a}", a).replace("{b}", b);
                let StatementKind::Select(query) = &parse(&text).unwrap()[0].kind else { panic!() };
                if let Ok(Selection::Rows(statement)) = translator.select(query) {
                    translated += 1;
                    accepted(&connection, &statement.sql);
                }
            }
        }
    }
    assert!(translated > 1_000, "{translated}");
}
