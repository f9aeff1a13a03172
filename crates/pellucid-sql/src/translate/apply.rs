//! CROSS APPLY and OUTER APPLY, which SQLite lacks.
//!
//! A right side that looks at no column of the left is a join. Of those that do: a row of values, or several, become
//! expressions of the left side; a query of one table or join becomes that join with its WHERE as condition; a query
//! of one row at most becomes a sub-query for each column. What else there is, is not supported.

use std::collections::HashSet;

use pellucid_tsql::ast::{
    Expression, JoinKind, Query, QueryBody, Select, TableAlias, TablePrimary, TableSource,
};

use super::from::{add, named_columns};
use super::scope::{Clause, Level, Relation, ScopeColumn, ScopeTable};
use super::select::{Ordered, Parts};
use super::{visit, Typed, View, Work};
use crate::message::{Message, Result};

impl Work<'_> {
    pub(super) fn apply(
        &mut self,
        right: &TablePrimary,
        keep: bool,
        level: &mut Level,
        outer: View<'_>,
        text: &mut String,
    ) -> Result<()> {
        let word = if keep { "LEFT JOIN" } else { "JOIN" };
        if let Some(call) = super::table_function::called(right) {
            return self.server_table_applied(call, word, level, outer, text);
        }
        if self.scripted_applied(right, keep, level, outer, text)? {
            return Ok(());
        }
        // Tables of the right side are known apart from those of the left until both are joined.
        let mut added = Level::default();
        level.used.set(false);
        let view = View::inner(&outer, level, Clause::Other);
        let aliases = self.aliases;
        let parameters = self.parameters.len();
        let joined = self.primary(right, &mut added, view);
        let lateral = level.used.replace(true);
        let split = matches!(right, TablePrimary::Function { .. });
        if !lateral || split {
            if keep && added.tables.iter().any(|table| table.computed) {
                return Err(Message::unsupported("an outer join of what APPLY computes"));
            }
            text.push_str(&format!(" {word} {}", joined?));
            if keep {
                text.push_str(" ON 1");
            }
            return added.tables.into_iter().try_for_each(|table| add(level, table));
        }
        self.aliases = aliases;
        self.parameters.truncate(parameters);
        let (table, joined) = match right {
            TablePrimary::Values { rows, alias } => self.values_applied(rows, alias, view)?,
            TablePrimary::Query { query, alias } => {
                self.query_applied(query, alias, keep, view, level)?
            }
            _ => return Err(Message::unsupported("APPLY of this table")),
        };
        text.push_str(&joined);
        add(level, table)
    }

    /// Each row by its number, each column as a choice by that number.
    fn values_applied(
        &mut self,
        rows: &[Vec<Expression>],
        alias: &TableAlias,
        view: View<'_>,
    ) -> Result<(ScopeTable, String)> {
        let (columns, rows) = self.value_rows(rows, view)?;
        let t = self.alias();
        let values = (0..columns.len()).map(|column| {
            let cases: Vec<String> = rows
                .iter()
                .enumerate()
                .map(|(at, row)| format!("WHEN {} THEN {}", at + 1, row[column]))
                .collect();
            format!("CASE {t}.n {} END", cases.join(" "))
        });
        let relation = Relation { sql: String::new(), columns: columns.clone(), single: false };
        let table = substituted(alias, &relation, values.collect())?;
        let numbers: Vec<String> = (1..=rows.len()).map(|at| format!("({at})")).collect();
        let joined =
            format!(" JOIN (SELECT column1 AS n FROM (VALUES {})) AS {t}", numbers.join(", "));
        Ok((table, joined))
    }

    /// `applied` is the left side, which the query sees by `view`, or by the arguments of its function alone.
    pub(super) fn query_applied(
        &mut self,
        query: &Query,
        alias: &TableAlias,
        keep: bool,
        view: View<'_>,
        applied: &Level,
    ) -> Result<(ScopeTable, String)> {
        if let Some(select) = plain(query) {
            if select.from.is_empty() && select.filter.is_none() {
                let parts = self.parts(select, Ordered::Rows(&[]), view)?;
                let values = parts.selected.iter().map(|one| one.value.sql.clone()).collect();
                return Ok((substituted(alias, &relation(&parts), values)?, String::new()));
            }
            // Where no row is found, a column of the tables joined here is NULL by itself. A computed value is not,
            // nor is a column of the left side, whose alias was given before.
            let before = self.aliases;
            let bare = |parts: &Parts| {
                parts.selected.iter().all(|one| {
                    let sql = &one.value.sql;
                    let alias = sql.strip_prefix('t').and_then(|rest| rest.split('.').next());
                    let number = alias.and_then(|digits| digits.parse::<u32>().ok());
                    !sql.contains(['(', '\'', ' ']) && number.is_some_and(|number| number > before)
                })
            };
            if !select.from.is_empty() && joins_flat(&select.from) {
                let mut inner = Level::default();
                let left = view.level.map(|level| &level.used);
                left.into_iter().for_each(|used| used.set(false));
                let from = self.from(&select.from, &mut inner, view)?;
                let from = from.strip_prefix(" FROM ").unwrap_or(&from).to_owned();
                let depends = left.is_some_and(|used| used.replace(true));
                if depends || (!is_lateral(&select.from, &from) && names_table_of(&from, applied)) {
                    return Err(Message::unsupported(
                        "APPLY of a query whose FROM depends on the left side",
                    ));
                }
                let filter = match &select.filter {
                    Some(filter) => {
                        self.condition(filter, View::inner(&view, &inner, Clause::Where))?
                    }
                    None => "1".to_owned(),
                };
                let mut without = select.clone();
                without.filter = None;
                let selected = self.selected_within(
                    &without,
                    &inner,
                    View::inner(&view, &inner, Clause::Select),
                )?;
                let parts = Parts {
                    distinct: false,
                    selected,
                    tail: String::new(),
                    alone: None,
                    order: Vec::new(),
                    places: Vec::new(),
                    single: false,
                };
                if !keep || bare(&parts) {
                    let word = if keep { "LEFT JOIN" } else { "JOIN" };
                    let values = parts.selected.iter().map(|one| one.value.sql.clone()).collect();
                    let table = substituted(alias, &relation(&parts), values)?;
                    // A table alone in parentheses would lose its alias.
                    let several = select.from.len() > 1
                        || select.from.iter().any(|source| !source.joins.is_empty());
                    let from = if several { format!("({from})") } else { from };
                    return Ok((table, format!(" {word} {from} ON {filter}")));
                }
            }
        }
        let relation = self.query(query, view, true)?;
        if !relation.single {
            return Err(Message::unsupported(
                "APPLY of a query that depends on the left side and is more than a join or one row",
            ));
        }
        self.repeat(relation.sql.len().saturating_mul(relation.columns.len()))?;
        let values = (1..=relation.columns.len())
            .map(|at| format!("(SELECT c{at} FROM ({}))", relation.sql))
            .collect();
        let table = substituted(alias, &relation, values)?;
        let joined = match keep {
            true => String::new(),
            // Where there is no row, the left side has none either.
            false => {
                let t = self.alias();
                format!(" JOIN (SELECT 1) AS {t} ON EXISTS ({})", relation.sql)
            }
        };
        Ok((table, joined))
    }
}

