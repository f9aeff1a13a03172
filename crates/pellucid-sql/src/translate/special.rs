//! Functions that are more than one call: COALESCE, ISNULL, DATEADD and their like.

use pellucid_tsql::ast::Expression;

use super::expression::now;
use super::function::{counted, most_text};
use super::{typed, Typed, View, Work};
use crate::functions::{DatePart, Parameter};
use crate::message::{table, Message, Result};
use crate::values::types::{Family, SqlType};

/// Each with its arguments at least and at most.
pub(crate) const SPECIALS: [(&str, usize, usize); 24] = [
    ("CHARINDEX", 2, 3),
    ("CHOOSE", 2, usize::MAX),
    ("COALESCE", 1, usize::MAX),
    ("CONCAT", 2, 254),
    ("DATEADD", 3, 3),
    ("DATEDIFF", 3, 3),
    ("DATEDIFF_BIG", 3, 3),
    ("DATENAME", 2, 2),
    ("DATEPART", 2, 2),
    ("DATETRUNC", 2, 2),
    ("DAY", 1, 1),
    ("FORMAT", 2, 3),
    ("FORMATMESSAGE", 1, 21),
    ("GREATEST", 1, 254),
    ("ISNULL", 2, 2),
    ("LEAST", 1, 254),
    ("MONTH", 1, 1),
    ("NULLIF", 2, 2),
    ("PATINDEX", 2, 2),
    ("REPLACE", 3, 3),
    ("REPLICATE", 2, 2),
    ("STUFF", 4, 4),
    ("SUBSTRING", 3, 3),
    ("YEAR", 1, 1),
];

/// Those that tell the time: what they give, and whether it is UTC.
pub(crate) const CLOCKS: [(&str, SqlType, bool); 4] = [
    ("GETDATE", SqlType::DateTime, false),
    ("GETUTCDATE", SqlType::DateTime, true),
    ("SYSDATETIME", SqlType::DateTime2(7), false),
    ("SYSUTCDATETIME", SqlType::DateTime2(7), true),
];

/// Whether a function, in capitals, is one of these.
pub(super) fn is_special(name: &str) -> bool {
    clock(name).is_some() || SPECIALS.iter().any(|(other, _, _)| *other == name)
}

