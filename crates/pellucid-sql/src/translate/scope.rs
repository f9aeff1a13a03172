//! What names mean at a place of a query.

use std::cell::{Cell, RefCell};

use pellucid_tsql::ast::{ColumnName, Expression, ObjectName};

use super::RowKey;
use crate::message::{table, Message, Result};
use crate::values::types::SqlType;

/// An expression of SQLite's and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typed {
    pub sql: String,
    pub data_type: SqlType,
    /// Text under a collation that tells `a` from `A`.
    pub sensitive: bool,
    /// Precision and scale that just hold it, if it is a number's constant.
    pub constant: Option<(u8, u8)>,
}

/// A column that a query gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub name: Option<String>,
    pub data_type: SqlType,
    pub sensitive: bool,
}

impl Column {
    /// Its value where the query, of which it is column `at` from 0 on, is called `t`.
    pub fn of(&self, t: &str, at: usize) -> Typed {
        Typed {
            sql: format!("{t}.c{}", at + 1),
            data_type: self.data_type,
            sensitive: self.sensitive,
            constant: None,
        }
    }
}

/// A query of SQLite's whose columns are called `c1`, `c2`, ..
#[derive(Debug, Clone)]
pub(super) struct Relation {
    pub sql: String,
    pub columns: Vec<Column>,
    /// Whether it gives one row at most.
    pub single: bool,
}

/// A column that can be named.
#[derive(Debug, Clone)]
pub(super) struct ScopeColumn {
    pub name: String,
    pub value: Typed,
}

/// A table of a FROM clause.
#[derive(Debug, Clone)]
pub(super) struct ScopeTable {
    /// What it is called by: its alias, or its name with what stands before it.
    pub name: ObjectName,
    pub columns: Vec<ScopeColumn>,
    /// Whether its columns are expressions of other tables, which an outer join does not make NULL.
    pub computed: bool,
    /// What identifies a row, if it is a table that may be changed.
    pub row: Option<String>,
    /// Whether its columns are named with its name before them only.
    pub is_prefixed: bool,
}

/// A common table expression.
#[derive(Debug, Clone)]
pub(super) struct CommonTable {
    pub name: String,
    /// Its name in SQLite.
    pub sqlite: String,
    pub columns: Vec<Column>,
    /// What it was called where it was named so far.
    pub aliases: RefCell<Vec<String>>,
}

/// One level of names: those of a WITH, or those of a FROM.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub tables: Vec<ScopeTable>,
    pub common: Vec<CommonTable>,
    /// Whether a column of it was used.
    pub used: Cell<bool>,
    /// The views of the server, by place, that show these rows alone.
    pub narrowed: Vec<(usize, RowKey)>,
}

/// What an expression is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    Select,
    Where,
    On,
    GroupBy,
    Having,
    OrderBy,
    /// The arguments and the OVER of a windowed function.
    Window,
    /// Anything else.
    Other,
}

/// What a grouped query is grouped by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grouped<'v> {
    pub expressions: &'v [Expression],
    /// Table and column of those that are columns.
    pub columns: &'v [(usize, usize)],
}

/// The names that can be seen, and from where.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'v> {
    pub level: Option<&'v Level>,
    pub outer: Option<&'v View<'v>>,
    pub clause: Clause,
    pub grouped: Option<Grouped<'v>>,
    /// Within the arguments of an aggregate.
    pub in_aggregate: bool,
}

