//! Between a value in a statement and a value in a table of SQLite's.
//!
//! A plain SQLite database may hold anything in any column, numbers as INTEGER, REAL or TEXT, dates in several forms.

use super::{convert, decimal_of, decimal_value, natural_type, Value};
use crate::values::decimal::Decimal;
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
/// column has such an affinity, whole ones as integers. Where such a number would be another one in its first six decimals it is refused: SQLite rounds it.
///
/// Source: SQLite's "Datatypes", 3.1 and 3.2 (<https://www.sqlite.org/datatype3.html>).
///
/// # Errors
/// 8115 for bytes that are no numeric; 50001 for a numeric that would be another one in the table.
pub fn write_stored(value: Value, data_type: SqlType) -> Result<Value> {
    let (Family::Decimal, Value::Blob(_)) = (data_type.family(), &value) else { return Ok(value) };
    let decimal = decimal_of(&value, data_type)?;
    let text = decimal.to_string();
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole,
        Some(_) => "",
        None => &text,
    };
    if let Ok(integer) = whole.parse() {
        return Ok(Value::Integer(integer));
    }
    let number = text.parse().map(Value::Real).unwrap_or(Value::Null);
    let read = read_stored(number, data_type).and_then(|read| decimal_of(&read, data_type));
    match read.is_ok_and(|read| is_near(read, decimal)) {
        true => Ok(Value::Text(text)),
        false => Err(Error::Unsupported("a numeric that SQLite would round in a table".to_owned())),
    }
}

/// Whether what SQLite keeps differs by less than half a millionth: the last digits of a quotient are not what was counted.
fn is_near(kept: Decimal, given: Decimal) -> bool {
    const PARTS: i128 = 2_000_000;
    let Some(apart) = kept.plus(given.negated()) else { return false };
    let scale = 10_i128.checked_pow(u32::from(apart.scale()));
    let most = apart.unscaled().unsigned_abs().checked_mul(PARTS.unsigned_abs());
    scale.zip(most).is_some_and(|(scale, most)| most < scale.unsigned_abs())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Of a division, whose last digits nobody counts.
    #[test]
    fn a_quotient_is_kept_as_near_as_a_number_is() {
        let to = SqlType::numeric(38, 20);
        for (text, is_kept) in [
            ("33.33333333333333333333", true),
            ("1.12345678901234567891", true),
            ("12345678901234567.12345", false),
        ] {
            let value = convert(Value::Text(text.to_owned()), SqlType::VARCHAR_MAX, to, None);
            assert_eq!(write_stored(value.unwrap(), to).is_ok(), is_kept, "{text}");
        }
    }

    #[test]
    fn a_numeric_is_the_same_behind_the_table_or_refused() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t(a numeric(38, 4))").unwrap();
        let to = SqlType::numeric(38, 4);
        for (text, is_kept) in [
            ("0", true),
            ("0.1000", true),
            ("-12345678901.2345", true),
            ("1234567890123.45", true),
            ("9223372036854775807", true),
            ("-9223372036854775808.0000", true),
            ("1234567890123456.78", false),
            ("12345678901234567.1234", false),
            ("92233720368547758080", false),
            ("922337203685477.5807", false),
        ] {
            let value = convert(Value::Text(text.to_owned()), SqlType::VARCHAR_MAX, to, None);
            let value = value.unwrap();
            let written = write_stored(value.clone(), to);
            assert_eq!(written.is_ok(), is_kept, "{text}: {written:?}");
            let Ok(written) = written else { continue };
            connection.execute("INSERT INTO t VALUES (?1)", [written]).unwrap();
            let sql = "SELECT a FROM t ORDER BY rowid DESC LIMIT 1";
            let found: Value = connection.query_row(sql, [], |row| row.get(0)).unwrap();
            assert_eq!(read_stored(found, to).unwrap(), value, "{text}");
        }
    }
}
