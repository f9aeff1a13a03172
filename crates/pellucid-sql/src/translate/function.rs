//! Calls of functions: those of one form here, the others in `special.rs` and `aggregate.rs`.

use pellucid_tsql::ast::{Expression, FunctionArguments, FunctionCall, Name, ObjectName};

use super::metadata::metadata_function;
use super::{typed, Typed, View, Work};
use crate::functions::{builtin, server_function, Builtin, Parameter, ResultType, AGENT_DATETIME};
use crate::known;
use crate::message::{table, Message, Result};
use crate::values::types::{Family, Length, SqlType};

impl Work<'_> {
    pub(super) fn function(&mut self, call: &FunctionCall, view: View<'_>) -> Result<Typed> {
        if !call.name.is_bare() && call.over.is_none() && !call.distinct {
            if let Some(value) = self.scripted(call, view)? {
                return Ok(value);
            }
        }
        let name = function_name(call)?;
        if super::aggregate::is_aggregate(&name) || super::over::is_ranking(&name) {
            return self.aggregate_or_window(&name, call, view);
        }
        if known::is_function(&name) && !is_here(&name) {
            return Err(Message::unsupported(&name));
        }
        if call.over.is_some() || !call.within_group.is_empty() {
            return Err(match call.over.is_some() {
                true => Message::of(table::OVER_REFUSED, [&name]),
                false => Message::unsupported(format!("WITHIN GROUP of {name}")),
            });
        }
        if call.distinct {
            return Err(Message::of(table::INCORRECT_SYNTAX_AT_KEYWORD, [&"DISTINCT"]));
        }
        let arguments = match &call.arguments {
            FunctionArguments::Values(values) => &values[..],
            FunctionArguments::Star => return Err(Message::of(table::INCORRECT_SYNTAX, [&"*"])),
        };
        if let Some(typed) = self.special(&name, arguments, view)? {
            return Ok(typed);
        }
        if let Some(builtin) = builtin(&name) {
            return self.builtin(builtin, arguments, view);
        }
        if let Some(function) = metadata_function(&name) {
            return self.metadata(function, arguments, view);
        }
        if let Some(function) = server_function(&name) {
            counted(&name, arguments.len(), function.least, function.most)?;
            let mut list = vec![format!("'{}'", function.name)];
            for (at, argument) in arguments.iter().enumerate() {
                let argument = self.expression(argument, view)?;
                let parameter = parameter_at(function.parameters, at);
                list.extend(self.argument(argument, parameter, at, &name)?.0);
            }
            return Ok(typed(format!("tsql_server({})", list.join(", ")), function.result));
        }
        Err(Message::unknown_function(call.name.object.as_str()))
    }

    fn builtin(
        &mut self,
        builtin: &Builtin,
        arguments: &[Expression],
        view: View<'_>,
    ) -> Result<Typed> {
        counted(builtin.name, arguments.len(), builtin.least, builtin.most)?;
        let mut list = Vec::new();
        let mut types = Vec::new();
        let mut sensitive = false;
        for (at, argument) in arguments.iter().enumerate() {
            let argument = self.expression(argument, view)?;
            sensitive |= argument.sensitive;
            let parameter = parameter_at(builtin.parameters, at);
            let (sql, data_type) = self.argument(argument, parameter, at, builtin.name)?;
            list.extend(sql);
            types.push(data_type);
        }
        let sql = match (builtin.name, &list[..]) {
            // One number for the whole query: SQLite executes such a sub-query once.
            ("RAND", []) => format!("(SELECT {}())", builtin.within),
            _ => format!("{}({})", builtin.within, list.join(", ")),
        };
        let data_type = result_type(builtin.result, &types);
        Ok(Typed { sql, data_type, sensitive, constant: None })
    }

    /// An argument as the function takes it, and its type.
    pub(super) fn argument(
        &mut self,
        value: Typed,
        parameter: Parameter,
        at: usize,
        function: &str,
    ) -> Result<(Vec<String>, SqlType)> {
        let family = value.data_type.family();
        let refused = Message::bad_argument(value.data_type, at + 1, function);
        let with_type = |value: Typed| {
            let code = value.data_type.code().to_string();
            (vec![value.sql, code], value.data_type)
        };
        let to = match parameter {
            Parameter::Text => {
                let value = self.as_text(value, at + 1, function)?;
                return Ok((vec![value.sql], value.data_type));
            }
            Parameter::Typed => return Ok(with_type(value)),
            Parameter::Number => match family {
                Family::Integer if value.data_type != SqlType::BigInt => {
                    return Ok(with_type(self.converted(value, SqlType::Int)))
                }
                Family::Integer | Family::Decimal | Family::Float => return Ok(with_type(value)),
                Family::Null => return Ok(with_type(self.converted(value, SqlType::Int))),
                Family::Text => return Ok(with_type(self.converted(value, SqlType::Float))),
                _ => return Err(refused),
            },
            Parameter::Moment => {
                return match family {
                    Family::Moment => Ok(with_type(value)),
                    Family::Text | Family::Null => {
                        Ok(with_type(self.converted(value, SqlType::DateTime2(7))))
                    }
                    Family::Integer | Family::Decimal | Family::Float => {
                        Ok(with_type(self.converted(value, SqlType::DateTime)))
                    }
                    _ => Err(refused),
                }
            }
            Parameter::National => match family {
                Family::Xml => return Err(refused),
                _ => SqlType::nvarchar(4000),
            },
            Parameter::Int => SqlType::Int,
            Parameter::Float => SqlType::Float,
            Parameter::Binary => SqlType::VarBinary(Length::Max),
        };
        if matches!(parameter, Parameter::Binary) && family == Family::Text {
            let value = self.converted(value, to);
            return Ok((vec![value.sql], to));
        }
        let long = matches!(value.data_type.length(), Some(Length::Max));
        if matches!(parameter, Parameter::National) && long {
            let value = self.converted(value, SqlType::NVARCHAR_MAX);
            return Ok((vec![value.sql], SqlType::NVARCHAR_MAX));
        }
        let value = self.coerced(value, to).map_err(|_| refused)?;
        Ok((vec![value.sql], to))
    }
}

