//! Types of `+ - * / %` and of SUM and AVG.
//!
//! Source: Microsoft's "Precision, scale, and length", "+ (Addition)", "SUM" and "AVG".

use pellucid_tsql::ast::BinaryOperator;

use super::{Family, Length, SqlType, PRECISION_MOST};
use crate::values::{Error, Result};

/// The type of `left operator right`.
///
/// # Errors
/// 402, 8117 and 206 for types that the operator does not take.
pub fn arithmetic(operator: BinaryOperator, left: SqlType, right: SqlType) -> Result<SqlType> {
    use Family as F;
    let name = operator_name(operator);
    let clash = || Error::Incompatible(left, right, name);
    let families = (left.family(), right.family());
    if let (F::Xml | F::Variant | F::Guid, _) = families {
        return Err(Error::BadOperand(left, name.to_owned()));
    }
    if let (_, F::Xml | F::Variant | F::Guid) = families {
        return Err(Error::BadOperand(right, name.to_owned()));
    }
    match operator {
        BinaryOperator::BitAnd | BinaryOperator::BitOr | BinaryOperator::BitXor => {
            return match families {
                (F::Integer | F::Null, F::Integer | F::Null) => Ok(wider(left, right)),
                _ => Err(clash()),
            }
        }
        BinaryOperator::Add => match families {
            (F::Text, F::Text | F::Null) | (F::Null, F::Text) => return Ok(concat(left, right)),
            (F::Binary, F::Binary) => {
                return Ok(match (left.length(), right.length()) {
                    (Some(Length::Of(a)), Some(Length::Of(b))) => {
                        SqlType::VarBinary(Length::Of(a.saturating_add(b).min(8000)))
                    }
                    _ => SqlType::VarBinary(Length::Max),
                })
            }
            (F::Text, F::Binary) | (F::Binary, F::Text) => return Err(clash()),
            _ => {}
        },
        _ => {
            for (operand, family) in [(left, families.0), (right, families.1)] {
                let both = matches!(families, (F::Text, F::Text | F::Null) | (F::Null, F::Text));
                if family == F::Text && both {
                    return Err(Error::BadOperand(operand, name.to_owned()));
                }
            }
        }
    }
    if families.0 == F::Moment || families.1 == F::Moment {
        return moments(operator, left, right);
    }
    // Text and binary become what the other operand is.
    let (left, right) = match families {
        (F::Text | F::Binary | F::Null, _) => (right, right),
        (_, F::Text | F::Binary | F::Null) => (left, left),
        _ => (left, right),
    };
    match (left.family(), right.family()) {
        (F::Null, _) | (_, F::Null) => Ok(SqlType::Int),
        (F::Float, _) | (_, F::Float) if operator == BinaryOperator::Modulo => Err(clash()),
        (F::Float, _) | (_, F::Float) => {
            let real = |t| t == SqlType::Real || !matches!(t, SqlType::Float);
            Ok(if real(left) && real(right) { SqlType::Real } else { SqlType::Float })
        }
        (F::Integer, F::Integer) if left == SqlType::Bit && right == SqlType::Bit => match families
        {
            // NULL alone is an int.
            (F::Null, _) | (_, F::Null) => Ok(SqlType::Int),
            _ => Err(clash()),
        },
        (F::Integer, F::Integer) => Ok(wider(left, right)),
        (F::Decimal | F::Integer, F::Decimal | F::Integer) => decimals(operator, left, right),
        _ => Err(clash()),
    }
}

/// The wider of two integer types; NULL is an int.
fn wider(left: SqlType, right: SqlType) -> SqlType {
    let rank = |t: SqlType| t.integer_range().map_or(-1, |(_, most)| most);
    match (left, right) {
        (SqlType::Null, SqlType::Null) => SqlType::Int,
        _ if rank(left) >= rank(right) => left,
        _ => right,
    }
}

fn concat(left: SqlType, right: SqlType) -> SqlType {
    let national = left.is_national() || right.is_national();
    let most = if national { 4000 } else { 8000 };
    let length = |t: SqlType| t.length().unwrap_or(Length::Of(1));
    let length = match (length(left), length(right)) {
        (Length::Of(a), Length::Of(b)) => Length::Of(a.saturating_add(b).min(most)),
        _ => Length::Max,
    };
    match national {
        true => SqlType::NVarChar(length),
        false => SqlType::VarChar(length),
    }
}

