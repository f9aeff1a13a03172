//! Conditions: true, false or unknown, which SQLite has too.
//!
//! Text is compared without case of the letters A to Z (SQLite's NOCASE) and without spaces at its end; under a
//! collation with `_CS` or `_BIN` exactly.

use pellucid_tsql::ast::{
    Comparison, Condition, Expression, InList, Literal, Quantifier, Query, QueryBody, SelectItem,
};

use super::convert::{is_numeric, operand_type};
use super::scope::{Clause, Relation};
use super::{balanced, Typed, View, Work};
use crate::functions::{NATIONAL, SENSITIVE};
use crate::message::{table, Message, Result};
use crate::values::types::{unify, Family, Length, SqlType};

/// What ANSI_NULLS OFF looks at.
fn may_be_null(side: &Expression) -> bool {
    matches!(side, Expression::Variable(_) | Expression::Literal(Literal::Null))
}

impl Work<'_> {
    pub(super) fn condition(&mut self, condition: &Condition, view: View<'_>) -> Result<String> {
        match condition {
            Condition::And(all) => self.conditions(all, "AND", view),
            Condition::Or(all) => self.conditions(all, "OR", view),
            Condition::Not(inner) => {
                self.depth += 1;
                let inner = self.condition(inner, view)?;
                self.depth -= 1;
                Ok(format!("(NOT {inner})"))
            }
            Condition::Compare { left, comparison, right } => {
                let may_be_null = [may_be_null(left), may_be_null(right)];
                let left = self.expression(left, view)?;
                let right = self.expression(right, view)?;
                let is_ansi = self.ansi_nulls || may_be_null == [false, false];
                match comparison {
                    Comparison::Equal | Comparison::NotEqual if !is_ansi => {
                        self.compared_with_nulls(left, *comparison, right, may_be_null)
                    }
                    _ => self.compared(left, *comparison, right),
                }
            }
            Condition::Quantified { left, comparison, quantifier, query } => {
                if super::visit::has(left) {
                    return Err(Message::unsupported("ALL and ANY of an aggregate"));
                }
                let left = self.expression(left, view)?;
                self.quantified(left, *comparison, *quantifier, query, view)
            }
            Condition::Between { operand, negated, low, high } => {
                let operand = self.expression(operand, view)?;
                let low = self.expression(low, view)?;
                let high = self.expression(high, view)?;
                let between = self.between(operand, low, high)?;
                Ok(negation(*negated, between))
            }
            Condition::In { operand, negated, list: InList::Values(values) }
                if !self.ansi_nulls && values.iter().chain([operand]).any(may_be_null) =>
            {
                let each = values.iter().map(|value| Condition::Compare {
                    left: operand.clone(),
                    comparison: Comparison::Equal,
                    right: value.clone(),
                });
                let any = self.condition(&Condition::Or(each.collect()), view)?;
                Ok(negation(*negated, any))
            }
            Condition::In { operand, negated, list } => {
                let operand = self.expression(operand, view)?;
                let within = match list {
                    InList::Values(values) => self.in_values(operand, values, view)?,
                    InList::Query(query) => self.in_query(operand, query, view)?,
                };
                Ok(negation(*negated, within))
            }
            Condition::Like { operand, negated, pattern, escape } => {
                let like = self.like(operand, pattern, escape.as_ref(), view)?;
                Ok(negation(*negated, like))
            }
            Condition::IsNull { operand, negated } => {
                // Also of a column that nodes() gives, of which there is nothing else to know.
                let operand = self.xml_operand(operand, view)?;
                let not = if *negated { "NOT " } else { "" };
                Ok(format!("({} IS {not}NULL)", operand.sql))
            }
            Condition::IsDistinct { left, negated, right } => {
                let left = self.expression(left, view)?;
                let right = self.expression(right, view)?;
                let (left, right, collation) = self.comparable(left, right)?;
                let not = if *negated { "" } else { "NOT " };
                Ok(format!("({left} IS {not}{right}{collation})"))
            }
            Condition::Exists(query) => {
                let relation = match starless(query) {
                    Some(query) => self.sub_query(&query, view)?,
                    None => self.sub_query(query, view)?,
                };
                Ok(format!("EXISTS ({})", relation.sql))
            }
        }
    }

    fn conditions(&mut self, all: &[Condition], operator: &str, view: View<'_>) -> Result<String> {
        let all: Vec<String> =
            all.iter().map(|one| self.condition(one, view)).collect::<Result<_>>()?;
        Ok(balanced(&all, operator))
    }

    fn sub_query(&mut self, query: &Query, view: View<'_>) -> Result<Relation> {
        if self.splits() {
            return Err(Message::unsupported(
                "a sub-query in a condition beside a variable that the same SELECT assigns",
            ));
        }
        self.query(query, View { clause: Clause::Other, ..view }, true)
    }

    /// The type that both sides are compared as, and whether case counts.
    pub(super) fn compared_as(&self, left: &Typed, right: &Typed) -> Result<(SqlType, bool)> {
        let numeric = is_numeric(left) || is_numeric(right);
        let data_type = unify(operand_type(left, numeric), operand_type(right, numeric))?;
        match data_type.family() {
            Family::Xml => Err(Message::of(table::XML_NOT_COMPARED, [])),
            Family::Variant => Ok((data_type, false)),
            _ => Ok((data_type, left.sensitive || right.sensitive)),
        }
    }

    /// One side of a comparison that [`Self::compared_as`] decided on.
    pub(super) fn side(&self, value: Typed, data_type: SqlType) -> String {
        let sql = self.converted(value, data_type).sql;
        match data_type.family() {
            Family::Text => trimmed(&sql),
            _ => sql,
        }
    }

    /// Both sides as values of one type, and the collation to compare them by.
    fn comparable(&self, left: Typed, right: Typed) -> Result<(String, String, &'static str)> {
        let (data_type, sensitive) = self.compared_as(&left, &right)?;
        let [left, right] = [left, right].map(|side| self.side(side, data_type));
        Ok((left, right, collation(data_type, sensitive)))
    }

    /// `left comparison right`
    pub(super) fn compared(
        &mut self,
        left: Typed,
        comparison: Comparison,
        right: Typed,
    ) -> Result<String> {
        let guid = [&left, &right].iter().any(|v| v.data_type == SqlType::UniqueIdentifier);
        let (mut left, mut right, collation) = self.comparable(left, right)?;
        let ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if guid && ordered {
            [left, right] = [left, right].map(|side| format!("tsql_guid_key({side})"));
        }
        Ok(format!("({left} {} {right}{collation})", comparison.sign()))
    }

    /// The same with ANSI_NULLS OFF, which counts where a literal or a variable is NULL, not where columns are.
    fn compared_with_nulls(
        &mut self,
        left: Typed,
        comparison: Comparison,
        right: Typed,
        may_be_null: [bool; 2],
    ) -> Result<String> {
        let sides = [&left, &right].into_iter().zip(may_be_null);
        let nulls = sides.filter(|(_, may)| *may).map(|(side, _)| format!("{} IS NULL", side.sql));
        let is_null = nulls.collect::<Vec<_>>().join(" OR ");
        self.repeat(left.sql.len() + right.sql.len())?;
        let usual = self.compared(left.clone(), comparison, right.clone())?;
        let (left, right, collation) = self.comparable(left, right)?;
        let sign = if comparison == Comparison::Equal { "IS" } else { "IS NOT" };
        Ok(format!(
            "(CASE WHEN {is_null} THEN ({left} {sign} {right}{collation}) ELSE {usual} END)"
        ))
    }

    /// The operand is written once, if both ends are compared in the same way.
    fn between(&mut self, operand: Typed, low: Typed, high: Typed) -> Result<String> {
        let (data_type, sensitive) = self.compared_as(&operand, &low)?;
        let guid = [&operand, &low, &high].iter().any(|v| v.data_type == SqlType::UniqueIdentifier);
        if !guid && self.compared_as(&operand, &high)? == (data_type, sensitive) {
            let [operand, low, high] = [operand, low, high].map(|v| self.side(v, data_type));
            let collation = collation(data_type, sensitive);
            return Ok(format!("({operand}{collation} BETWEEN {low} AND {high})"));
        }
        self.repeat(operand.sql.len())?;
        let least = self.compared(operand.clone(), Comparison::GreaterOrEqual, low)?;
        let most = self.compared(operand, Comparison::LessOrEqual, high)?;
        Ok(format!("({least} AND {most})"))
    }

    fn in_values(
        &mut self,
        operand: Typed,
        values: &[Expression],
        view: View<'_>,
    ) -> Result<String> {
        let mut all = vec![operand];
        for value in values {
            all.push(self.expression(value, view)?);
        }
        let data_type = self.common_type(&all)?;
        let sensitive = all.iter().any(|value| value.sensitive);
        let text = data_type.family() == Family::Text;
        let mut all = all.into_iter().map(|value| {
            let sql = self.converted(value, data_type).sql;
            if text {
                trimmed(&sql)
            } else {
                sql
            }
        });
        let operand = all.next().unwrap_or_default();
        let list: Vec<String> = all.collect();
        let collation = if text && !sensitive { " COLLATE NOCASE" } else { "" };
        Ok(format!("({operand}{collation} IN ({}))", list.join(", ")))
    }

    fn in_query(&mut self, operand: Typed, query: &Query, view: View<'_>) -> Result<String> {
        let relation = self.sub_query(query, view)?;
        let [column] = &relation.columns[..] else {
            return Err(Message::of(table::MORE_THAN_ONE_COLUMN, []));
        };
        let right = Typed {
            sql: "c1".to_owned(),
            data_type: column.data_type,
            sensitive: column.sensitive,
            constant: None,
        };
        let (left, right, collation) = self.comparable(operand, right)?;
        Ok(format!("({left}{collation} IN (SELECT {right} FROM ({})))", relation.sql))
    }

    /// `left comparison ANY (..)` is the disjunction over the rows, `ALL` the conjunction. Unknown comes out as in
    /// both: not true under ANY, not true under ALL, and not false either.
    fn quantified(
        &mut self,
        left: Typed,
        comparison: Comparison,
        quantifier: Quantifier,
        query: &Query,
        view: View<'_>,
    ) -> Result<String> {
        let relation = self.sub_query(query, view)?;
        let [column] = &relation.columns[..] else {
            return Err(Message::of(table::MORE_THAN_ONE_COLUMN, []));
        };
        let alias = self.alias();
        let right = Typed {
            sql: format!("{alias}.c1"),
            data_type: column.data_type,
            sensitive: column.sensitive,
            constant: None,
        };
        let all = quantifier == Quantifier::All;
        let compared = self.compared(left, comparison, right)?;
        self.repeat(compared.len())?;
        // max and min of truth values: NULLs are left out, so they are counted beside.
        let (function, certain, empty) = if all { ("min", 0, 1) } else { ("max", 1, 0) };
        Ok(format!(
            "(SELECT CASE WHEN count(*) = 0 THEN {empty} WHEN {function}({compared}) = {certain} THEN {certain} \
             WHEN count({compared}) < count(*) THEN NULL ELSE {empty} END FROM ({}) AS {alias})",
            relation.sql
        ))
    }

    fn like(
        &mut self,
        operand: &Expression,
        pattern: &Expression,
        escape: Option<&Expression>,
        view: View<'_>,
    ) -> Result<String> {
        let [operand, pattern] = [operand, pattern].map(|side| self.expression(side, view));
        let (operand, pattern) =
            (self.as_text(operand?, 1, "like")?, self.as_text(pattern?, 2, "like")?);
        let national = operand.data_type.is_national() || pattern.data_type.is_national();
        let sensitive = operand.sensitive || pattern.sensitive;
        let flags = (i64::from(sensitive) * SENSITIVE) | (i64::from(national) * NATIONAL);
        let escape = match escape {
            Some(escape) => {
                let escape = self.expression(escape, view)?;
                format!(", {}", self.as_text(escape, 3, "like")?.sql)
            }
            None => String::new(),
        };
        Ok(format!("tsql_like({}, {}, {flags}{escape})", operand.sql, pattern.sql))
    }

    /// Text as it is, anything else as the varchar that holds it.
    pub(super) fn as_text(&self, value: Typed, number: usize, function: &str) -> Result<Typed> {
        let to = match value.data_type {
            SqlType::Null => SqlType::varchar(1),
            SqlType::Bit => SqlType::varchar(1),
            SqlType::TinyInt => SqlType::varchar(3),
            SqlType::SmallInt => SqlType::varchar(6),
            SqlType::Int => SqlType::varchar(12),
            SqlType::BigInt => SqlType::varchar(24),
            SqlType::Binary(n) => SqlType::varchar(n),
            SqlType::VarBinary(length) => SqlType::VarChar(length),
            SqlType::UniqueIdentifier => SqlType::varchar(36),
            SqlType::Variant => SqlType::nvarchar(4000),
            SqlType::Xml => return Err(Message::bad_argument(SqlType::Xml, number, function)),
            data_type if data_type.family() == Family::Text => return Ok(value),
            _ => SqlType::VarChar(Length::Of(41)),
        };
        Ok(self.converted(value, to))
    }
}

