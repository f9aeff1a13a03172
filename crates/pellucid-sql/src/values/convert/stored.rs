//! Between a value in a statement and a value in a table of SQLite's.
//!
//! A plain SQLite database may hold anything in any column, numbers as INTEGER, REAL or TEXT, dates in several forms.

use super::{convert, decimal_of, decimal_value, natural_type, Value};
use crate::values::moment::Moment;
use crate::values::types::{Family, SqlType};
use crate::values::{Error, Result};

/// What a column of this type holds, as a value in a statement.
///
/// # Errors
/// As of a conversion from what is stored.
pub fn read_stored(value: Value, data_type: SqlType) -> Result<Value> {
    match (data_type.family(), &value) {
        (_, Value::Null) => Ok(value),
        (Family::Decimal, Value::Blob(_)) => {
            Err(Error::ErrorConverting(natural_type(&value), data_type))
        }
        (Family::Decimal, Value::Text(_)) => {
            let decimal = decimal_of(&value, data_type)
                .map_err(|_| Error::ErrorConverting(SqlType::NVARCHAR_MAX, data_type))?;
            let (precision, scale) = data_type.as_numeric().unwrap_or((38, 0));
            decimal
                .fit(precision, scale, crate::values::decimal::Rounding::Nearest)
                .map(decimal_value)
                .ok_or_else(|| Error::Overflow("numeric", data_type.name()))
        }
        // Seconds since 1970, as SQLite's date functions have them.
        (Family::Moment, Value::Integer(seconds)) => Moment::of_days(25_567, 0)
            .and_then(|epoch| {
                Moment::of_days(
                    epoch.days() + seconds.div_euclid(86_400),
                    seconds.rem_euclid(86_400) * crate::values::moment::TICKS_SECOND,
                )
            })
            .and_then(|moment| moment.rounded(data_type))
            .map(|moment| Value::Text(moment.to_iso(data_type)))
            .ok_or(Error::DateOutOfRange(SqlType::BigInt, data_type)),
        (Family::Guid, Value::Blob(_)) => {
            convert(value, natural_type(&Value::Blob(Vec::new())), data_type, None)
        }
        _ => {
            let from = natural_type(&value);
            convert(value, from, data_type, None)
        }
    }
}

/// A value in a statement as a column of its type holds it: numerics as text, which SQLite takes as numbers where the
/// column has such an affinity.
///
/// # Errors
/// 8115 for bytes that are no numeric.
pub fn write_stored(value: Value, data_type: SqlType) -> Result<Value> {
    match (data_type.family(), &value) {
        (Family::Decimal, Value::Blob(_)) => {
            Ok(Value::Text(decimal_of(&value, data_type)?.to_string()))
        }
        _ => Ok(value),
    }
}
