//! Aggregates that SQLite lacks: sums of decimals, and the value of a sub-query that has to have one row.
//!
//! SQLite's own sum serves windows too: `tsql_limb` gives the four parts of a decimal, 32 bits each, SQLite adds them
//! up, and `tsql_sum_limbs` puts them together again. Exact below 2^31 rows.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::Connection;

use super::operator::fitted;
use super::{arguments, int, type_at, unexpected, value_at};
use crate::message::{table, Message, Result};
use crate::values::convert::{decimal_of, Value};
use crate::values::decimal::{Decimal, Rounding};
use crate::values::types::{average, sum};

type Scalar = fn(&[Value]) -> Result<Value>;

pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let pure = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_aggregate_function("tsql_only", 1, pure, Only)?;
    let scalars: [(&str, Scalar); 2] = [("tsql_limb", limb), ("tsql_sum_limbs", sum_limbs)];
    for (name, run) in scalars {
        connection.create_scalar_function(name, -1, pure, move |context: &Context<'_>| {
            let arguments = arguments(context)?;
            match arguments.contains(&Value::Null) {
                true => Ok(Value::Null),
                false => run(&arguments).map_err(Message::raise),
            }
        })?;
    }
    connection.create_aggregate_function("tsql_sum", 2, pure, Sum { average: false })?;
    connection.create_aggregate_function("tsql_avg", 2, pure, Sum { average: true })
}

/// The one value of a sub-query; 512 if there are more.
struct Only;

impl Aggregate<Option<Value>, Value> for Only {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Option<Value>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, only: &mut Option<Value>) -> rusqlite::Result<()> {
        match only {
            None => {
                *only = arguments(context)?.pop();
                Ok(())
            }
            Some(_) => Err(Message::of(table::MORE_THAN_ONE_ROW, []).raise()),
        }
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        only: Option<Option<Value>>,
    ) -> rusqlite::Result<Value> {
        Ok(only.flatten().unwrap_or(Value::Null))
    }
}

/// `tsql_sum(x, type)`, `tsql_avg(x, type)` of decimals.
struct Sum {
    average: bool,
}

/// A sum, how many were summed, and the code of their type.
#[derive(Default)]
struct Summed {
    sum: Option<Decimal>,
    count: i64,
    code: i64,
}

impl Aggregate<Summed, Value> for Sum {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Summed> {
        Ok(Summed::default())
    }

    fn step(&self, context: &mut Context<'_>, summed: &mut Summed) -> rusqlite::Result<()> {
        let arguments = arguments(context)?;
        let mut add = || -> Result<()> {
            let value = value_at(&arguments, 0)?;
            if *value == Value::Null {
                return Ok(());
            }
            let number = decimal_of(value, type_at(&arguments, 1)?)?;
            let before = summed.sum.unwrap_or(Decimal::ZERO);
            let overflow = || Message::overflow("expression", "numeric");
            summed.sum = Some(before.plus(number).ok_or_else(overflow)?);
            summed.count += 1;
            summed.code = int(&arguments, 1)?;
            Ok(())
        };
        add().map_err(Message::raise)
    }

    fn finalize(&self, _: &mut Context<'_>, summed: Option<Summed>) -> rusqlite::Result<Value> {
        let Some(Summed { sum: Some(total), count, code }) = summed else { return Ok(Value::Null) };
        finished(total, count, code, self.average).map_err(Message::raise)
    }
}

fn finished(total: Decimal, count: i64, code: i64, averaged: bool) -> Result<Value> {
    let of = crate::values::types::SqlType::of_code(code).ok_or_else(|| unexpected(1))?;
    if !averaged {
        return fitted(Some(total), sum(of)?, Rounding::Truncate);
    }
    let to = average(of)?;
    let quotient = total.divide(Decimal::from(count), to.scale());
    fitted(quotient, to, Rounding::Truncate)
}

/// `tsql_limb(x, type, n)`: 32 bits of a decimal; the last limb has the sign.
fn limb(arguments: &[Value]) -> Result<Value> {
    let number = decimal_of(value_at(arguments, 0)?, type_at(arguments, 1)?)?.unscaled();
    let shifted = number >> (32 * int(arguments, 2)?.clamp(0, 3));
    Ok(Value::Integer(match int(arguments, 2)? {
        3 => shifted as i64,
        _ => i64::from(shifted as u32),
    }))
}

/// `tsql_sum_limbs(type, count, sum0, sum1, sum2, sum3)`: the sum, or with a count above 0 the average.
fn sum_limbs(arguments: &[Value]) -> Result<Value> {
    let of = type_at(arguments, 0)?;
    let mut total: i128 = 0;
    for at in (2..6).rev() {
        total = total
            .checked_mul(1 << 32)
            .and_then(|total| total.checked_add(int(arguments, at).ok()?.into()))
            .ok_or_else(|| Message::overflow("expression", "numeric"))?;
    }
    let total = Decimal::new(total, of.scale())
        .ok_or_else(|| Message::overflow("expression", "numeric"))?;
    match int(arguments, 1)? {
        0 => fitted(Some(total), sum(of)?, Rounding::Truncate),
        count => finished(total, count, of.code(), true),
    }
}