/// Whether a function, in capitals, is one of this file, of `special.rs` or of the server's.
fn is_here(name: &str) -> bool {
    super::special::is_special(name)
        || builtin(name).is_some()
        || metadata_function(name).is_some()
        || server_function(name).is_some()
}

/// The name in capitals; only functions of SQL Server's own are known. Those that begin with `fn_` are called by their schema.
pub(super) fn function_name(call: &FunctionCall) -> Result<String> {
    let name = call.name.object.as_str().to_uppercase();
    let is_of_sys = || {
        let schema = call.name.schema.as_ref().map(|schema| schema.as_str());
        let is_sys = schema.is_some_and(|schema| schema.eq_ignore_ascii_case("sys"));
        is_sys && call.name.database.is_none() && server_function(&name).is_some()
    };
    match call.name.is_bare() {
        true if name.starts_with("FN_") => Err(Message::unknown_function(&name)),
        true => Ok(name),
        false if name.starts_with("FN_") && is_of_sys() => Ok(name),
        false if is_agent_datetime(&call.name) => Ok(AGENT_DATETIME.to_owned()),
        false => {
            let name = super::scope::object_text(&call.name);
            if known::is_sys_function(&call.name) || known::is_table_function(&call.name) {
                return Err(Message::unsupported(name));
            }
            Err(Message::of(
                table::UNKNOWN_COLUMN_OR_FUNCTION,
                [&call.name.schema.as_ref().map_or("", |schema| schema.as_str()), &name],
            ))
        }
    }
}

/// The one function of `msdb`.
fn is_agent_datetime(name: &ObjectName) -> bool {
    let is = |part: &Option<Name>, word: &str| {
        part.as_ref().is_some_and(|part| part.as_str().eq_ignore_ascii_case(word))
    };
    name.server.is_none()
        && is(&name.database, "msdb")
        && is(&name.schema, "dbo")
        && name.object.as_str().eq_ignore_ascii_case("agent_datetime")
}

pub(super) fn counted(name: &str, count: usize, least: usize, most: usize) -> Result<()> {
    match (least..=most).contains(&count) {
        true => Ok(()),
        false => Err(Message::argument_count(name, least, most)),
    }
}

fn parameter_at(parameters: &[Parameter], at: usize) -> Parameter {
    parameters.get(at).or(parameters.last()).copied().unwrap_or(Parameter::Typed)
}

fn result_type(result: ResultType, types: &[SqlType]) -> SqlType {
    let of = |at: usize| types.get(at).copied().unwrap_or(SqlType::Int);
    match result {
        ResultType::Is(data_type) => data_type,
        ResultType::TextLike(at) => match of(at) {
            SqlType::Char(n) => SqlType::varchar(n),
            SqlType::NChar(n) => SqlType::nvarchar(n),
            other => other,
        },
        ResultType::TextMost(at) => most_text(of(at)),
        ResultType::NumberMost(at, whole) => crate::functions::widened(number_like(of(at)), whole),
        ResultType::NumberLike(at) => number_like(of(at)),
        ResultType::WholeLike(at) => match number_like(of(at)) {
            SqlType::Numeric { precision, .. } => SqlType::numeric(precision, 0),
            other => other,
        },
    }
}

/// What a function of a number gives.
fn number_like(of: SqlType) -> SqlType {
    match of {
        SqlType::Bit | SqlType::TinyInt | SqlType::SmallInt => SqlType::Int,
        SqlType::SmallMoney => SqlType::Money,
        SqlType::Real => SqlType::Float,
        other => other,
    }
}

/// Text of the same kind, as long as can be without being max.
pub(super) fn most_text(data_type: SqlType) -> SqlType {
    match (data_type.is_national(), data_type.length()) {
        (true, Some(Length::Max)) => SqlType::NVARCHAR_MAX,
        (false, Some(Length::Max)) => SqlType::VARCHAR_MAX,
        (true, _) => SqlType::nvarchar(4000),
        (false, _) => SqlType::varchar(8000),
    }
}