impl<'v> View<'v> {
    /// Nothing to be seen.
    pub const EMPTY: View<'static> = View {
        level: None,
        outer: None,
        clause: Clause::Other,
        grouped: None,
        in_aggregate: false,
    };

    /// Inside a query that stands at this place.
    pub fn inner(outer: &'v View<'v>, level: &'v Level, clause: Clause) -> View<'v> {
        View { level: Some(level), outer: Some(outer), clause, grouped: None, in_aggregate: false }
    }

    /// Whether a query here is the statement's own: only names of its WITH can be seen.
    pub fn is_top(&self) -> bool {
        self.outer.is_none_or(|outer| outer.level.is_none())
            && self.level.is_none_or(|level| level.tables.is_empty())
    }

    /// The common table expression of this name.
    pub fn common(&self, name: &str) -> Option<&'v CommonTable> {
        let here = self
            .level
            .and_then(|level| level.common.iter().rev().find(|table| same(&table.name, name)));
        here.or_else(|| self.outer.and_then(|outer| outer.common(name)))
    }

    /// The column of this name, nearest first.
    ///
    /// # Errors
    /// 207, 209, 4104; 8120 and its like for a column that a grouped query does not have.
    pub fn column(&self, wanted: &ColumnName) -> Result<Typed> {
        if let Some(level) = self.level {
            if wanted.column.as_str() == super::change_common::ROW {
                let row = level.tables.first().and_then(|table| table.row.clone());
                return row.map(|row| super::typed(row, SqlType::BigInt)).ok_or_else(|| {
                    Message::unsupported("change of a view or a table without row identity")
                });
            }
            if let Some((table, column)) = find(level, wanted)? {
                level.used.set(true);
                let found = &level.tables[table].columns[column];
                self.check_grouped(&level.tables[table], &found.name, (table, column))?;
                return Ok(found.value.clone());
            }
        }
        match self.outer {
            // A constant here; but if the outer query is grouped, it has to be so by that column.
            Some(outer) => outer.column(wanted),
            None => Err(match &wanted.table {
                Some(table) => Message::of(
                    table::UNBOUND,
                    [&format!("{}.{}", object_text(table), wanted.column.as_str())],
                ),
                None => Message::of(table::UNKNOWN_COLUMN, [&wanted.column.as_str()]),
            }),
        }
    }

    /// Forgets which levels were used, this one first; returns which were.
    pub fn forget_used(&self) -> Vec<bool> {
        self.levels().map(|level| level.used.replace(false)).collect()
    }

    /// Remembers what was forgotten; returns whether this level was used since, and whether an outer one was.
    pub fn recall_used(&self, before: &[bool]) -> (bool, bool) {
        let own = self.level.is_some_and(|level| level.used.get());
        let mut count = 0;
        for (level, before) in self.levels().zip(before) {
            count += usize::from(level.used.get());
            level.used.set(level.used.get() || *before);
        }
        (own, count > usize::from(own))
    }

    fn levels(&self) -> impl Iterator<Item = &'v Level> {
        std::iter::successors(Some(*self), |view| view.outer.copied()).filter_map(|view| view.level)
    }

    /// The numbers of table and column at this level.
    pub fn place(&self, wanted: &ColumnName) -> Option<(usize, usize)> {
        self.level.and_then(|level| find(level, wanted).ok().flatten())
    }

    /// The databases that the rows of the view are of whose column this is.
    pub fn database_key(&self, wanted: &ColumnName) -> Option<RowKey> {
        if let Some(level) = self.level {
            if let Some((table, _)) = find(level, wanted).ok()? {
                let found = level.narrowed.iter().find(|(at, _)| *at == table);
                return found.map(|(_, key)| key.clone());
            }
        }
        self.outer.and_then(|outer| outer.database_key(wanted))
    }

    fn check_grouped(&self, table: &ScopeTable, column: &str, at: (usize, usize)) -> Result<()> {
        let Some(grouped) = self.grouped else { return Ok(()) };
        if self.in_aggregate || grouped.columns.contains(&at) {
            return Ok(());
        }
        let column = format!("{}.{column}", object_text(&table.name));
        Err(match self.clause {
            Clause::Having => Message::of(table::NOT_GROUPED_IN_HAVING, [&column]),
            Clause::OrderBy => Message::of(table::NOT_GROUPED_IN_ORDER_BY, [&column]),
            _ => Message::of(table::NOT_GROUPED_IN_SELECT, [&column]),
        })
    }
}

/// Names are the same without regard to case.
pub(super) fn same(left: &str, right: &str) -> bool {
    left == right || left.to_lowercase() == right.to_lowercase()
}

fn find(level: &Level, wanted: &ColumnName) -> Result<Option<(usize, usize)>> {
    let mut found = None;
    let mut table_known = false;
    for (at, table) in level.tables.iter().enumerate() {
        if let Some(name) = &wanted.table {
            if !called(table, name) {
                continue;
            }
            table_known = true;
        } else if table.is_prefixed {
            continue;
        }
        for (number, column) in table.columns.iter().enumerate() {
            if same(&column.name, wanted.column.as_str()) {
                if found.is_some() {
                    return Err(Message::of(table::AMBIGUOUS_COLUMN, [&wanted.column.as_str()]));
                }
                found = Some((at, number));
            }
        }
    }
    match found {
        None if table_known => Err(Message::of(table::UNKNOWN_COLUMN, [&wanted.column.as_str()])),
        found => Ok(found),
    }
}

/// Whether a table is called so. What is not written is not asked for.
pub(super) fn called(table: &ScopeTable, name: &ObjectName) -> bool {
    called_so(&table.name, name)
}

/// The same of a table that goes by the name `own`.
pub(super) fn called_so(own: &ObjectName, name: &ObjectName) -> bool {
    let part = |table: &Option<pellucid_tsql::ast::Name>,
                name: &Option<pellucid_tsql::ast::Name>| match (table, name) {
        (_, None) => true,
        (Some(table), Some(name)) => same(table.as_str(), name.as_str()),
        (None, Some(name)) => same(name.as_str(), "dbo"),
    };
    same(own.object.as_str(), name.object.as_str())
        && part(&own.schema, &name.schema)
        && match (&own.database, &name.database) {
            (_, None) => true,
            (Some(table), Some(name)) => same(table.as_str(), name.as_str()),
            (None, Some(_)) => false,
        }
}

/// A name as messages print it.
pub(crate) fn object_text(name: &ObjectName) -> String {
    let mut text = String::new();
    let parts = [&name.server, &name.database, &name.schema];
    for part in parts.into_iter().skip_while(|part| part.is_none()) {
        text.push_str(part.as_ref().map_or("", |name| name.as_str()));
        text.push('.');
    }
    text + name.object.as_str()
}
