//! Conversions, written down only where they do something.

use super::{text_literal, Typed, Work};
use crate::message::{Message, Result};
use crate::values::convert::{convert, decimal_value, is_same, to_hex, Value};
use crate::values::types::{implicit, unify, Family, SqlType};

impl Work<'_> {
    /// `value` as a value of type `to`, whatever it takes.
    pub(super) fn converted(&self, value: Typed, to: SqlType) -> Typed {
        if is_same(value.data_type, to) {
            return Typed { data_type: to, constant: None, ..value };
        }
        let Typed { sql, data_type, sensitive, .. } = value;
        let sql = format!("tsql_convert({sql}, {}, {})", data_type.code(), to.code());
        Typed { sql, data_type: to, sensitive, constant: None }
    }

    /// `value` as a value of type `to`, as it becomes one without being asked to.
    ///
    /// # Errors
    /// 257 and 206 if it does not.
    pub(super) fn coerced(&self, value: Typed, to: SqlType) -> Result<Typed> {
        if implicit(value.data_type, to) {
            return Ok(self.converted(value, to));
        }
        match crate::values::convert::allowed(value.data_type, to) {
            true => Err(Message::no_implicit_conversion(value.data_type, to)),
            false => Err(Message::type_clash(value.data_type, to)),
        }
    }

    /// The type that all of these become; untyped NULLs alone are int.
    pub(super) fn common_type(&self, values: &[Typed]) -> Result<SqlType> {
        let numeric = values.iter().any(is_numeric);
        let mut common = SqlType::Null;
        for value in values {
            common = unify(common, operand_type(value, numeric))?;
        }
        Ok(match common {
            SqlType::Null => SqlType::Int,
            common => common,
        })
    }
}

/// Whether it is a numeric, beside which a whole constant is one too. Money is none: beside it the constant is an int.
pub(super) fn is_numeric(value: &Typed) -> bool {
    matches!(value.data_type, SqlType::Numeric { .. })
}

/// A whole constant beside a numeric is as long as it is written, not as long as an int.
pub(super) fn operand_type(value: &Typed, beside_numeric: bool) -> SqlType {
    match (value.constant, value.data_type.family()) {
        (Some((precision, scale)), Family::Integer) if beside_numeric => {
            SqlType::numeric(precision, scale)
        }
        _ => value.data_type,
    }
}

/// A value that is known as a constant of SQLite's.
///
/// # Errors
/// As [`convert`].
pub(super) fn literal_as(value: Value, from: SqlType, to: SqlType) -> Result<String> {
    Ok(literal(&convert(value, from, to, None)?))
}

pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        // The smallest one cannot be written as a constant.
        Value::Integer(i64::MIN) => "(-9223372036854775807 - 1)".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:?}").replace("inf", "9e999"),
        Value::Text(text) => text_literal(text),
        Value::Blob(bytes) => format!("X'{}'", to_hex(bytes)),
    }
}

/// A decimal as a constant of SQLite's.
pub(super) fn decimal_literal(decimal: crate::values::decimal::Decimal) -> String {
    literal(&decimal_value(decimal))
}
