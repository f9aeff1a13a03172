//! OVER, and the functions that need it.

use pellucid_tsql::ast::{
    Expression, Frame, FrameBound, FrameUnit, FunctionArguments, FunctionCall, Literal, Over,
};

use super::function::counted;
use super::order::order_key;
use super::{typed, Typed, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::SqlType;

/// The functions that need OVER, each with its arguments at least and at most.
pub(crate) const RANKINGS: [(&str, usize, usize); 10] = [
    ("CUME_DIST", 0, 0),
    ("DENSE_RANK", 0, 0),
    ("FIRST_VALUE", 1, 1),
    ("LAG", 1, 3),
    ("LAST_VALUE", 1, 1),
    ("LEAD", 1, 3),
    ("NTILE", 1, 1),
    ("PERCENT_RANK", 0, 0),
    ("RANK", 0, 0),
    ("ROW_NUMBER", 0, 0),
];

/// Whether a function, in capitals, needs OVER.
pub(super) fn is_ranking(name: &str) -> bool {
    RANKINGS.iter().any(|(other, _, _)| *other == name)
}

impl Work<'_> {
    /// `(PARTITION BY .. ORDER BY ..)`
    pub(super) fn over(&mut self, over: &Over, view: View<'_>) -> Result<String> {
        let mut parts = Vec::new();
        let mut partition = Vec::new();
        for value in &over.partition {
            let value = self.expression(value, view)?;
            partition.push(order_key(&value));
        }
        if !partition.is_empty() {
            parts.push(format!("PARTITION BY {}", partition.join(", ")));
        }
        let mut order = Vec::new();
        for item in &over.order {
            if let Expression::Literal(Literal::Integer(_)) = item.value {
                return Err(Message::of(table::ORDER_BY_INDEX_IN_WINDOW, []));
            }
            let value = self.expression(&item.value, view)?;
            let direction = if item.descending { " DESC" } else { "" };
            order.push(format!("{}{direction}", order_key(&value)));
        }
        if !order.is_empty() {
            parts.push(format!("ORDER BY {}", order.join(", ")));
        }
        if let Some(frame) = &over.frame {
            if order.is_empty() {
                return Err(Message::of(table::FRAME_WITHOUT_ORDER_BY, []));
            }
            parts.push(frame_text(frame)?);
        }
        Ok(format!("({})", parts.join(" ")))
    }

    pub(super) fn ranking(
        &mut self,
        name: &str,
        call: &FunctionCall,
        over: Option<String>,
        view: View<'_>,
    ) -> Result<Typed> {
        let ordered = call.over.as_ref().is_some_and(|over| !over.order.is_empty());
        let (Some(over), true) = (over, ordered) else {
            return Err(match call.over {
                Some(_) => Message::of(table::ORDER_BY_EXPECTED, [&name]),
                None => Message::of(table::OVER_EXPECTED, [&name]),
            });
        };
        let values = match &call.arguments {
            FunctionArguments::Values(values) if !call.distinct => values,
            _ => return Err(Message::of(table::INCORRECT_SYNTAX, [&name])),
        };
        let found = RANKINGS.iter().find(|(other, _, _)| *other == name);
        let (least, most) = found.map_or((0, 0), |(_, least, most)| (*least, *most));
        counted(name, values.len(), least, most)?;
        let framed = call.over.as_ref().is_some_and(|over| over.frame.is_some());
        if framed && !matches!(name, "FIRST_VALUE" | "LAST_VALUE") {
            return Err(Message::of(table::FRAME_REFUSED, [&name]));
        }
        let mut list = Vec::new();
        let mut first: Option<Typed> = None;
        for (at, value) in values.iter().enumerate() {
            let value = self.expression(value, view)?;
            let value = match (name, at, &first) {
                ("NTILE", _, _) => self.coerced(value, SqlType::BigInt)?,
                ("LAG" | "LEAD", 1, _) => self.coerced(value, SqlType::BigInt)?,
                ("LAG" | "LEAD", 2, Some(first)) => self.coerced(value, first.data_type)?,
                _ => value,
            };
            list.push(value.sql.clone());
            first.get_or_insert(value);
        }
        let sql = format!("{}({}) OVER {over}", name.to_lowercase(), list.join(", "));
        Ok(match (name, first) {
            ("LAG" | "LEAD" | "FIRST_VALUE" | "LAST_VALUE", Some(first)) => {
                Typed { sql, constant: None, ..first }
            }
            ("CUME_DIST" | "PERCENT_RANK", _) => typed(sql, SqlType::Float),
            _ => typed(sql, SqlType::BigInt),
        })
    }
}

fn frame_text(frame: &Frame) -> Result<String> {
    let unit = match frame.unit {
        FrameUnit::Rows => "ROWS",
        FrameUnit::Range => "RANGE",
    };
    let counts =
        |bound: &FrameBound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
    let end = frame.end.unwrap_or(FrameBound::CurrentRow);
    if frame.unit == FrameUnit::Range && (counts(&frame.start) || counts(&end)) {
        return Err(Message::of(table::RANGE_LIMITED, []));
    }
    // From the end backwards there is no frame.
    if place(&frame.start) > place(&end)
        || frame.start == FrameBound::UnboundedFollowing
        || end == FrameBound::UnboundedPreceding
    {
        return Err(Message::of(table::BAD_FRAME, []));
    }
    Ok(format!("{unit} BETWEEN {} AND {}", bound(&frame.start), bound(&end)))
}

/// Where a bound lies.
fn place(bound: &FrameBound) -> i8 {
    match bound {
        FrameBound::UnboundedPreceding => -2,
        FrameBound::Preceding(_) => -1,
        FrameBound::CurrentRow => 0,
        FrameBound::Following(_) => 1,
        FrameBound::UnboundedFollowing => 2,
    }
}

fn bound(bound: &FrameBound) -> String {
    let most = |rows: u64| rows.min(i64::MAX as u64);
    match bound {
        FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
        FrameBound::Preceding(rows) => format!("{} PRECEDING", most(*rows)),
        FrameBound::CurrentRow => "CURRENT ROW".to_owned(),
        FrameBound::Following(rows) => format!("{} FOLLOWING", most(*rows)),
        FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
    }
}
