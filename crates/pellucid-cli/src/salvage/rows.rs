//! Rows, from the pages that are there into the tables of the new database.

use indicatif::ProgressBar;
use pellucid::sqlite::{decode, payload, BtreePage, Cell, Encoding, Map, Source, Value};
use pellucid_engine::page_source::Pages;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::ToSql;

use super::layout::{Layout, Stored};
use super::lost_and_found::{Found, LostAndFound};
use super::report::{LostRow, Report};
use super::target::{sqlite, Target, SEQUENCE};
use crate::output::Failure;

/// A value on its way.
pub enum Bound<'a> {
    /// As it is stored.
    Same(Value<'a>),
    /// Text that was not UTF-8.
    Text(String),
}

impl<'a> Bound<'a> {
    /// A value as it is bound to a statement.
    pub fn new(value: Value<'a>, encoding: Encoding) -> Self {
        match value {
            Value::Text(text) if encoding != Encoding::Utf8 => Bound::Text(encoding.text(text)),
            value => Bound::Same(value),
        }
    }
}

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Bound::Same(Value::Null) => ValueRef::Null,
            Bound::Same(Value::Integer(value)) => ValueRef::Integer(*value),
            Bound::Same(Value::Real(value)) => ValueRef::Real(*value),
            Bound::Same(Value::Text(text)) => ValueRef::Text(text),
            Bound::Same(Value::Blob(bytes)) => ValueRef::Blob(bytes),
            Bound::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// Copies all that is there.
pub struct Copier<'a> {
    target: &'a Target,
    pages: &'a Pages,
    map: &'a Map,
    layouts: &'a [Option<Layout>],
    report: &'a mut Report,
    aside: LostAndFound<'a>,
}

impl<'a> Copier<'a> {
    /// Copies from `pages` to `target`.
    pub fn new(
        target: &'a Target,
        pages: &'a Pages,
        map: &'a Map,
        layouts: &'a [Option<Layout>],
        report: &'a mut Report,
    ) -> Self {
        let aside = LostAndFound::new(target, map);
        Self { target, pages, map, layouts, report, aside }
    }

    /// Tables first, then what could not be told whose it is.
    pub fn copy(mut self, bar: &ProgressBar) -> Result<(), Failure> {
        let is_last = |object: &usize| self.map.objects[*object].name == SEQUENCE;
        let (last, first): (Vec<usize>, Vec<usize>) =
            (1..self.map.objects.len()).partition(|object| is_last(object));
        for object in first.into_iter().chain(last) {
            if self.map.objects[object].kind != "table" {
                bar.inc(self.map.content[object].len() as u64);
                continue;
            }
            self.table(object, bar)?;
        }
        for orphan in &self.map.orphans {
            let guess: Vec<&str> =
                orphan.candidates.iter().map(|o| self.map.objects[*o].name.as_str()).collect();
            for number in &orphan.pages {
                self.each(*number, |copier, rowid, values| {
                    let guess = Some(guess.join(", ")).filter(|guess| !guess.is_empty());
                    copier.set_aside(*number, orphan.top, guess, rowid, values)
                })?;
            }
        }
        self.report.set_aside = self.aside.name().map(|name| (name, self.aside.rows));
        Ok(())
    }

    fn table(&mut self, object: usize, bar: &ProgressBar) -> Result<(), Failure> {
        let (name, root) = (&self.map.objects[object].name, self.map.objects[object].root);
        let layout = self.layouts[object].as_ref();
        if name == SEQUENCE && layout.is_some() && !self.map.content[object].is_empty() {
            // What the copied tables have set by themselves.
            self.target.db.execute_batch("DELETE FROM sqlite_sequence").map_err(sqlite)?;
        }
        let mut rows = 0u64;
        for number in &self.map.content[object] {
            self.each(*number, |copier, rowid, values| {
                let inserted = match layout {
                    Some(layout) => copier.insert(layout, rowid, values)?,
                    None => false,
                };
                if inserted {
                    rows += 1;
                    return Ok(());
                }
                copier.set_aside(*number, root, Some(name.clone()), rowid, values)
            })
            .map_err(|failure| Failure {
                message: format!("table `{name}`: {}", failure.message),
                ..failure
            })?;
            bar.inc(1);
        }
        self.report.rows += rows;
        self.report.tables.push((name.clone(), rows));
        Ok(())
    }

    /// Each row of a page; what of it is lost is noted.
    fn each(
        &mut self,
        number: u32,
        mut take: impl FnMut(&mut Self, Option<i64>, &[Value<'_>]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(page) = self.pages.page(number) else { return Ok(()) };
        let Some(tree) = BtreePage::parse(&page, number) else { return Ok(()) };
        for cell in tree.cells() {
            let rowid = cell.and_then(|cell| cell.rowid);
            let read = |cell: &Cell<'_>| payload(self.pages, cell);
            match cell.as_ref().map(read) {
                Some(Ok(payload)) => match decode(&payload) {
                    Some(values) => take(self, rowid, &values)?,
                    None => self.lose(number, rowid, None),
                },
                Some(Err(missing)) => self.lose(number, rowid, Some(missing).filter(|n| *n != 0)),
                None => self.lose(number, None, None),
            }
        }
        Ok(())
    }

    fn lose(&mut self, page: u32, rowid: Option<i64>, missing: Option<u32>) {
        let table = self.map.object_of(page).map(|object| self.map.objects[object].name.clone());
        self.report.lost_rows.push(LostRow { table, rowid, page, missing });
    }

    /// False if SQLite does not take the row.
    fn insert(
        &self,
        layout: &Layout,
        rowid: Option<i64>,
        values: &[Value<'_>],
    ) -> Result<bool, Failure> {
        if values.len() > layout.stored.len() || (rowid.is_none() && !layout.without_rowid) {
            return Ok(false);
        }
        let mut bound = Vec::with_capacity(values.len() + 1);
        if let (Some(_), Some(rowid)) = (layout.rowid, rowid) {
            bound.push(Bound::Same(Value::Integer(rowid)));
        }
        for (value, stored) in values.iter().zip(&layout.stored) {
            match (stored, rowid) {
                (Stored::Generated, _) => {}
                (Stored::Rowid(_), Some(rowid)) => bound.push(Bound::Same(Value::Integer(rowid))),
                _ => bound.push(Bound::new(*value, self.map.encoding)),
            }
        }
        let db = &self.target.db;
        let done = db
            .prepare_cached(&layout.insert(values.len()))
            .and_then(|mut statement| statement.execute(rusqlite::params_from_iter(bound)));
        match done {
            Ok(_) => Ok(true),
            Err(error) => match error.sqlite_error_code() {
                // Of the file, not of the row.
                Some(
                    rusqlite::ErrorCode::DiskFull
                    | rusqlite::ErrorCode::SystemIoFailure
                    | rusqlite::ErrorCode::OutOfMemory,
                ) => Err(sqlite(error)),
                _ => Ok(false),
            },
        }
    }

    fn set_aside(
        &mut self,
        page: u32,
        root: u32,
        guess: Option<String>,
        rowid: Option<i64>,
        values: &[Value<'_>],
    ) -> Result<(), Failure> {
        self.aside.add(&Found { page, root, guess, rowid, values })
    }
}
