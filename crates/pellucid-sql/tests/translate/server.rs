//! What the tests of translation run on: a clock that stands still, a small catalog, variables in a map.

use std::collections::HashMap;
use std::sync::Arc;

use pellucid_sql::functions::{register, Server};
use pellucid_sql::message::{Message, Result};
use pellucid_sql::translate::{
    execute_assignments, Catalog, OutputChange, Selection, Statement, Table, TableColumn,
    Translator, VariableTypes, Variables,
};
use pellucid_sql::values::convert::Value;
use pellucid_sql::values::decimal::Decimal;
use pellucid_sql::values::moment::Moment;
use pellucid_sql::values::types::{Family, Length, SqlType};
use pellucid_tsql::ast::{ObjectName, StatementKind};
use pellucid_tsql::parse;
use rusqlite::Connection;

/// 2014-10-03, a Friday, 14:05:09.1234567.
pub struct Fixed;

impl Server for Fixed {
    fn now(&self) -> Moment {
        Moment::parse("2014-10-03 14:05:09.1234567", 0).unwrap()
    }

    fn utc_now(&self) -> Moment {
        Moment::parse("2014-10-03 12:05:09.1234567", 0).unwrap()
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value> {
        Ok(match (name, arguments) {
            ("DB_NAME", []) => Value::Text("master".to_owned()),
            ("DB_NAME", [Value::Integer(5)]) => Value::Text("awHDD".to_owned()),
            ("DB_ID", [Value::Text(name)]) if name == "awHDD" => Value::Integer(5),
            ("@@ROWCOUNT", []) => Value::Integer(7),
            ("SCOPE_IDENTITY", []) => Value::Integer(12),
            ("SERVERPROPERTY", [Value::Text(name)]) if name == "EngineEdition" => Value::Integer(3),
            ("CURRENT_USER" | "USER", []) => Value::Text("dbo".to_owned()),
            ("ERROR_NUMBER", []) => Value::Null,
            _ => return Err(Message::unsupported(name)),
        })
    }
}

const STAGE: &str = "temp.\"@output\"";

/// Tables by their bare names.
#[derive(Default)]
pub struct Names(pub HashMap<String, Table>);

impl Catalog for Names {
    fn table(&self, name: &ObjectName) -> Result<Option<Table>> {
        if name.database.as_ref().is_some_and(|database| database.as_str() == "nowhere") {
            return Err(Message::new(911, 16, "Database 'nowhere' does not exist."));
        }
        Ok(self.0.get(&name.object.as_str().to_lowercase()).cloned())
    }

    fn table_variable(&self, name: &str) -> Option<Table> {
        self.0.get(&format!("@{}", name.to_lowercase())).cloned()
    }
}

#[derive(Default)]
pub struct Declared(pub HashMap<String, (SqlType, Value)>);

impl VariableTypes for Declared {
    fn variable_type(&self, name: &str) -> Option<SqlType> {
        self.0.get(&name.to_lowercase()).map(|(data_type, _)| *data_type)
    }
}

impl Variables for Declared {
    fn get(&self, name: &str) -> Value {
        self.0[name].1.clone()
    }

    fn set(&mut self, name: &str, value: Value) {
        self.0.get_mut(name).unwrap().1 = value;
    }
}

/// A connection, its names and its variables.
pub struct Session {
    pub connection: Connection,
    pub names: Names,
    pub variables: Declared,
}

impl Session {
    pub fn new() -> Self {
        let connection = Connection::open_in_memory().unwrap();
        register(&connection, Arc::new(Fixed)).unwrap();
        Self { connection, names: Names::default(), variables: Declared::default() }
    }

    /// Makes a table, with SQLite's text, and tells its columns' types.
    pub fn table(&mut self, name: &str, create: &str, columns: &[(&str, SqlType)]) {
        self.connection.execute_batch(create).unwrap();
        let columns = columns.iter().map(|(name, of)| TableColumn::new(name, *of)).collect();
        let sqlite = format!("\"{}\"", name.trim_start_matches('@'));
        let table = Table { sqlite, columns, row: Some("rowid".to_owned()) };
        self.names.0.insert(name.to_lowercase(), table);
    }

    pub fn declare(&mut self, name: &str, data_type: SqlType, value: Value) {
        self.variables.0.insert(name.to_lowercase(), (data_type, value));
    }

    pub fn translator(&self) -> Translator<'_> {
        Translator::new(&self.names, &self.variables)
    }