impl Work<'_> {
    /// `None`: it is none of these.
    pub(super) fn special(
        &mut self,
        name: &str,
        arguments: &[Expression],
        view: View<'_>,
    ) -> Result<Option<Typed>> {
        let count = arguments.len();
        if let Some((data_type, utc)) = clock(name) {
            counted(name, count, 0, 0)?;
            return Ok(Some(now(data_type, utc)));
        }
        let Some((_, least, most)) = SPECIALS.iter().copied().find(|(other, _, _)| *other == name)
        else {
            return Ok(None);
        };
        counted(name, count, least, most)?;
        if let "DATEPART" | "DATENAME" | "DATETRUNC" | "DATEADD" | "DATEDIFF" | "DATEDIFF_BIG" =
            name
        {
            return self.of_date(name, arguments, view).map(Some);
        }
        let values: Vec<Typed> =
            arguments.iter().map(|a| self.expression(a, view)).collect::<Result<_>>()?;
        match name {
            "COALESCE" => self.coalesce(values),
            "ISNULL" => self.is_null(values),
            "NULLIF" => self.null_if(values),
            "CHOOSE" => self.choose(values),
            "CONCAT" => self.concat(values),
            "GREATEST" | "LEAST" => self.extreme(name, values),
            "FORMATMESSAGE" => self.format_message(values),
            "YEAR" | "MONTH" | "DAY" => {
                let part = DatePart::named(name).unwrap_or(DatePart::Day);
                self.date_part(part, values, "tsql_datepart", SqlType::Int)
            }
            "FORMAT" => self.format(arguments, values),
            _ => self.of_text(name, values),
        }
        .map(Some)
    }

    fn coalesce(&mut self, values: Vec<Typed>) -> Result<Typed> {
        if values.iter().all(|value| value.data_type == SqlType::Null) {
            return Err(Message::of(table::COALESCE_OF_NULLS, []));
        }
        let data_type = self.common_type(&values)?;
        let sensitive = values.iter().any(|value| value.sensitive);
        let list: Vec<String> =
            values.into_iter().map(|value| self.converted(value, data_type).sql).collect();
        let sql = match &list[..] {
            [only] => only.clone(),
            _ => format!("coalesce({})", list.join(", ")),
        };
        Ok(Typed { sql, data_type, sensitive, constant: None })
    }

    /// Of the type of the first.
    fn is_null(&mut self, values: Vec<Typed>) -> Result<Typed> {
        let [first, second] = two(values)?;
        if first.data_type == SqlType::Null {
            return Ok(second);
        }
        let second = self.coerced(second, first.data_type)?;
        let sql = format!("coalesce({}, {})", first.sql, second.sql);
        Ok(Typed { sql, constant: None, ..first })
    }

    fn null_if(&mut self, values: Vec<Typed>) -> Result<Typed> {
        let [first, second] = two(values)?;
        if first.data_type == SqlType::Null {
            return Err(Message::of(table::NULLIF_OF_NULL, []));
        }
        let (data_type, sensitive) = self.compared_as(&first, &second)?;
        let sql = format!(
            "tsql_nullif({}, {}, {}, {}, {}, {})",
            first.sql,
            first.data_type.code(),
            second.sql,
            second.data_type.code(),
            data_type.code(),
            u8::from(sensitive)
        );
        Ok(Typed { sql, constant: None, ..first })
    }

    fn choose(&mut self, mut values: Vec<Typed>) -> Result<Typed> {
        let index = values.remove(0);
        let index = self.coerced(index, SqlType::Int)?;
        let numbers: Vec<String> = (1..=values.len()).map(|at| at.to_string()).collect();
        values.push(typed("NULL", SqlType::Null));
        self.chosen(&format!(" {}", index.sql), &numbers, values)
    }

    /// Of the type that all become; NULLs are left aside.
    fn extreme(&mut self, name: &str, values: Vec<Typed>) -> Result<Typed> {
        let data_type = self.common_type(&values)?;
        if let Family::Guid | Family::Xml | Family::Variant = data_type.family() {
            return Err(Message::unsupported(format!("{name} of {}", data_type.name())));
        }
        let sensitive = values.iter().any(|value| value.sensitive);
        let folds = data_type.family() == Family::Text && !sensitive;
        let list: Vec<String> =
            values.into_iter().map(|value| self.converted(value, data_type).sql).collect();
        let within = name.to_lowercase();
        let sql = format!("tsql_{within}({}, {})", u8::from(folds), list.join(", "));
        Ok(Typed { sql, data_type, sensitive, constant: None })
    }

    /// A text with places, as RAISERROR's. Messages by their numbers are those of `sys.messages`, which is not here.
    fn format_message(&mut self, values: Vec<Typed>) -> Result<Typed> {
        let mut list = Vec::new();
        for (at, value) in values.into_iter().enumerate() {
            let fits = match value.data_type {
                SqlType::Bit => false,
                other => match other.family() {
                    Family::Text | Family::Null => true,
                    Family::Integer => at > 0,
                    _ => false,
                },
            };
            if !fits {
                let what = match at {
                    0 => "FORMATMESSAGE of a message's number".to_owned(),
                    _ => format!("FORMATMESSAGE with {}", value.data_type.name()),
                };
                return Err(Message::unsupported(what));
            }
            list.push(value.sql);
        }
        Ok(typed(format!("tsql_formatmessage({})", list.join(", ")), SqlType::nvarchar(2048)))
    }

    /// NULL counts as ''.
    fn concat(&mut self, values: Vec<Typed>) -> Result<Typed> {
        let mut joined: Option<SqlType> = None;
        let mut parts = Vec::new();
        let mut sensitive = false;
        for (at, value) in values.into_iter().enumerate() {
            let text = self.as_text(value, at + 1, "concat")?;
            sensitive |= text.sensitive;
            joined = Some(match joined {
                None => text.data_type,
                Some(so_far) => crate::values::types::arithmetic(
                    pellucid_tsql::ast::BinaryOperator::Add,
                    so_far,
                    text.data_type,
                )?,
            });
            parts.push(format!("coalesce({}, '')", text.sql));
        }
        let data_type = joined.unwrap_or(SqlType::varchar(1));
        let sql = super::balanced(&parts, "||");
        let sql = match data_type.length() {
            Some(crate::values::types::Length::Of(most)) => format!("tsql_left({sql}, {most})"),
            _ => sql,
        };
        Ok(Typed { sql, data_type, sensitive, constant: None })
    }

    fn of_text(&mut self, name: &str, values: Vec<Typed>) -> Result<Typed> {
        let sensitive = values.iter().any(|value| value.sensitive);
        let flag = u8::from(sensitive).to_string();
        let mut list = Vec::new();
        let mut types = Vec::new();
        for (at, value) in values.into_iter().enumerate() {
            let parameter = match (name, at) {
                ("SUBSTRING", 0) if value.data_type.family() == Family::Binary => Parameter::Binary,
                ("SUBSTRING", 1 | 2) | ("STUFF", 1 | 2) | ("REPLICATE", 1) | ("CHARINDEX", 2) => {
                    Parameter::Int
                }
                _ => Parameter::Text,
            };
            let (mut sql, data_type) = self.argument(value, parameter, at, name)?;
            if (name, at) == ("STUFF", 3) {
                sql = sql.into_iter().map(|sql| format!("coalesce({sql}, '')")).collect();
            }
            list.extend(sql);
            types.push(data_type);
        }
        let first = types.first().copied().unwrap_or(SqlType::VARCHAR_MAX);
        let data_type = match name {
            "CHARINDEX" | "PATINDEX" => {
                let at = usize::from(name == "CHARINDEX");
                list.insert(2, flag);
                match types.get(at).and_then(|t| t.length()) {
                    Some(crate::values::types::Length::Max) => SqlType::BigInt,
                    _ => SqlType::Int,
                }
            }
            "REPLACE" => {
                list.push(flag);
                let national = types.iter().any(|t| t.is_national());
                match (most_text(first), national) {
                    (SqlType::VarChar(crate::values::types::Length::Of(_)), true) => {
                        SqlType::nvarchar(4000)
                    }
                    (other, _) => other,
                }
            }
            "REPLICATE" => {
                list.push(first.code().to_string());
                most_text(first)
            }
            "STUFF" => most_text(first),
            _ => match first {
                SqlType::Char(n) => SqlType::varchar(n),
                SqlType::NChar(n) => SqlType::nvarchar(n),
                other => other,
            },
        };
        let sql = format!("tsql_{}({})", name.to_lowercase(), list.join(", "));
        Ok(Typed { sql, data_type, sensitive, constant: None })
    }

    fn format(&mut self, arguments: &[Expression], values: Vec<Typed>) -> Result<Typed> {
        if let Some(culture) = arguments.get(2) {
            let english = |text: &str| text.to_lowercase().starts_with("en-us");
            let is_english = matches!(culture, Expression::Literal(pellucid_tsql::ast::Literal::String(s))
                if english(&s.text));
            if !is_english {
                return Err(Message::unsupported("FORMAT with a culture other than 'en-US'"));
            }
        }
        let mut values = values.into_iter();
        let (Some(value), Some(pattern)) = (values.next(), values.next()) else {
            return Err(Message::argument_count("format", 2, 3));
        };
        let formats = matches!(
            value.data_type.family(),
            Family::Integer | Family::Decimal | Family::Float | Family::Moment
        );
        if !formats || value.data_type == SqlType::Bit {
            return Err(Message::bad_argument(value.data_type, 1, "format"));
        }
        let (pattern, _) = self.argument(pattern, Parameter::National, 1, "format")?;
        let code = value.data_type.code();
        let sql = format!("tsql_format({}, {code}, {})", value.sql, pattern.join(""));
        Ok(typed(sql, SqlType::nvarchar(4000)))
    }

    fn of_date(&mut self, name: &str, arguments: &[Expression], view: View<'_>) -> Result<Typed> {
        let part = part(name, &arguments[0])?;
        let mut values = Vec::new();
        for argument in &arguments[1..] {
            values.push(self.expression(argument, view)?);
        }
        match name {
            "DATEPART" => self.date_part(part, values, "tsql_datepart", SqlType::Int),
            "DATENAME" => self.date_part(part, values, "tsql_datename", SqlType::nvarchar(30)),
            "DATETRUNC" => {
                let data_type = match values.first().map(|value| value.data_type) {
                    Some(data_type) if data_type.family() == Family::Moment => data_type,
                    _ => SqlType::DateTime2(7),
                };
                self.date_part(part, values, "tsql_datetrunc", data_type)
            }
            "DATEADD" => self.date_add(part, values),
            "DATEDIFF" => self.date_part(part, values, "tsql_datediff", SqlType::Int),
            _ => self.date_part(part, values, "tsql_datediff_big", SqlType::BigInt),
        }
    }

    fn date_part(
        &mut self,
        part: DatePart,
        values: Vec<Typed>,
        within: &str,
        result: SqlType,
    ) -> Result<Typed> {
        let mut list = vec![(part as usize).to_string()];
        for (at, value) in values.into_iter().enumerate() {
            list.extend(self.argument(value, Parameter::Moment, at + 1, &within[5..])?.0);
        }
        Ok(typed(format!("{within}({})", list.join(", ")), result))
    }

    /// Of the type of the date; text becomes a datetime.
    fn date_add(&mut self, part: DatePart, values: Vec<Typed>) -> Result<Typed> {
        let [count, moment] = two(values)?;
        let count = self.coerced(count, SqlType::Int)?;
        let moment = match moment.data_type.family() {
            Family::Moment => moment,
            _ => self
                .coerced(moment.clone(), SqlType::DateTime)
                .map_err(|_| Message::bad_argument(moment.data_type, 3, "dateadd"))?,
        };
        let data_type = moment.data_type;
        let sql = format!(
            "tsql_dateadd({}, {}, {}, {})",
            part as usize,
            count.sql,
            moment.sql,
            data_type.code()
        );
        Ok(typed(sql, data_type))
    }
}

fn two(values: Vec<Typed>) -> Result<[Typed; 2]> {
    values.try_into().map_err(|_| Message::argument_count("isnull", 2, 2))
}

fn clock(name: &str) -> Option<(SqlType, bool)> {
    let found = CLOCKS.iter().find(|(other, _, _)| *other == name);
    found.map(|(_, data_type, is_utc)| (*data_type, *is_utc))
}

/// The part of a date, which is written as a name.
fn part(function: &str, argument: &Expression) -> Result<DatePart> {
    let name = match argument {
        Expression::Column(column) if column.table.is_none() => column.column.as_str(),
        _ => return Err(Message::of(table::BAD_PARAMETER, [&function.to_lowercase()])),
    };
    if matches!(name.to_lowercase().as_str(), "tzoffset" | "tz") {
        return Err(Message::unsupported("date part tzoffset"));
    }
    let counting = matches!(function, "DATEADD" | "DATEDIFF" | "DATEDIFF_BIG");
    DatePart::named(name)
        .filter(|part| part.counts() || !counting)
        .ok_or_else(|| Message::unknown_date_part(name, function))
}