fn negation(negated: bool, condition: String) -> String {
    match negated {
        true => format!("(NOT {condition})"),
        false => condition,
    }
}

/// What values of a type are compared by.
pub(super) fn collation(data_type: SqlType, sensitive: bool) -> &'static str {
    match data_type.family() {
        Family::Text | Family::Variant if !sensitive => " COLLATE NOCASE",
        _ => "",
    }
}

/// Without spaces at the end; a constant that has none is left alone.
fn trimmed(sql: &str) -> String {
    let constant = sql.starts_with('\'') && sql.ends_with('\'') && !sql.ends_with(" '");
    match constant {
        true if sql.matches('\'').count() == 2 => sql.to_owned(),
        _ => format!("rtrim({sql})"),
    }
}

/// What EXISTS asks where it selects `*` of groups or of no table: no column is looked at, so that none has to be there.
fn starless(query: &Query) -> Option<Query> {
    let QueryBody::Select(select) = &query.body else { return None };
    let is_star = |item: &SelectItem| matches!(item, SelectItem::Star(None));
    let is_grouped = !select.group.is_empty() || select.having.is_some();
    if !(is_grouped || select.from.is_empty()) || !select.items.iter().all(is_star) {
        return None;
    }
    let mut select = select.clone();
    let value = Expression::Literal(Literal::Integer("1".to_owned()));
    select.items = vec![SelectItem::Value { value, alias: None }];
    Some(Query { body: QueryBody::Select(select), ..query.clone() })
}
