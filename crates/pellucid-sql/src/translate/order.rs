//! ORDER BY, TOP and OFFSET. NULLs come first where it ascends, in SQLite as in T-SQL.

use pellucid_tsql::ast::{Expression, Literal, Offset, OrderItem, Top};

use super::scope::Column;
use super::{Typed, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::{Family, SqlType};

/// Behind a text that is ordered without regard to case.
const FOLDED: &str = " COLLATE NOCASE";

/// What a value is ordered, grouped and told apart by.
pub(super) fn order_key(value: &Typed) -> String {
    match value.data_type.family() {
        // A number alone would be a position.
        _ if value.sql.bytes().all(|byte| byte.is_ascii_digit()) => format!("({} + 0)", value.sql),
        Family::Text | Family::Variant if !value.sensitive => {
            format!("{}{FOLDED}", value.sql)
        }
        Family::Guid => format!("tsql_guid_key({})", value.sql),
        _ => value.sql.clone(),
    }
}

/// A key of ORDER BY.
#[derive(Debug, Clone)]
pub(super) struct OrderKey {
    /// What it orders by, with its collation.
    pub value: String,
    pub descending: bool,
}

impl OrderKey {
    /// The same key of a query in whose FROM it is the column `name`.
    pub fn called(&self, name: String) -> Self {
        let collation = match self.value.ends_with(FOLDED) {
            true => FOLDED,
            false => "",
        };
        Self { value: format!("{name}{collation}"), descending: self.descending }
    }

    /// As ORDER BY has it.
    pub fn text(&self) -> String {
        format!("{}{}", self.value, if self.descending { " DESC" } else { "" })
    }
}

/// Something that is selected.
#[derive(Debug, Clone)]
pub(super) struct Selected {
    pub name: Option<String>,
    pub value: Typed,
}

impl Selected {
    /// It as a column of the result.
    pub fn column(&self) -> Column {
        Column {
            name: self.name.clone(),
            data_type: self.value.data_type,
            sensitive: self.value.sensitive,
        }
    }
}

/// The selected thing that an ORDER BY item names, by its number or its name.
pub(super) fn named(item: &OrderItem, selected: &[Selected]) -> Result<Option<usize>> {
    match &item.value {
        Expression::Literal(Literal::Integer(digits)) => {
            let number = digits.parse::<usize>().unwrap_or(usize::MAX);
            match (1..=selected.len()).contains(&number) {
                true => Ok(Some(number - 1)),
                false => Err(Message::of(table::ORDER_BY_POSITION, [&digits])),
            }
        }
        Expression::Literal(_) => Err(Message::of(table::ORDER_BY_CONSTANT, [])),
        Expression::Variable(_) => Err(Message::of(table::ORDER_BY_VARIABLE, [])),
        Expression::Column(column) if column.table.is_none() => {
            let name = column.column.as_str();
            let mut found = selected.iter().enumerate().filter(|(_, one)| {
                one.name.as_deref().is_some_and(|other| super::scope::same(other, name))
            });
            match (found.next(), found.next()) {
                (Some((at, one)), Some((_, other))) if one.value.sql == other.value.sql => {
                    Ok(Some(at))
                }
                (Some(_), Some(_)) => Err(Message::of(table::AMBIGUOUS_COLUMN, [&name])),
                (first, _) => Ok(first.map(|(at, _)| at)),
            }
        }
        _ => Ok(None),
    }
}

impl Work<'_> {
    /// What each item orders by, with its direction.
    pub(super) fn order_keys(
        &mut self,
        order: &[OrderItem],
        selected: &[Selected],
        distinct: bool,
        view: View<'_>,
    ) -> Result<Vec<OrderKey>> {
        let mut keys = Vec::new();
        for item in order {
            let value = match named(item, selected)? {
                Some(at) => {
                    self.repeat(selected[at].value.sql.len())?;
                    order_key(&selected[at].value)
                }
                None => {
                    let value = self.expression(&item.value, view)?;
                    if distinct && !selected.iter().any(|one| one.value.sql == value.sql) {
                        return Err(Message::of(table::ORDER_BY_OF_DISTINCT, []));
                    }
                    if value.data_type == SqlType::Xml {
                        return Err(Message::of(table::XML_NOT_COMPARED, []));
                    }
                    order_key(&value)
                }
            };
            keys.push(OrderKey { value, descending: item.descending });
        }
        Ok(keys)
    }

    /// What an item of a set operator's ORDER BY is among what its first SELECT gives: by number or name, or because it
    /// is the same expression; 104 if it is none of them.
    pub(super) fn place(
        &mut self,
        item: &OrderItem,
        selected: &[Selected],
        view: View<'_>,
    ) -> Result<usize> {
        /// No such name, or not one that a grouped query gives.
        const UNKNOWN: [u32; 4] = [207, 4104, 8120, 8127];
        // Two columns that are the same in the first SELECT may differ in the others.
        let ambiguous = |name: &str| Message::of(table::AMBIGUOUS_COLUMN, [&name]);
        let bare = match &item.value {
            Expression::Column(name) if name.table.is_none() => Some(name.column.as_str()),
            _ => None,
        };
        if let Some(column) = bare {
            let same = |one: &&Selected| {
                let name = one.name.as_deref();
                name.is_some_and(|name| super::scope::same(name, column))
            };
            if selected.iter().filter(same).count() > 1 {
                return Err(ambiguous(column));
            }
        }
        if let Some(at) = named(item, selected)? {
            return Ok(at);
        }
        let of_union = || Message::of(table::ORDER_BY_OF_UNION, []);
        let value = match self.expression(&item.value, view) {
            Err(message) if UNKNOWN.contains(&message.number) => return Err(of_union()),
            value => value?,
        };
        let mut same = (0..selected.len()).filter(|at| selected[*at].value.sql == value.sql);
        match (same.next(), same.next(), &item.value) {
            (Some(_), Some(_), Expression::Column(name)) => Err(ambiguous(name.column.as_str())),
            (Some(at), None, _) => Ok(at),
            _ => Err(of_union()),
        }
    }

    /// `LIMIT ..` of TOP or OFFSET.
    pub(super) fn limit(&mut self, top: Option<&Top>, offset: Option<&Offset>) -> Result<String> {
        let rows = |work: &mut Self, count: &Expression, which: u8| -> Result<String> {
            let count = work.expression(count, View::EMPTY)?;
            if count.data_type.family() != Family::Integer {
                return Err(Message::of(table::TOP_NOT_INTEGER, []));
            }
            Ok(format!("coalesce(tsql_rows({}, {which}), 0)", count.sql))
        };
        match (top, offset) {
            (Some(_), Some(_)) => Err(Message::of(table::TOP_WITH_OFFSET, [])),
            (Some(top), None) => Ok(format!(" LIMIT {}", rows(self, &top.count, 0)?)),
            (None, Some(offset)) => {
                let fetch = match &offset.fetch {
                    Some(fetch) => rows(self, fetch, 2)?,
                    None => "-1".to_owned(),
                };
                Ok(format!(" LIMIT {fetch} OFFSET {}", rows(self, &offset.skip, 1)?))
            }
            (None, None) => Ok(String::new()),
        }
    }
}
