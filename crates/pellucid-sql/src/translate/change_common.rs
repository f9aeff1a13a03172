//! UPDATE and DELETE of a common table expression: what they change is the one table that it selects from.
//!
//! Source: Microsoft's "WITH common_table_expression": a reference to the expression is like one to a view that can be updated.

use pellucid_tsql::ast::{
    ColumnName, CommonTable, Expression, Name, Query, QueryBody, Select, SelectItem, TablePrimary,
};

use super::change::Target;
use super::from::named_columns;
use super::scope::{same, Clause, Level, ScopeColumn, ScopeTable, View};
use super::{TableColumn, Work};
use crate::message::{table, Message, Result};

/// The name by which the identity of a table's row is selected; no statement can write it.
pub(super) const ROW: &str = "\0row";

impl Work<'_> {
    /// The rows of the expression, which is number `at` of its WITH, each with what identifies the row of the table below.
    pub(super) fn common_target(
        &mut self,
        common: &CommonTable,
        called: &Name,
        at: usize,
        outer: View<'_>,
    ) -> Result<Target> {
        // It sees those before it; its own name is the table's that it hides.
        let before = outer.level.map_or_else(Level::default, |level| Level {
            common: level.common.iter().take(at).cloned().collect(),
            ..Level::default()
        });
        let outer = View::inner(&View::EMPTY, &before, Clause::Other);
        let refused = || Message::unsupported("change of such a common table expression");
        let select = plain(&common.query).ok_or_else(refused)?;
        let [source] = &select.from[..] else { return Err(refused()) };
        if !source.joins.is_empty() {
            return Err(refused());
        }
        let (below, _) = match &source.table {
            primary @ (TablePrimary::Table { .. } | TablePrimary::Variable { .. }) => {
                self.changed(primary, outer)?
            }
            _ => return Err(refused()),
        };
        let mut with_row = select.clone();
        let row = Name::new(ROW).ok_or_else(refused)?;
        let row = Box::new(ColumnName { table: None, column: row });
        with_row.items.push(SelectItem::Value { value: Expression::Column(row), alias: None });
        let query = Query { body: QueryBody::Select(Box::new(with_row)), ..common.query.clone() };
        let mut relation = self.query(&query, outer, true)?;
        let row_at = relation.columns.len();
        relation.columns.pop();
        let names = named_columns(&common.name, &relation.columns, &common.columns)?;
        let t = self.alias();
        let columns = names
            .iter()
            .zip(&relation.columns)
            .enumerate()
            .map(|(at, (name, column))| ScopeColumn {
                name: name.clone(),
                value: column.of(&t, at),
            })
            .collect();
        let mut level = Level::default();
        let row = Some(format!("{t}.c{row_at}"));
        let name = called.clone().into();
        super::from::add(
            &mut level,
            ScopeTable { name, columns, computed: false, row, is_prefixed: false },
        )?;
        let origins = origins(select, &below.columns);
        // A column that is none of the table's cannot be given a value.
        let own = names.iter().zip(origins).map(|(name, origin)| match origin {
            Some(column) => TableColumn { name: name.clone(), ..column.clone() },
            None => TableColumn { derived: true, ..TableColumn::new(name, super::SqlType::Int) },
        });
        let table = super::Table { columns: own.collect(), ..below };
        let tail = format!(" FROM ({}) AS {t}", relation.sql);
        Ok(Target { table, name: called.as_str().to_owned(), at: 0, level, tail })
    }
}

/// 4406
pub(super) fn derived_field(target: &str) -> Message {
    Message::of(table::DERIVED_FIELD, [&target])
}

/// A SELECT whose rows are rows of its table.
fn plain(query: &Query) -> Option<&Select> {
    let QueryBody::Select(select) = &query.body else { return None };
    let simple = query.with.is_empty()
        && query.xml.is_none()
        && !select.distinct
        && select.group.is_empty()
        && select.having.is_none()
        && select.into.is_none()
        && !super::visit::aggregates(select);
    simple.then_some(select)
}

/// For each selected column the one of the table that it is.
fn origins<'t>(select: &Select, below: &'t [TableColumn]) -> Vec<Option<&'t TableColumn>> {
    let mut all = Vec::new();
    for item in &select.items {
        match item {
            SelectItem::Star(_) => all.extend(below.iter().map(Some)),
            SelectItem::Value { value: Expression::Column(column), .. } => {
                let wanted = column.column.as_str();
                all.push(below.iter().find(|other| same(&other.name, wanted)));
            }
            _ => all.push(None),
        }
    }
    all
}
