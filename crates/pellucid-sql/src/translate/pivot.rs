//! PIVOT and UNPIVOT, which SQLite lacks: a filtered aggregate for each column, and a row for each of some columns.
//!
//! Source: Microsoft's "FROM - Using PIVOT and UNPIVOT".

use pellucid_tsql::ast::{
    ColumnName, Comparison, Condition, Expression, Literal, Name, Pivot, StringLiteral, TableAlias,
    TableSource, Unpivot,
};

use super::aggregate::extreme;
use super::order::order_key;
use super::scope::{Clause, Column, Level, Relation};
use super::{text_literal, typed, Typed, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::SqlType;

/// A column of what is turned: its name, its value, and where it is.
type Turned = (String, Typed, (usize, usize));

impl Work<'_> {
    pub(super) fn pivoted(
        &mut self,
        pivot: &Pivot,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        let mut inner = Level::default();
        let from = self.turned_source(&pivot.source, &mut inner, outer)?;
        let view = within(&inner);
        let turned = [&pivot.value, &pivot.column].map(|column| view.place(column));
        let value = self.node(&column(&pivot.value), view)?;
        let operand = self.node(&column(&pivot.column), view)?;
        let kept = kept(&inner, &turned);
        let mut columns = Vec::new();
        let mut selected = Vec::new();
        let mut keys = Vec::new();
        for (name, value, _) in kept {
            keys.push(order_key(&value));
            push(&mut columns, &mut selected, name, value);
        }
        let mut told: Vec<&Name> = Vec::new();
        for name in &pivot.values {
            if told.iter().any(|other| super::scope::same(other.as_str(), name.as_str())) {
                let alias = pivot.alias.name.as_str();
                return Err(Message::of(table::COLUMN_NAMED_TWICE, [&name.as_str(), &alias]));
            }
            told.push(name);
            let text = StringLiteral { text: name.as_str().to_owned(), national: true };
            let condition = Condition::Compare {
                left: column(&pivot.column),
                comparison: Comparison::Equal,
                right: Expression::Literal(Literal::String(text)),
            };
            let condition = self.condition(&condition, view)?;
            let filter = format!(" FILTER (WHERE {condition})");
            self.repeat(value.sql.len() + operand.sql.len())?;
            let aggregate = self.filtered(pivot.aggregate.as_str(), value.clone(), &filter)?;
            push(&mut columns, &mut selected, name.as_str().to_owned(), aggregate);
        }
        let group = match keys.is_empty() {
            true => String::new(),
            false => format!(" GROUP BY {}", keys.join(", ")),
        };
        let sql = format!("SELECT {} FROM {from}{group}", selected.join(", "));
        self.turned(sql, columns, &pivot.alias, level)
    }

    /// All of its rows: what WHERE says is of the columns that come out, which may be called as those within are.
    fn turned_source(
        &mut self,
        source: &TableSource,
        inner: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        let equations = std::mem::take(&mut self.equations);
        let from = self.source(source, inner, outer);
        self.equations = equations;
        from
    }

    /// The aggregate of the rows that a filter takes.
    fn filtered(&mut self, name: &str, mut value: Typed, filter: &str) -> Result<Typed> {
        let name = name.to_uppercase();
        let key = order_key(&value);
        value.sql = format!("tsql_met({})", value.sql);
        match name.as_str() {
            "COUNT" => Ok(typed(format!("count({key}){filter}"), SqlType::Int)),
            "COUNT_BIG" => Ok(typed(format!("count({key}){filter}"), SqlType::BigInt)),
            "MIN" | "MAX" => extreme(&name, value, filter),
            "SUM" | "AVG" => self.sum(&name, value, "", filter),
            _ => Err(Message::unsupported(format!("PIVOT by {name}"))),
        }
    }

    /// NULL gives no row.
    pub(super) fn unpivoted(
        &mut self,
        unpivot: &Unpivot,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        let mut inner = Level::default();
        let from = self.turned_source(&unpivot.source, &mut inner, outer)?;
        let view = within(&inner);
        let places: Vec<_> = unpivot.columns.iter().map(|column| view.place(column)).collect();
        let mut values = Vec::new();
        for name in &unpivot.columns {
            values.push(self.node(&column(name), view)?);
        }
        let data_type = values.first().map_or(SqlType::Int, |value| value.data_type);
        for (value, name) in values.iter().zip(&unpivot.columns) {
            if value.data_type != data_type {
                let name = name.column.as_str();
                return Err(Message::of(table::UNPIVOT_TYPES, [&name]));
            }
        }
        let t = self.alias();
        let choice = |texts: Vec<String>| {
            let cases: Vec<String> = (1..)
                .zip(texts)
                .map(|(at, text): (usize, String)| format!("WHEN {at} THEN {text}"))
                .collect();
            format!("CASE {t}.column1 {} END", cases.join(" "))
        };
        let value = choice(values.iter().map(|value| value.sql.clone()).collect());
        let names = unpivot.columns.iter().map(|name| text_literal(name.column.as_str()));
        let name = choice(names.collect());
        let mut columns = Vec::new();
        let mut selected = Vec::new();
        for (name, value, _) in kept(&inner, &places) {
            push(&mut columns, &mut selected, name, value);
        }
        let sensitive = values.iter().any(|value| value.sensitive);
        self.repeat(value.len())?;
        let of_value = Typed { sensitive, ..typed(value.clone(), data_type) };
        push(&mut columns, &mut selected, unpivot.value.as_str().to_owned(), of_value);
        let of_name = typed(name, SqlType::nvarchar(128));
        push(&mut columns, &mut selected, unpivot.name.as_str().to_owned(), of_name);
        let numbers: Vec<String> = (1..=values.len()).map(|at| format!("({at})")).collect();
        // The rows of one row of the source stand together.
        let sql = format!(
            "SELECT {} FROM {from} CROSS JOIN (VALUES {}) AS {t} WHERE {value} IS NOT NULL",
            selected.join(", "),
            numbers.join(", ")
        );
        self.turned(sql, columns, &unpivot.alias, level)
    }

    fn turned(
        &mut self,
        sql: String,
        columns: Vec<Column>,
        alias: &TableAlias,
        level: &mut Level,
    ) -> Result<String> {
        self.derived(Relation { sql, columns, single: false }, alias, level)
    }
}

/// What its columns are called within: those of its source, and none of a query around.
fn within(inner: &Level) -> View<'_> {
    View { level: Some(inner), clause: Clause::Where, ..View::EMPTY }
}

fn column(name: &ColumnName) -> Expression {
    Expression::Column(Box::new(name.clone()))
}

/// The columns of a source but for those that are turned.
fn kept(level: &Level, turned: &[Option<(usize, usize)>]) -> Vec<Turned> {
    let mut kept = Vec::new();
    for (at, table) in level.tables.iter().enumerate() {
        for (number, column) in table.columns.iter().enumerate() {
            if !turned.contains(&Some((at, number))) {
                kept.push((column.name.clone(), column.value.clone(), (at, number)));
            }
        }
    }
    kept
}

fn push(columns: &mut Vec<Column>, selected: &mut Vec<String>, name: String, value: Typed) {
    selected.push(format!("{} AS c{}", value.sql, columns.len() + 1));
    columns.push(Column {
        name: Some(name),
        data_type: value.data_type,
        sensitive: value.sensitive,
    });
}