    /// Executes one statement; the rows of a query, as text.
    pub fn run(&mut self, text: &str) -> Result<Vec<Vec<String>>> {
        let statement = parse(text).unwrap_or_else(|error| panic!("{text}\n{error}")).remove(0);
        let changed = |session: &Self, statement: Statement| -> Result<Vec<Vec<String>>> {
            let mut prepared = statement.prepare(&session.connection, &session.variables)?;
            let count = prepared.raw_execute()?;
            Ok(vec![vec![count.to_string()]])
        };
        match statement.kind {
            StatementKind::Select(query) => match self.translator().select(&query)? {
                Selection::Rows(statement) => self.rows(&statement),
                Selection::Assign(assignments) => {
                    let Self { connection, variables, .. } = self;
                    let count = execute_assignments(|_| connection, &assignments, variables)?;
                    Ok(vec![vec![count.to_string()]])
                }
            },
            StatementKind::Insert(insert) if !insert.output.is_empty() => {
                self.output(&self.translator().insert_output(&insert, STAGE)?)
            }
            StatementKind::Update(update) if !update.output.is_empty() => {
                self.output(&self.translator().update_output(&update, STAGE)?)
            }
            StatementKind::Delete(delete) if !delete.output.is_empty() => {
                self.output(&self.translator().delete_output(&delete, STAGE)?)
            }
            StatementKind::Insert(insert) => changed(self, self.translator().insert(&insert)?),
            StatementKind::Update(update) => changed(self, self.translator().update(&update)?),
            StatementKind::Delete(delete) => changed(self, self.translator().delete(&delete)?),
            other => panic!("{other:?}"),
        }
    }

    /// What a change gives.
    fn output(&self, change: &OutputChange) -> Result<Vec<Vec<String>>> {
        let (connection, variables) = (&self.connection, &self.variables);
        connection.execute_batch(&format!("DROP TABLE IF EXISTS {STAGE}; {}", change.stage.sql))?;
        if let Some(fill) = &change.fill {
            fill.prepare(connection, variables)?.raw_execute()?;
        }
        let mut changed = change.change.prepare(connection, variables)?;
        let columns = changed.column_count();
        let mut rows = changed.raw_query();
        while let Some(row) = rows.next()? {
            let values: Vec<Value> =
                (0..columns).map(|at| row.get(at)).collect::<rusqlite::Result<_>>()?;
            let keep = change.keep.as_ref().unwrap();
            connection.execute(&keep.sql, rusqlite::params_from_iter(values))?;
        }
        self.rows(&change.rows)
    }

    pub fn statement(&self, text: &str) -> Result<Statement> {
        let statement = parse(text).unwrap_or_else(|error| panic!("{text}\n{error}")).remove(0);
        let StatementKind::Select(query) = statement.kind else { panic!("{text}") };
        self.translator().query(&query)
    }

    fn rows(&self, statement: &Statement) -> Result<Vec<Vec<String>>> {
        let mut prepared = statement.prepare(&self.connection, &self.variables)?;
        let mut rows = prepared.raw_query();
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let mut texts = Vec::new();
            for (at, column) in statement.columns.iter().enumerate() {
                texts.push(shown(row.get(at).unwrap(), column.data_type));
            }
            all.push(texts);
        }
        Ok(all)
    }

    /// The one value of `SELECT expression`.
    pub fn value(&mut self, expression: &str) -> Result<String> {
        let rows = self.run(&format!("SELECT {expression}"))?;
        Ok(rows[0][0].clone())
    }

    /// The type of an expression.
    pub fn type_of(&self, expression: &str) -> String {
        let statement = self.statement(&format!("SELECT {expression}")).unwrap();
        statement.columns[0].data_type.to_string()
    }

    /// Each expression has to have the value beside it.
    pub fn values(&mut self, table: &[(&str, &str)]) {
        for (expression, expected) in table {
            match self.value(expression) {
                Ok(value) => assert_eq!(value, *expected, "{expression}"),
                Err(message) => panic!("{expression}\n{message:?}"),
            }
        }
    }

    /// Each statement has to fail with the number beside it, in translation or execution.
    pub fn fails(&mut self, table: &[(&str, u32, &str)]) {
        for (text, number, expected) in table {
            match self.run(text) {
                Ok(rows) => panic!("{text}\n{rows:?}"),
                Err(message) => {
                    assert_eq!(
                        (message.number, message.text.as_str()),
                        (*number, *expected),
                        "{text}"
                    );
                }
            }
        }
    }
}

fn shown(value: Value, data_type: SqlType) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Blob(bytes) if data_type.family() == Family::Decimal => {
            Decimal::of_key(&bytes, data_type.scale()).unwrap().to_string()
        }
        Value::Blob(bytes) => format!("0x{}", pellucid_sql::values::convert::to_hex(&bytes)),
    }
}

pub const NVARCHAR_MAX: SqlType = SqlType::NVarChar(Length::Max);