/// A SELECT that gives each row of its tables as it is.
fn plain(query: &Query) -> Option<&Select> {
    let QueryBody::Select(select) = &query.body else { return None };
    let simple = query.with.is_empty()
        && query.order.is_empty()
        && query.offset.is_none()
        && query.xml.is_none()
        && !select.distinct
        && select.top.is_none()
        && select.group.is_empty()
        && select.having.is_none()
        && select.into.is_none()
        && !visit::aggregates(select);
    simple.then_some(select)
}

/// Whether no join of these keeps rows of its right side.
fn joins_flat(sources: &[TableSource]) -> bool {
    sources
        .iter()
        .flat_map(|source| &source.joins)
        .all(|join| matches!(join.kind, JoinKind::Inner(_) | JoinKind::Cross | JoinKind::Left(_)))
}

/// Whether it is one function's call, whose arguments SQLite takes from the tables before it.
fn is_lateral(sources: &[TableSource], from: &str) -> bool {
    matches!(sources, [only] if only.joins.is_empty()) && from.starts_with("json_each(")
}

/// Whether a FROM in SQLite names columns of these tables, which it would not see from within.
fn names_table_of(from: &str, level: &Level) -> bool {
    let columns = level.tables.iter().flat_map(|table| &table.columns);
    let of_level: HashSet<u32> = columns.flat_map(|column| aliases(&column.value.sql)).collect();
    aliases(from).any(|alias| of_level.contains(&alias))
}

/// The numbers of the aliases whose columns a text of SQLite's names: 1 of `t1.c2`. Strings and names say nothing.
fn aliases(sql: &str) -> impl Iterator<Item = u32> + '_ {
    let mut quote = None;
    let points = sql.char_indices().filter(move |(_, next)| {
        match (quote, next) {
            (None, '\'' | '"') => quote = Some(*next),
            (Some(open), _) if open == *next => quote = None,
            _ => {}
        }
        quote.is_none() && *next == '.'
    });
    points.filter_map(move |(at, _)| {
        let before = &sql[..at];
        let digits = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let rest = digits.strip_suffix('t')?;
        let is_whole = !rest.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '"');
        before[digits.len()..].parse().ok().filter(|_| is_whole)
    })
}

fn relation(parts: &Parts) -> Relation {
    let columns = parts.selected.iter().map(super::order::Selected::column).collect();
    Relation { sql: String::new(), columns, single: parts.single }
}

/// A table whose columns are expressions.
fn substituted(alias: &TableAlias, relation: &Relation, values: Vec<String>) -> Result<ScopeTable> {
    let names = named_columns(&alias.name, &relation.columns, &alias.columns)?;
    let columns = names
        .into_iter()
        .zip(&relation.columns)
        .zip(values)
        .map(|((name, column), sql)| ScopeColumn {
            name,
            value: Typed {
                sql,
                data_type: column.data_type,
                sensitive: column.sensitive,
                constant: None,
            },
        })
        .collect();
    Ok(ScopeTable {
        name: alias.name.clone().into(),
        columns,
        computed: true,
        row: None,
        is_prefixed: false,
    })
}

#[cfg(test)]
mod tests {
    use super::aliases;

    #[test]
    fn aliases_are_found_before_their_columns() {
        let found = |sql: &str| aliases(sql).collect::<Vec<_>>();
        assert_eq!(found("tsql_add(t1.c2, t12.\"a\") + 4.5"), [1, 12]);
        assert!(found("\"d3\".\"t1\" AS t4 WHERE at5.c1 = é.t.c1 .5").is_empty());
    }
}