fn moments(operator: BinaryOperator, left: SqlType, right: SqlType) -> Result<SqlType> {
    let old = |t: SqlType| matches!(t, SqlType::DateTime | SqlType::SmallDateTime);
    let sum = matches!(operator, BinaryOperator::Add | BinaryOperator::Subtract);
    for t in [left, right] {
        if t.family() == Family::Moment && !old(t) {
            return Err(match sum {
                true => Error::TypeClash(left, right),
                false => Error::BadOperand(t, operator_name(operator).to_owned()),
            });
        }
    }
    match sum {
        true if left == SqlType::SmallDateTime && right != SqlType::DateTime => {
            Ok(SqlType::SmallDateTime)
        }
        true => Ok(SqlType::DateTime),
        false => {
            let operand = if old(left) { left } else { right };
            Err(Error::BadOperand(operand, operator_name(operator).to_owned()))
        }
    }
}

fn decimals(operator: BinaryOperator, left: SqlType, right: SqlType) -> Result<SqlType> {
    let numeric = |t| matches!(t, SqlType::Numeric { .. });
    if !numeric(left) && !numeric(right) {
        let small = |t| t == SqlType::SmallMoney || t != SqlType::Money;
        let money = if small(left) && small(right) { SqlType::SmallMoney } else { SqlType::Money };
        return Ok(money);
    }
    let (Some((p1, s1)), Some((p2, s2))) = (left.as_numeric(), right.as_numeric()) else {
        return Err(Error::Incompatible(left, right, operator_name(operator)));
    };
    let [p1, s1, p2, s2] = [p1, s1, p2, s2].map(i32::from);
    let most = i32::from(PRECISION_MOST);
    let (precision, scale) = match operator {
        BinaryOperator::Add | BinaryOperator::Subtract => {
            let scale = s1.max(s2);
            let whole = (p1 - s1).max(p2 - s2);
            let precision = whole + scale + 1;
            match precision > most {
                true => (most, scale.min((most - whole).max(0))),
                false => (precision, scale),
            }
        }
        BinaryOperator::Multiply => fitted(p1 + p2 + 1, s1 + s2),
        BinaryOperator::Divide => {
            let scale = 6.max(s1 + p2 + 1);
            fitted(p1 - s1 + s2 + scale, scale)
        }
        _ => {
            let scale = s1.max(s2);
            ((p1 - s1).min(p2 - s2) + scale, scale)
        }
    };
    Ok(SqlType::numeric(precision.clamp(1, most) as u8, scale.clamp(0, most) as u8))
}

/// Multiplication and division give up digits behind the point, down to six, for those before it.
fn fitted(precision: i32, scale: i32) -> (i32, i32) {
    let most = i32::from(PRECISION_MOST);
    let whole = precision - scale;
    match precision > most {
        false => (precision, scale),
        true if whole < 32 => (most, scale.min(most - whole)),
        true => (most, scale.min(6)),
    }
}

/// The type of SUM.
///
/// # Errors
/// 8117 for what cannot be summed.
pub fn sum(data_type: SqlType) -> Result<SqlType> {
    match data_type {
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Int => Ok(SqlType::Int),
        SqlType::BigInt => Ok(SqlType::BigInt),
        SqlType::Numeric { scale, .. } => Ok(SqlType::numeric(PRECISION_MOST, scale)),
        SqlType::Money | SqlType::SmallMoney => Ok(SqlType::Money),
        SqlType::Float | SqlType::Real => Ok(SqlType::Float),
        _ => Err(Error::BadOperand(data_type, "sum".to_owned())),
    }
}

/// The type of AVG.
///
/// # Errors
/// 8117 for what has no average.
pub fn average(data_type: SqlType) -> Result<SqlType> {
    match data_type {
        SqlType::Numeric { scale, .. } => Ok(SqlType::numeric(PRECISION_MOST, scale.max(6))),
        _ => sum(data_type).map_err(|_| Error::BadOperand(data_type, "avg".to_owned())),
    }
}

/// What messages call an operator.
fn operator_name(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Add => "add",
        BinaryOperator::Subtract => "subtract",
        BinaryOperator::Multiply => "multiply",
        BinaryOperator::Divide => "divide",
        BinaryOperator::Modulo => "modulo",
        BinaryOperator::BitAnd => "boolean AND",
        BinaryOperator::BitOr => "boolean OR",
        BinaryOperator::BitXor => "boolean XOR",
    }
}
