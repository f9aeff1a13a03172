//! One SELECT.

use pellucid_tsql::ast::{
    Expression, Literal, ObjectName, Offset, OrderItem, Select, SelectItem, Top,
};

use super::order::{order_key, OrderKey, Selected};
use super::scope::{called, Clause, Column, Grouped, Level, Relation, ScopeTable};
use super::{visit, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::{Family, SqlType};

/// The clauses of a SELECT of SQLite's.
pub(super) struct Parts {
    pub distinct: bool,
    pub selected: Vec<Selected>,
    /// From FROM to HAVING.
    pub tail: String,
    /// HAVING without GROUP BY: whether the one group is a row.
    pub alone: Option<String>,
    /// Keys of ORDER BY.
    pub order: Vec<OrderKey>,
    /// Of ORDER BY of a set operator: which selected thing each item is.
    pub places: Vec<usize>,
    pub single: bool,
}

/// What ORDER BY is of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ordered<'q> {
    /// Of the SELECT itself.
    Rows(&'q [OrderItem]),
    /// Of set operators whose first SELECT it is: each item is something that is selected.
    Sets(&'q [OrderItem]),
}

impl Work<'_> {
    pub(super) fn select(
        &mut self,
        select: &Select,
        order: &[OrderItem],
        offset: Option<&Offset>,
        outer: View<'_>,
    ) -> Result<Relation> {
        let parts = self.parts(select, Ordered::Rows(order), outer)?;
        self.limited(select, parts, offset)
    }

    /// The first SELECT under set operators, and which of its columns the items of their ORDER BY are.
    pub(super) fn first_select(
        &mut self,
        select: &Select,
        order: &[OrderItem],
        outer: View<'_>,
    ) -> Result<(Relation, Vec<usize>)> {
        let mut parts = self.parts(select, Ordered::Sets(order), outer)?;
        let places = std::mem::take(&mut parts.places);
        Ok((self.limited(select, parts, None)?, places))
    }

    fn limited(
        &mut self,
        select: &Select,
        parts: Parts,
        offset: Option<&Offset>,
    ) -> Result<Relation> {
        let columns: Vec<Column> = parts.selected.iter().map(Selected::column).collect();
        if let Some(top) = &select.top {
            if top.percent || top.with_ties {
                return self.ranked_top(top, parts, columns);
            }
        }
        let limit = self.limit(select.top.as_ref(), offset)?;
        let one = |count: &Expression| matches!(count, Expression::Literal(Literal::Integer(digits)) if digits == "1");
        let single = parts.single || select.top.as_ref().is_some_and(|top| one(&top.count));
        let order = match parts.alone {
            None => order_text(&texts(&parts.order)),
            Some(_) => String::new(),
        };
        let sql = format!("{}{order}{limit}", parts.head());
        Ok(Relation { sql, columns, single })
    }

    pub(super) fn parts(
        &mut self,
        select: &Select,
        ordered: Ordered<'_>,
        outer: View<'_>,
    ) -> Result<Parts> {
        if select.into.is_some() {
            return Err(Message::unsupported("SELECT INTO"));
        }
        let mut level = Level::default();
        let equations = self.equations(select, &outer);
        let mut tail = self.sources_where(&select.from, equations, &mut level, outer)?;
        let order = match ordered {
            Ordered::Rows(order) => order,
            Ordered::Sets(_) => &[],
        };
        let in_order = order.iter().any(|item| visit::has(&item.value));
        let aggregated = !select.group.is_empty() || visit::aggregates(select) || in_order;
        if aggregated && select.from.is_empty() {
            // Without a FROM of its own an aggregate would be one of the outer query.
            tail.push_str(" FROM (SELECT 1)");
        }
        let view = |clause| View::inner(&outer, &level, clause);
        if let Some(filter) = &select.filter {
            let filter = self.condition(filter, view(Clause::Where))?;
            tail.push_str(&format!(" WHERE {filter}"));
        }
        let mut columns = Vec::new();
        if !select.group.is_empty() {
            let keys = self.group_keys(&select.group, &mut columns, &level, &outer)?;
            tail.push_str(&format!(" GROUP BY {}", keys.join(", ")));
        }
        let grouped =
            aggregated.then_some(Grouped { expressions: &select.group, columns: &columns });
        let view = |clause| View { grouped, ..View::inner(&outer, &level, clause) };
        let assigning = matches!(select.items.first(), Some(SelectItem::Assign { .. }));
        let selected = match assigning && outer.is_top() && self.split.is_some() {
            true => self.assigned(&select.items, view(Clause::Select))?,
            false => self.selected(&select.items, &level, view(Clause::Select))?,
        };
        let mut alone = None;
        if let Some(having) = &select.having {
            let having = self.outside_split(|work| work.condition(having, view(Clause::Having)))?;
            match select.group.is_empty() {
                true => alone = Some(having),
                false => tail.push_str(&format!(" HAVING {having}")),
            }
        }
        if select.distinct && selected.iter().any(|one| one.value.data_type == SqlType::Xml) {
            return Err(Message::of(table::XML_NOT_DISTINCT, []));
        }
        let order = self.outside_split(|work| {
            work.order_keys(order, &selected, select.distinct, view(Clause::OrderBy))
        })?;
        let mut places = Vec::new();
        if let Ordered::Sets(order) = ordered {
            for item in order {
                places.push(self.place(item, &selected, view(Clause::OrderBy))?);
            }
        }
        let single = (aggregated && select.group.is_empty()) || select.from.is_empty();
        Ok(Parts { distinct: select.distinct, selected, tail, alone, order, places, single })
    }

    fn group_keys(
        &mut self,
        group: &[Expression],
        columns: &mut Vec<(usize, usize)>,
        level: &Level,
        outer: &View<'_>,
    ) -> Result<Vec<String>> {
        let view = View::inner(outer, level, Clause::GroupBy);
        let before = level.used.replace(false);
        let mut keys = Vec::new();
        for expression in group {
            level.used.set(false);
            let value = self.outside_split(|work| work.expression(expression, view))?;
            if !level.used.get() {
                return Err(Message::of(table::GROUP_BY_WITHOUT_COLUMN, []));
            }
            if let Expression::Column(column) = expression {
                columns.extend(view.place(column));
            }
            keys.push(order_key(&value));
        }
        level.used.set(before || !group.is_empty());
        Ok(keys)
    }

    /// What a SELECT gives whose FROM is translated already.
    pub(super) fn selected_within(
        &mut self,
        select: &Select,
        level: &Level,
        view: View<'_>,
    ) -> Result<Vec<Selected>> {
        self.selected(&select.items, level, view)
    }

    pub(super) fn selected(
        &mut self,
        items: &[SelectItem],
        level: &Level,
        view: View<'_>,
    ) -> Result<Vec<Selected>> {
        let mut selected = Vec::new();
        for item in items {
            match item {
                SelectItem::Star(of) => self.star(of.as_ref(), level, view, &mut selected)?,
                SelectItem::Value { value, alias } => {
                    let mut name = alias.as_ref().map(|alias| alias.as_str().to_owned());
                    if let (None, Expression::Column(column)) = (&name, value) {
                        name = Some(column.column.as_str().to_owned());
                    }
                    selected.push(Selected { name, value: self.expression(value, view)? });
                }
                SelectItem::Assign { .. } => {
                    return Err(Message::unsupported("an assignment within a query"))
                }
            }
        }
        Ok(selected)
    }

    fn star(
        &mut self,
        of: Option<&ObjectName>,
        level: &Level,
        view: View<'_>,
        selected: &mut Vec<Selected>,
    ) -> Result<()> {
        self.refuse_bound_star()?;
        let wanted = |table: &&ScopeTable| of.is_none_or(|name| called(table, name));
        let mut tables = level.tables.iter().filter(wanted).peekable();
        if tables.peek().is_none() {
            return Err(match of {
                None => Message::of(table::NO_TABLE, []),
                Some(name) => {
                    Message::of(table::UNKNOWN_PREFIX, [&super::scope::object_text(name)])
                }
            });
        }
        level.used.set(true);
        for table in tables {
            for column in &table.columns {
                if view.grouped.is_some() {
                    // Each has to be grouped by.
                    let name = pellucid_tsql::ast::ColumnName {
                        table: Some(table.name.clone()),
                        column: pellucid_tsql::ast::Name::new(column.name.clone())
                            .ok_or_else(|| Message::of(table::UNKNOWN_COLUMN, [&column.name]))?,
                    };
                    view.column(&name)?;
                }
                if column.value.data_type == crate::values::types::SqlType::XmlNode {
                    return Err(Message::of(table::XML_NODE_ALONE, [&column.name]));
                }
                let name = Some(column.name.clone());
                self.repeat(column.value.sql.len())?;
                selected.push(Selected { name, value: column.value.clone() });
            }
        }
        Ok(())
    }

    /// TOP with PERCENT or WITH TIES, by the rank of each row.
    fn ranked_top(&mut self, top: &Top, parts: Parts, columns: Vec<Column>) -> Result<Relation> {
        if top.with_ties && parts.order.is_empty() {
            return Err(Message::of(table::TIES_WITHOUT_ORDER_BY, []));
        }
        if parts.alone.is_some() {
            return Err(Message::unsupported(
                "TOP with PERCENT or WITH TIES beside HAVING without GROUP BY",
            ));
        }
        // What DISTINCT orders by is selected, so that the keys make no row another one.
        let distinct = if parts.distinct { "DISTINCT " } else { "" };
        let count = self.expression(&top.count, View::EMPTY)?;
        // Computed in a query of their own: a key may be a window function, and so is the rank by it.
        let called: Vec<OrderKey> =
            (1..).zip(&parts.order).map(|(at, key)| key.called(format!("o{at}"))).collect();
        let keys = parts.order.iter().enumerate();
        let keys: String =
            keys.map(|(at, key)| format!(", {} AS o{}", key.value, at + 1)).collect();
        let over = format!("({})", order_text(&texts(&called)).trim_start());
        let rank = if top.with_ties { "rank()" } else { "row_number()" };
        let most = match top.percent {
            true => {
                let float = self.coerced(count, SqlType::Float)?.sql;
                // ceil, which not every SQLite has.
                format!("tsql_ceiling(n * ({float}) / 100.0, {})", SqlType::Float.code())
            }
            false => {
                if count.data_type.family() != Family::Integer {
                    return Err(Message::of(table::TOP_NOT_INTEGER, []));
                }
                format!("tsql_rows({}, 0)", count.sql)
            }
        };
        let names: Vec<String> = (1..=columns.len()).map(|at| format!("c{at}")).collect();
        let names = names.join(", ");
        let sql = format!(
            "SELECT {names} FROM (SELECT {names}, {rank} OVER {over} AS r, row_number() OVER {over} AS k, \
             count(*) OVER () AS n FROM (SELECT {distinct}{}{keys}{})) WHERE r <= {most} ORDER BY k",
            parts.list(),
            parts.tail
        );
        Ok(Relation { sql, columns, single: false })
    }
}

impl Parts {
    /// `SELECT .. FROM ..`, without ORDER BY.
    pub fn head(&self) -> String {
        if let Some(having) = &self.alone {
            // SQLite takes HAVING only where it sees a GROUP BY or selects an aggregate.
            let names: Vec<String> = (1..=self.selected.len()).map(|at| format!("c{at}")).collect();
            return format!(
                "SELECT {} FROM (SELECT {}, count(*) AS n, {having} AS h{}) WHERE h",
                names.join(", "),
                self.list(),
                self.tail
            );
        }
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        format!("SELECT {distinct}{}{}", self.list(), self.tail)
    }

    fn list(&self) -> String {
        let all: Vec<String> = self
            .selected
            .iter()
            .enumerate()
            .map(|(at, one)| {
                let text = one.value.data_type.family() == Family::Text && !one.value.sensitive;
                let collation = if self.distinct && text { " COLLATE NOCASE" } else { "" };
                format!("{}{collation} AS c{}", one.value.sql, at + 1)
            })
            .collect();
        all.join(", ")
    }
}

fn texts(keys: &[OrderKey]) -> Vec<String> {
    keys.iter().map(OrderKey::text).collect()
}

pub(super) fn order_text(keys: &[String]) -> String {
    match keys.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY {}", keys.join(", ")),
    }
}
