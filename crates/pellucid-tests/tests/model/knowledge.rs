//! What the generator knows of connections and tables, from the answers so far.

use std::collections::{BTreeMap, BTreeSet};

use crate::connection::{Outcome, Value};
use crate::script::{Step, CONNECTIONS};

/// What a connection has open, as far as the generator knows.
#[derive(Debug, Default)]
pub struct Seat {
    /// Files by schema; a connection without `main` is closed.
    pub schemas: BTreeMap<String, String>,
    pub in_transaction: bool,
    /// Steps since the transaction began.
    pub age: usize,
    pub backup: bool,
    pub cursor: bool,
    pub refused: bool,
}

/// All connections, and what is in their files.
#[derive(Debug, Default)]
pub struct Knowledge {
    pub seats: [Seat; CONNECTIONS],
    /// Tables and views by file.
    pub tables: BTreeMap<String, BTreeSet<String>>,
}

/// A query whose answer tells the generator which tables there are.
pub fn names_of(on: usize, schema: &str) -> Step {
    Step::Sql(on, format!("{NAMES}{schema}.sqlite_schema WHERE type IN('table','view')"))
}

const NAMES: &str = "SELECT name FROM ";

impl Knowledge {
    /// Learns from a step; the connection that something was taken back on, tables perhaps.
    pub fn told(&mut self, step: &Step, outcome: &Outcome) -> Option<usize> {
        if *step == Step::Kill && outcome.is_ok() {
            self.seats = Default::default();
        }
        let (Step::Open(on, _)
        | Step::Close(on)
        | Step::Sql(on, _)
        | Step::Interrupt(on, ..)
        | Step::Cursor(on, _)
        | Step::Fetch(on, _)
        | Step::Drop(on)
        | Step::Finish(on)
        | Step::Backup { to: on, .. }) = step
        else {
            return None;
        };
        let on = *on;
        let seat = &mut self.seats[on];
        seat.refused = matches!(outcome.primary(), 5 | 6 | 13); // busy, locked, full
        let mut taken_back = false;
        if outcome.code >= 0 && !matches!(step, Step::Finish(_) | Step::Backup { .. }) {
            let was = seat.in_transaction;
            seat.in_transaction = !outcome.counters.autocommit;
            if !seat.in_transaction {
                seat.age = 0;
            }
            let ended = was && !seat.in_transaction;
            taken_back = ended && matches!(step, Step::Sql(_, sql) if sql != "COMMIT");
        }
        let seat = &mut self.seats[on];
        match step {
            Step::Close(_) => *seat = Seat::default(),
            Step::Open(_, file) if outcome.is_ok() => {
                *seat = Seat::default();
                seat.schemas.insert("main".to_owned(), file.clone());
                seat.schemas.insert("temp".to_owned(), format!("temp {on}"));
            }
            Step::Cursor(..) => seat.cursor = outcome.is_ok(),
            Step::Drop(_) => seat.cursor = false,
            Step::Backup { .. } => seat.backup = outcome.is_ok(),
            Step::Finish(_) => seat.backup = false,
            Step::Sql(_, sql) if outcome.is_ok() => self.learn(on, sql, outcome),
            _ => {}
        }
        taken_back.then_some(on)
    }

    fn learn(&mut self, on: usize, sql: &str, outcome: &Outcome) {
        let schemas = &mut self.seats[on].schemas;
        if let Some(rest) = sql.strip_prefix("ATTACH ") {
            if let Some((file, schema)) = rest.split_once(" AS ") {
                let file = file.trim_matches(|c| "'@".contains(c));
                let private = file.is_empty() || file.starts_with(':');
                let file = if private { format!("{schema} {on}") } else { file.to_owned() };
                schemas.insert(schema.to_owned(), file);
            }
        } else if let Some(schema) = sql.strip_prefix("DETACH ") {
            schemas.remove(schema);
        } else if let Some((schema, _)) = sql.strip_prefix(NAMES).and_then(|s| s.split_once('.')) {
            let Some(file) = schemas.get(schema) else { return };
            let names = outcome.rows.iter().filter_map(|row| match &row[..] {
                [Value::Text(name)] => Some(String::from_utf8_lossy(name).into_owned()),
                _ => None,
            });
            // Neither SQLite's own tables nor those behind a virtual one.
            let names = names.filter(|name| !name.contains('_')).collect();
            self.tables.insert(file.clone(), names);
        }
    }
}
