//! Aggregates, alone and over windows.

use pellucid_tsql::ast::{Expression, FunctionArguments, FunctionCall};

use super::function::{counted, most_text};
use super::order::order_key;
use super::scope::Clause;
use super::{typed, Typed, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::{average, sum, Family, SqlType};

/// The aggregates.
pub(crate) const AGGREGATES: [&str; 7] =
    ["AVG", "COUNT", "COUNT_BIG", "MAX", "MIN", "STRING_AGG", "SUM"];

/// Whether a function, in capitals, is an aggregate.
pub(super) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

impl Work<'_> {
    pub(super) fn aggregate_or_window(
        &mut self,
        name: &str,
        call: &FunctionCall,
        view: View<'_>,
    ) -> Result<Typed> {
        if self.splits() {
            return Err(Message::unsupported(format!(
                "{name} of a variable that the same SELECT assigns"
            )));
        }
        let over = match &call.over {
            Some(over) => {
                if view.clause == Clause::Window || view.in_aggregate {
                    return Err(Message::of(table::WINDOW_IN_WINDOW, []));
                }
                if !matches!(view.clause, Clause::Select | Clause::OrderBy) {
                    return Err(Message::of(table::WINDOW_OUTSIDE_SELECT, []));
                }
                Some(self.over(over, View { clause: Clause::Window, ..view })?)
            }
            None => None,
        };
        if super::over::is_ranking(name) {
            return self.ranking(name, call, over, View { clause: Clause::Window, ..view });
        }
        let arguments = match &over {
            Some(_) => View { clause: Clause::Window, ..view },
            None => {
                match view.clause {
                    _ if view.in_aggregate => {
                        return Err(Message::of(table::AGGREGATE_IN_AGGREGATE, []))
                    }
                    Clause::Where | Clause::On | Clause::Other => {
                        return Err(Message::of(table::AGGREGATE_IN_WHERE, []))
                    }
                    Clause::GroupBy => return Err(Message::of(table::AGGREGATE_IN_GROUP_BY, [])),
                    _ => {}
                }
                View { in_aggregate: true, ..view }
            }
        };
        if over.is_some() {
            return self.aggregate(name, call, over, arguments);
        }
        let used = view.forget_used();
        let aggregate = self.aggregate(name, call, over, arguments);
        let (own, outer) = view.recall_used(&used);
        match outer && !own {
            // Such an aggregate is one of the outer query.
            true => Err(Message::unsupported(format!("{name} of nothing but outer columns"))),
            false => aggregate,
        }
    }

    fn aggregate(
        &mut self,
        name: &str,
        call: &FunctionCall,
        over: Option<String>,
        arguments: View<'_>,
    ) -> Result<Typed> {
        if call.distinct && over.is_some() {
            return Err(Message::of(table::DISTINCT_WITH_OVER, []));
        }
        let over = over.map(|over| format!(" OVER {over}")).unwrap_or_default();
        let values = match &call.arguments {
            FunctionArguments::Star if name.starts_with("COUNT") && !call.distinct => {
                return Ok(typed(format!("count(*){over}"), count_type(name)))
            }
            FunctionArguments::Star => return Err(Message::of(table::INCORRECT_SYNTAX, [&"*"])),
            FunctionArguments::Values(values) => &values[..],
        };
        if name == "STRING_AGG" {
            return self.string_agg(values, call, &over, arguments);
        }
        if !call.within_group.is_empty() {
            return Err(Message::unsupported(format!("WITHIN GROUP of {name}")));
        }
        counted(name, values.len(), 1, 1)?;
        let mut operand = self.expression(&values[0], arguments)?;
        // The least and the greatest of a column that has an index are found by it.
        let is_found = matches!(name, "MIN" | "MAX")
            && over.is_empty()
            && arguments.grouped.is_none_or(|grouped| grouped.columns.is_empty())
            && arguments.level.is_some_and(|level| level.tables.len() == 1)
            && matches!(values[0], Expression::Column(_));
        if operand.constant.is_none() && !is_found {
            operand.sql = format!("tsql_met({})", operand.sql);
        }
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        match name {
            "COUNT" | "COUNT_BIG" => {
                let operand = order_key(&operand);
                Ok(typed(format!("count({distinct}{operand}){over}"), count_type(name)))
            }
            "MIN" | "MAX" => extreme(name, operand, &over),
            _ => self.sum(name, operand, distinct, &over),
        }
    }

    pub(super) fn sum(
        &mut self,
        name: &str,
        operand: Typed,
        distinct: &str,
        over: &str,
    ) -> Result<Typed> {
        let of = operand.data_type;
        let averaged = name == "AVG";
        let result = if averaged { average(of)? } else { sum(of)? };
        let code = of.code();
        let value = &operand.sql;
        let times = match (of.family(), averaged) {
            (Family::Integer, true) => 1,
            (Family::Decimal, _) if !over.is_empty() => 4,
            _ => 0,
        };
        self.repeat((value.len() + over.len()).saturating_mul(times))?;
        let sql = match (of.family(), averaged) {
            (Family::Integer, false) if result == SqlType::BigInt => {
                format!("sum({distinct}{value}){over}")
            }
            (Family::Integer, false) => format!(
                "tsql_convert(sum({distinct}{value}){over}, {}, {})",
                SqlType::BigInt.code(),
                result.code()
            ),
            (Family::Integer, true) => format!(
                "tsql_divide(sum({distinct}{value}){over}, {0}, count({distinct}{value}){over}, {0})",
                SqlType::BigInt.code()
            ),
            (Family::Float, false) => format!("sum({distinct}{value}){over}"),
            (Family::Float, true) => format!("avg({distinct}{value}){over}"),
            (_, _) if over.is_empty() => {
                format!("tsql_{}({distinct}{value}, {code})", name.to_lowercase())
            }
            (_, averaged) => {
                let limbs: Vec<String> = (0..4)
                    .map(|limb| format!("sum(tsql_limb({value}, {code}, {limb})){over}"))
                    .collect();
                let count = match averaged {
                    true => format!("count({value}){over}"),
                    false => "0".to_owned(),
                };
                format!("tsql_sum_limbs({code}, {count}, {})", limbs.join(", "))
            }
        };
        if !distinct.is_empty() && of.family() == Family::Decimal {
            // SQLite takes DISTINCT with one argument only.
            return Err(Message::unsupported(format!("{name}(DISTINCT ..) of {}", of.name())));
        }
        Ok(typed(sql, result))
    }

    fn string_agg(
        &mut self,
        values: &[Expression],
        call: &FunctionCall,
        over: &str,
        view: View<'_>,
    ) -> Result<Typed> {
        counted("STRING_AGG", values.len(), 2, 2)?;
        if !over.is_empty() || call.distinct {
            return Err(Message::unsupported("STRING_AGG with OVER or DISTINCT"));
        }
        let value = self.expression(&values[0], view)?;
        let value = self.as_text(value, 1, "string_agg")?;
        let separator = self.expression(&values[1], view)?;
        let separator = self.as_text(separator, 2, "string_agg")?;
        let mut keys = Vec::new();
        for item in &call.within_group {
            let key = self.expression(&item.value, view)?;
            let direction = if item.descending { " DESC" } else { "" };
            keys.push(format!("{}{direction}", order_key(&key)));
        }
        let order = match keys.is_empty() {
            true => String::new(),
            false => format!(" ORDER BY {}", keys.join(", ")),
        };
        let sql = format!("group_concat({}, {}{order})", value.sql, separator.sql);
        let data_type = most_text(value.data_type);
        Ok(Typed { sql, data_type, sensitive: value.sensitive, constant: None })
    }
}

fn count_type(name: &str) -> SqlType {
    match name {
        "COUNT" => SqlType::Int,
        _ => SqlType::BigInt,
    }
}

/// MIN and MAX, for which DISTINCT means nothing.
pub(super) fn extreme(name: &str, operand: Typed, over: &str) -> Result<Typed> {
    let function = name.to_lowercase();
    match operand.data_type {
        SqlType::Bit | SqlType::Xml => {
            return Err(Message::bad_operand(operand.data_type, &function))
        }
        SqlType::UniqueIdentifier => {
            return Err(Message::unsupported(format!("{name} of uniqueidentifier")))
        }
        _ => {}
    }
    let key = order_key(&operand);
    Ok(Typed { sql: format!("{function}({key}){over}"), constant: None, ..operand })
}
