//! Functions of dates and times.

use super::date_part::DatePart;
use super::format::format;
use super::{int, scalar, text_at, text_value, type_at, unexpected, value_at, with_nulls, Scalar};
use crate::message::{table, Message, Result};
use crate::values::convert::{convert, moment_of, Value};
use crate::values::moment::Moment;
use crate::values::types::SqlType;

pub(super) const SCALARS: &[Scalar] = &[
    scalar("tsql_dateadd", date_add),
    scalar("tsql_datediff", |a| date_diff(a, SqlType::Int)),
    scalar("tsql_datediff_big", |a| date_diff(a, SqlType::BigInt)),
    scalar("tsql_datepart", |a| {
        Ok(Value::Integer(part(a)?.of(moment_of(value_at(a, 1)?, type_at(a, 2)?)?)))
    }),
    scalar("tsql_datename", |a| {
        text_value(part(a)?.name_of(moment_of(value_at(a, 1)?, type_at(a, 2)?)?))
    }),
    scalar("tsql_datetrunc", |a| {
        let data_type = type_at(a, 2)?;
        let cut = part(a)?.truncated(moment_of(value_at(a, 1)?, data_type)?, data_type)?;
        text_value(cut.to_iso(data_type))
    }),
    scalar("tsql_agent_datetime", |a| {
        let (day, time) = (int(a, 0)?, int(a, 1)?);
        let day = Moment::new(day / 10_000, day / 100 % 100, day % 100);
        let moment = day.and_then(|day| day.at(time / 10_000, time / 100 % 100, time % 100, 0));
        let nvarchar = SqlType::nvarchar(20);
        let failed = || Message::date_out_of_range(nvarchar, SqlType::DateTime);
        text_value(moment.ok_or_else(failed)?.to_iso(SqlType::DateTime))
    }),
    scalar("tsql_datefromparts", |a| {
        let day = Moment::new(int(a, 0)?, int(a, 1)?, int(a, 2)?);
        made(day, SqlType::Date)
    }),
    scalar("tsql_datetimefromparts", |a| {
        let day = Moment::new(int(a, 0)?, int(a, 1)?, int(a, 2)?);
        let millis = int(a, 6)?;
        let at = day.filter(|_| (0..1000).contains(&millis)).and_then(|day| {
            day.at(int(a, 3).ok()?, int(a, 4).ok()?, int(a, 5).ok()?, millis * 10_000)
        });
        made(at, SqlType::DateTime)
    }),
    scalar("tsql_eomonth", end_of_month),
    with_nulls("tsql_isdate", is_date),
    scalar("tsql_format", |a| {
        Ok(format(value_at(a, 0)?, type_at(a, 1)?, text_at(a, 2)?)?
            .map_or(Value::Null, Value::Text))
    }),
];

fn part(arguments: &[Value]) -> Result<DatePart> {
    let number = usize::try_from(int(arguments, 0)?).ok();
    number.and_then(|at| DatePart::EVERY.get(at)).copied().ok_or_else(|| unexpected(0))
}

/// `tsql_dateadd(part, count, moment, type)`
fn date_add(arguments: &[Value]) -> Result<Value> {
    let data_type = type_at(arguments, 3)?;
    let moment = moment_of(value_at(arguments, 2)?, data_type)?;
    let later = part(arguments)?.added(moment, int(arguments, 1)?, data_type)?;
    text_value(later.to_iso(data_type))
}

/// `tsql_datediff(part, from, type, to, type)`
fn date_diff(arguments: &[Value], result: SqlType) -> Result<Value> {
    let from = moment_of(value_at(arguments, 1)?, type_at(arguments, 2)?)?;
    let to = moment_of(value_at(arguments, 3)?, type_at(arguments, 4)?)?;
    let count = i64::try_from(part(arguments)?.between(from, to)).ok();
    let (low, high) = result.integer_range().unwrap_or((i64::MIN, i64::MAX));
    count
        .filter(|count| (low..=high).contains(count))
        .map(Value::Integer)
        .ok_or_else(|| Message::of(table::DATEDIFF_OVERFLOW, []))
}

fn made(moment: Option<Moment>, of: SqlType) -> Result<Value> {
    match moment.and_then(|moment| moment.rounded(of)) {
        Some(moment) => text_value(moment.to_iso(of)),
        None => Err(Message::of(table::NO_SUCH_MOMENT, [&of.name()])),
    }
}

/// `tsql_eomonth(moment, type [, months])`
fn end_of_month(arguments: &[Value]) -> Result<Value> {
    let moment = moment_of(value_at(arguments, 0)?, type_at(arguments, 1)?)?;
    let months = arguments.get(2).map_or(Ok(0), |_| int(arguments, 2))?;
    let (year, month, _) = moment.ymd();
    let total = year * 12 + month - 1 + months;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    let last = (28..=31).rev().find_map(|day| Moment::new(year, month, day));
    match last {
        Some(last) => text_value(last.to_iso(SqlType::Date)),
        None => Err(Message::of(table::DATE_OVERFLOW, [&"date"])),
    }
}

/// `tsql_isdate(x, type)`: whether its text is that of a datetime.
fn is_date(arguments: &[Value]) -> Result<Value> {
    const TEXT: SqlType = SqlType::NVARCHAR_MAX;
    let from = type_at(arguments, 1)?;
    if let SqlType::Date | SqlType::Time(_) | SqlType::DateTime2(_) = from {
        return Err(Message::bad_argument(from, 1, "isdate"));
    }
    let text = convert(value_at(arguments, 0)?.clone(), from, TEXT, None)?;
    let is = match &text {
        Value::Text(written) if !written.trim().is_empty() => {
            convert(text, TEXT, SqlType::DateTime, None).is_ok()
        }
        _ => false,
    };
    Ok(Value::Integer(is.into()))
}
