//! Which of two types wins, and what becomes another type by itself.
//!
//! Source: Microsoft's "Data type precedence" and "Precision, scale, and length".

use super::{Family, Length, SqlType, PRECISION_MOST};
use crate::values::{Error, Result};

/// The type that values of both become: of CASE, COALESCE, UNION and comparisons.
///
/// # Errors
/// 206 if neither becomes the other by itself.
pub fn unify(left: SqlType, right: SqlType) -> Result<SqlType> {
    use SqlType::*;
    let wins = match (left, right) {
        (Null, other) | (other, Null) => return Ok(other),
        _ if left == right => return Ok(left),
        _ if precedence(left) >= precedence(right) => left,
        _ => right,
    };
    let loses = if wins == left { right } else { left };
    if !implicit(loses, wins) {
        return Err(Error::TypeClash(left, right));
    }
    Ok(match (wins.family(), loses.family()) {
        (Family::Text, Family::Text) => unify_texts(left, right),
        (Family::Binary, Family::Binary) => {
            let length = left.length().max(right.length()).unwrap_or(Length::Max);
            match (left, right, length) {
                (Binary(_), Binary(_), Length::Of(n)) => Binary(n),
                _ => VarBinary(length),
            }
        }
        (Family::Decimal, _) => match (wins, loses.as_numeric()) {
            (Numeric { precision, scale }, Some((other_precision, other_scale))) => {
                let (p, s) = (precision, scale);
                let scale = s.max(other_scale);
                let whole = (p - s).max(other_precision - other_scale);
                let over = (whole + scale).saturating_sub(PRECISION_MOST);
                SqlType::numeric(whole + scale - over, scale.saturating_sub(over))
            }
            _ => wins,
        },
        (Family::Moment, Family::Moment) => match (wins, loses) {
            (DateTime2(a), other) => DateTime2(a.max(fraction(other))),
            (Time(a), Time(b)) => Time(a.max(b)),
            _ => wins,
        },
        _ => wins,
    })
}

fn unify_texts(left: SqlType, right: SqlType) -> SqlType {
    let length = left.length().max(right.length()).unwrap_or(Length::Max);
    let fixed = |t| matches!(t, SqlType::Char(_) | SqlType::NChar(_));
    match (left.is_national() || right.is_national(), length) {
        (true, Length::Of(n)) if fixed(left) && fixed(right) => SqlType::NChar(n.min(4000)),
        (false, Length::Of(n)) if fixed(left) && fixed(right) => SqlType::Char(n),
        (true, Length::Of(n)) => SqlType::nvarchar(n.min(4000)),
        (true, Length::Max) => SqlType::NVARCHAR_MAX,
        (false, length) => SqlType::VarChar(length),
    }
}

/// Digits of a second.
fn fraction(moment: SqlType) -> u8 {
    match moment {
        SqlType::Time(digits) | SqlType::DateTime2(digits) => digits,
        SqlType::DateTime => 3,
        _ => 0,
    }
}

fn precedence(data_type: SqlType) -> u8 {
    use SqlType::*;
    match data_type {
        Null => 0,
        Binary(_) => 1,
        VarBinary(_) => 2,
        Char(_) => 3,
        VarChar(_) => 4,
        NChar(_) => 5,
        NVarChar(_) => 6,
        UniqueIdentifier => 7,
        Bit => 8,
        TinyInt => 9,
        SmallInt => 10,
        Int => 11,
        BigInt => 12,
        SmallMoney => 13,
        Money => 14,
        Numeric { .. } => 15,
        Real => 16,
        Float => 17,
        Time(_) => 18,
        Date => 19,
        SmallDateTime => 20,
        DateTime => 21,
        DateTime2(_) => 22,
        Xml | XmlNode => 23,
        Variant => 24,
    }
}

/// Whether a value becomes the other type without being asked to.
///
/// Source: the table of conversions in Microsoft's "CAST and CONVERT".
pub fn implicit(from: SqlType, to: SqlType) -> bool {
    use Family as F;
    match (from.family(), to.family()) {
        (F::Null, _) | (_, F::Null) => true,
        (a, b) if a == b => !matches!(
            (from, to),
            (SqlType::Date, SqlType::Time(_)) | (SqlType::Time(_), SqlType::Date)
        ),
        (F::Integer | F::Decimal | F::Float, F::Integer | F::Decimal | F::Float) => true,
        (F::Text, F::Binary) => false,
        (F::Text, _) => true,
        (F::Integer | F::Decimal | F::Float | F::Moment | F::Guid | F::Binary, F::Text) => true,
        // 0 is the first of January 1900.
        (F::Integer | F::Decimal | F::Float, F::Moment) => {
            matches!(to, SqlType::DateTime | SqlType::SmallDateTime)
        }
        (F::Integer | F::Decimal, F::Binary) => true,
        (F::Binary, F::Integer | F::Guid | F::Xml) => true,
        (F::Binary, F::Decimal) => true,
        (F::Guid, F::Binary) => true,
        (F::Xml | F::Variant, _) => false,
        (_, F::Variant) => !matches!(from.length(), Some(Length::Max)),
        _ => false,
    }
}

/// The numeric that just holds a constant.
pub fn literal_numeric(digits: &str) -> (u8, u8) {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0').len().min(255) as u8;
    let scale = fraction.len().min(255) as u8;
    ((whole.saturating_add(scale)).max(1), scale)
}
