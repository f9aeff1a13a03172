//! WITH, set operators, and what stands behind them.

use pellucid_tsql::ast::{OrderItem, Query, QueryBody, QueryOption, SetChain, SetOperator};

use super::from::named_columns;
use super::order::order_key;
use super::scope::{Clause, Column, CommonTable, Level, Relation};
use super::select::order_text;
use super::{Typed, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::{unify, Family, SqlType};

impl Work<'_> {
    /// A query; `nested` if it is part of another one.
    pub(super) fn query(
        &mut self,
        query: &Query,
        outer: View<'_>,
        nested: bool,
    ) -> Result<Relation> {
        if self.in_output {
            return Err(Message::of(table::QUERY_IN_OUTPUT, []));
        }
        self.options(&query.options)?;
        let mut level = Level::default();
        self.depth += 1;
        let with = self.with(&query.with, &mut level, outer)?;
        let view = View::inner(&outer, &level, Clause::Other);
        let mut relation = self.query_body(query, view, nested)?;
        self.depth -= 1;
        if let Some(xml) = &query.xml {
            if nested && matches!(query.body, QueryBody::Sets(_)) {
                return Err(Message::of(table::XML_OF_SETS, []));
            }
            relation = self.for_xml(relation, xml, nested)?;
        }
        relation.sql.insert_str(0, &with);
        Ok(relation)
    }

    /// `OPTION (..)`, which has to be read before the WITH that it is about.
    pub(super) fn options(&mut self, options: &[QueryOption]) -> Result<()> {
        for option in options {
            match option {
                QueryOption::MaxRecursion(most) => {
                    if *most > 32_767 {
                        return Err(Message::of(table::MAXRECURSION_TOO_LARGE, [&most]));
                    }
                    self.recursion_most = *most;
                }
                // How a plan is made is SQLite's affair.
                QueryOption::Recompile | QueryOption::MaxDop(_) => {}
            }
        }
        Ok(())
    }

    fn query_body(&mut self, query: &Query, view: View<'_>, nested: bool) -> Result<Relation> {
        let bounded = query.offset.is_some()
            || query.xml.is_some()
            || matches!(&query.body, QueryBody::Select(select) if select.top.is_some());
        if nested && !query.order.is_empty() && !bounded {
            return Err(Message::of(table::ORDER_BY_IN_SUBQUERY, []));
        }
        match &query.body {
            QueryBody::Select(select) => {
                self.select(select, &query.order, query.offset.as_ref(), view)
            }
            QueryBody::Sets(chain) => {
                let (relation, places) = self.sets(chain, &query.order, view)?;
                self.ordered_sets(relation, &places, query)
            }
        }
    }

    /// `WITH ..`, or nothing. The tables are added to `level`.
    pub(super) fn with(
        &mut self,
        tables: &[pellucid_tsql::ast::CommonTable],
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        let mut texts = Vec::new();
        for table in tables {
            let name = table.name.as_str();
            if level.common.iter().any(|other| super::scope::same(&other.name, name)) {
                return Err(Message::of(table::EXPRESSION_NAMED_TWICE, [&name]));
            }
            self.aliases += 1;
            let sqlite = format!("w{}", self.aliases);
            let (relation, hidden) = self.common(table, &sqlite, level, outer)?;
            let names = named_columns(&table.name, &relation.columns, &table.columns)?;
            let columns = relation
                .columns
                .into_iter()
                .zip(names)
                .map(|(column, name)| Column { name: Some(name), ..column })
                .collect::<Vec<_>>();
            let mut list: Vec<String> = (1..=columns.len()).map(|at| format!("c{at}")).collect();
            list.extend(hidden);
            texts.push(format!("{sqlite}({}) AS ({})", list.join(", "), relation.sql));
            let aliases = Default::default();
            level.common.push(CommonTable { name: name.to_owned(), sqlite, columns, aliases });
        }
        match texts.is_empty() {
            true => Ok(String::new()),
            false => Ok(format!("WITH RECURSIVE {} ", texts.join(", "))),
        }
    }

    /// A member of set operators; where it is the first, which of its columns the items of `order` are.
    fn body(
        &mut self,
        body: &QueryBody,
        order: &[OrderItem],
        view: View<'_>,
    ) -> Result<(Relation, Vec<usize>)> {
        match body {
            QueryBody::Select(select) => self.first_select(select, order, view),
            QueryBody::Sets(chain) => self.sets(chain, order, view),
        }
    }

    fn sets(
        &mut self,
        chain: &SetChain,
        order: &[OrderItem],
        view: View<'_>,
    ) -> Result<(Relation, Vec<usize>)> {
        let (first, places) = self.body(&chain.first, order, view)?;
        let mut columns = first.columns.clone();
        let mut members = vec![first];
        for (_, body) in &chain.rest {
            if matches!(body, QueryBody::Select(select) if select.into.is_some()) {
                return Err(Message::of(table::INTO_NOT_FIRST, []));
            }
            let (member, _) = self.body(body, &[], view)?;
            if member.columns.len() != columns.len() {
                return Err(Message::of(table::UNEQUAL_COLUMNS, []));
            }
            for (column, other) in columns.iter_mut().zip(&member.columns) {
                column.data_type = unify(column.data_type, other.data_type)?;
                column.sensitive |= other.sensitive;
            }
            members.push(member);
        }
        let distinct = chain.rest.iter().any(|(operator, _)| *operator != SetOperator::UnionAll);
        for column in &mut columns {
            if column.data_type == SqlType::Null {
                column.data_type = SqlType::Int;
            }
            if distinct && column.data_type == SqlType::Xml {
                return Err(Message::of(table::XML_IN_UNION, []));
            }
        }
        let mut sql = String::new();
        for (at, member) in members.into_iter().enumerate() {
            if at > 0 {
                sql.push_str(match chain.rest[at - 1].0 {
                    SetOperator::Union => " UNION ",
                    SetOperator::UnionAll => " UNION ALL ",
                    SetOperator::Except => " EXCEPT ",
                    SetOperator::Intersect => " INTERSECT ",
                });
            }
            sql.push_str(&self.member(member, &columns, distinct));
        }
        Ok((Relation { sql, columns, single: false }, places))
    }

    /// A member of a set operator, its columns of these types.
    fn member(&mut self, member: Relation, columns: &[Column], distinct: bool) -> String {
        let list: Vec<String> = columns
            .iter()
            .zip(&member.columns)
            .enumerate()
            .map(|(at, (column, own))| {
                let name = format!("c{}", at + 1);
                let value = Typed {
                    sql: name.clone(),
                    data_type: own.data_type,
                    sensitive: own.sensitive,
                    constant: None,
                };
                let sql = self.converted(value, column.data_type).sql;
                let folds =
                    distinct && column.data_type.family() == Family::Text && !column.sensitive;
                format!("{sql}{} AS {name}", if folds { " COLLATE NOCASE" } else { "" })
            })
            .collect();
        format!("SELECT {} FROM ({})", list.join(", "), member.sql)
    }

    fn ordered_sets(
        &mut self,
        relation: Relation,
        places: &[usize],
        query: &Query,
    ) -> Result<Relation> {
        if query.order.is_empty() && query.offset.is_none() {
            return Ok(relation);
        }
        let t = self.alias();
        let mut keys = Vec::new();
        for (item, at) in query.order.iter().zip(places) {
            let value = relation.columns[*at].of(&t, *at);
            if value.data_type == SqlType::Xml {
                return Err(Message::of(table::XML_NOT_COMPARED, []));
            }
            let direction = if item.descending { " DESC" } else { "" };
            keys.push(format!("{}{direction}", order_key(&value)));
        }
        let names: Vec<String> =
            (1..=relation.columns.len()).map(|at| format!("{t}.c{at} AS c{at}")).collect();
        let limit = self.limit(None, query.offset.as_ref())?;
        let sql = format!(
            "SELECT {} FROM ({}) AS {t}{}{limit}",
            names.join(", "),
            relation.sql,
            order_text(&keys)
        );
        Ok(Relation { sql, ..relation })
    }
}
