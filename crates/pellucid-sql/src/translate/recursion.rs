//! Common table expressions, also those that refer to themselves.
//!
//! A recursive one gets a column `d` that counts its levels, so that MAXRECURSION holds.

use pellucid_tsql::ast::{Query, QueryBody, SetOperator, TablePrimary, TableSource};

use super::from::named_columns;
use super::scope::{Clause, Column, CommonTable, Level, Relation};
use super::select::Ordered;
use super::{View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::Family;

impl Work<'_> {
    /// What a common table expression stands for, and the name of its hidden column.
    pub(super) fn common(
        &mut self,
        table: &pellucid_tsql::ast::CommonTable,
        sqlite: &str,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<(Relation, Option<String>)> {
        let name = table.name.as_str();
        let recursive = match &table.query.body {
            QueryBody::Sets(chain) => chain.rest.iter().any(|(_, body)| refers(body, name)),
            QueryBody::Select(_) => false,
        };
        if !recursive {
            let view = View::inner(&outer, level, Clause::Other);
            return Ok((self.query(&table.query, view, true)?, None));
        }
        let (anchor, step) = parts(&table.query, name)?;
        let view = View::inner(&outer, level, Clause::Other);
        let anchor = self.query(&anchor, view, true)?;
        let names = named_columns(&table.name, &anchor.columns, &table.columns)?;
        let columns: Vec<Column> = anchor
            .columns
            .iter()
            .zip(names)
            .map(|(column, name)| Column { name: Some(name), ..column.clone() })
            .collect();
        level.common.push(CommonTable {
            name: name.to_owned(),
            sqlite: sqlite.to_owned(),
            columns: columns.clone(),
            aliases: Default::default(),
        });
        let step = self.recursive_step(&step, &columns, name, level, outer);
        level.common.pop();
        let list: Vec<String> = (1..=columns.len()).map(|at| format!("c{at}")).collect();
        let sql =
            format!("SELECT {}, 0 FROM ({}) UNION ALL {}", list.join(", "), anchor.sql, step?);
        Ok((Relation { sql, columns: anchor.columns, single: false }, Some("d".to_owned())))
    }

    fn recursive_step(
        &mut self,
        step: &QueryBody,
        columns: &[Column],
        name: &str,
        level: &Level,
        outer: View<'_>,
    ) -> Result<String> {
        let unsupported = |what: &str| Err(Message::unsupported(format!("{what} in a recursion")));
        let QueryBody::Select(select) = step else { return unsupported("a set operator") };
        let direct = |source: &TableSource| {
            std::iter::once(&source.table).chain(source.joins.iter().map(|join| &join.right)).any(
                |primary| {
                    !matches!(primary, TablePrimary::Query { .. }) && in_primary(primary, name)
                },
            )
        };
        if select.from.iter().filter(|source| in_source(source, name)).count() != 1
            || !select.from.iter().any(direct)
        {
            return unsupported("a reference within a sub-query, or several,");
        }
        if select.distinct
            || select.top.is_some()
            || !select.group.is_empty()
            || super::visit::aggregates(select)
        {
            return unsupported("DISTINCT, TOP, GROUP BY or an aggregate");
        }
        let view = View::inner(&outer, level, Clause::Other);
        let parts = self.parts(select, Ordered::Rows(&[]), view)?;
        if parts.selected.len() != columns.len() {
            return Err(Message::of(table::UNEQUAL_COLUMNS, []));
        }
        let mut list = Vec::new();
        for (at, (one, column)) in parts.selected.iter().zip(columns).enumerate() {
            let (found, wanted) = (one.value.data_type, column.data_type);
            let exact = found == wanted
                || found.family() == Family::Null
                || (found.family() == Family::Integer && wanted.family() == Family::Integer);
            if !exact {
                return Err(Message::of(
                    table::RECURSIVE_TYPES_DIFFER,
                    [&column.name.as_deref().unwrap_or_default(), &name],
                ));
            }
            list.push(format!("{} AS c{}", self.converted(one.value.clone(), wanted).sql, at + 1));
        }
        let aliases = level.common.last().map(|table| table.aliases.take()).unwrap_or_default();
        let [alias] = &aliases[..] else {
            return unsupported("a reference within a sub-query, or several,");
        };
        let most = self.recursion_most;
        let depth = format!("tsql_recursion({alias}.d + 1, {most})");
        Ok(format!("SELECT {}, {depth}{}", list.join(", "), parts.tail))
    }
}

/// The anchor as a query, and what recurs: the last member, behind UNION ALL.
fn parts(query: &Query, name: &str) -> Result<(Query, QueryBody)> {
    let unsupported = |what: &str| Err(Message::unsupported(format!("{what} of a recursion")));
    let QueryBody::Sets(chain) = &query.body else { return unsupported("the form") };
    let Some(((operator, step), before)) = chain.rest.split_last() else {
        return unsupported("the form");
    };
    if *operator != SetOperator::UnionAll {
        return Err(Message::of(table::RECURSIVE_WITHOUT_UNION, [&name]));
    }
    let several = refers(&chain.first, name) || before.iter().any(|(_, body)| refers(body, name));
    if several
        || !query.order.is_empty()
        || query.offset.is_some()
        || query.xml.is_some()
        || !query.with.is_empty()
    {
        return unsupported("several recursive members, or ORDER BY,");
    }
    let mut body = chain.first.clone();
    for (operator, member) in before {
        body = QueryBody::set(body, *operator, member.clone());
    }
    let anchor = Query {
        with: Vec::new(),
        body,
        order: Vec::new(),
        offset: None,
        xml: None,
        options: query.options.clone(),
    };
    Ok((anchor, step.clone()))
}

/// Whether a FROM clause of the body names the table.
fn refers(body: &QueryBody, name: &str) -> bool {
    match body {
        QueryBody::Select(select) => select.from.iter().any(|source| in_source(source, name)),
        QueryBody::Sets(chain) => {
            refers(&chain.first, name) || chain.rest.iter().any(|(_, body)| refers(body, name))
        }
    }
}

fn in_source(source: &TableSource, name: &str) -> bool {
    in_primary(&source.table, name) || source.joins.iter().any(|join| in_primary(&join.right, name))
}

fn in_primary(primary: &TablePrimary, name: &str) -> bool {
    match primary {
        TablePrimary::Table { name: table, .. } => {
            table.is_bare() && super::scope::same(table.object.as_str(), name)
        }
        TablePrimary::Query { query, .. } => refers(&query.body, name),
        TablePrimary::Joined(source) => in_source(source, name),
        TablePrimary::Pivot(pivot) => in_source(&pivot.source, name),
        TablePrimary::Unpivot(unpivot) => in_source(&unpivot.source, name),
        _ => false,
    }
}
