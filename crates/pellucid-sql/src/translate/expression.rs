//! Values.

use pellucid_tsql::ast::{
    Case, CaseBranches, Comparison, Condition, Convert, Expression, Iif, Literal, Niladic, Query,
};
use pellucid_tsql::keyword::Word;

use super::alike::alike;
use super::convert::{decimal_literal, literal, literal_as};
use super::scope::Clause;
use super::{typed, Parameter, Typed, View, Work};
use crate::functions::server_function;
use crate::known;
use crate::message::{table, Message, Result};
use crate::values::convert::{parse_float, to_hex, Value};
use crate::values::decimal::Decimal;
use crate::values::types::{literal_numeric, Length, SqlType};

impl Work<'_> {
    /// A value and its type.
    pub(super) fn expression(&mut self, expression: &Expression, view: View<'_>) -> Result<Typed> {
        self.depth += 1;
        let value = match self.splits() {
            true => self.split_expression(expression, view),
            false => self.node(expression, view),
        };
        self.depth -= 1;
        value
    }

    /// As [`Self::expression`], whose operands go through it.
    pub(super) fn node(&mut self, expression: &Expression, view: View<'_>) -> Result<Typed> {
        self.visit()?;
        // What a query is grouped by may be selected as a whole.
        let grouped_by =
            |expressions: &[Expression]| expressions.iter().any(|one| alike(one, expression, view));
        if view.grouped.is_some_and(|grouped| grouped_by(grouped.expressions)) {
            let free = View { grouped: None, ..view };
            return self.node(expression, free);
        }
        match expression {
            Expression::Literal(literal) => constant(literal),
            Expression::Column(name) => {
                let column = view.column(name)?;
                let shown = name.column.as_str();
                if column.data_type == SqlType::XmlNode {
                    return Err(Message::of(table::XML_NODE_ALONE, [&shown]));
                }
                // One that APPLY computes is written wherever it is named.
                self.repeat(column.sql.len())?;
                Ok(column)
            }
            Expression::Variable(variable) => self.variable(&variable.0),
            Expression::Default => {
                Err(Message::of(table::INCORRECT_SYNTAX_AT_KEYWORD, [&"DEFAULT"]))
            }
            Expression::SystemVariable(name) => self.system_variable(name),
            Expression::Unary { operator, operand } => {
                let operand = self.expression(operand, view)?;
                self.unary(*operator, operand)
            }
            Expression::Chain(chain) => self.chain(chain, view),
            Expression::Case(case) => self.case(case, view),
            Expression::Iif(iif) => self.iif(iif, view),
            Expression::Convert(convert) => self.convert_call(convert, view),
            Expression::Function(call) => match self.xml_method_of_column(call, view)? {
                Some(value) => Ok(value),
                None => self.function(call, view),
            },
            Expression::Niladic(niladic) => self.niladic(*niladic),
            Expression::Subquery(query) => self.scalar_query(query, view),
            Expression::XmlMethod(xml) => self.xml_method(xml, view),
            Expression::Collate { operand, collation } => {
                let operand = self.expression(operand, view)?;
                collated(operand, collation.as_str())
            }
        }
    }

    fn variable(&mut self, name: &str) -> Result<Typed> {
        let argument = self.arguments.as_ref().and_then(|all| all.get(&name.to_lowercase()));
        if let Some(argument) = argument.cloned() {
            self.repeat(argument.sql.len())?;
            return Ok(argument);
        }
        let data_type =
            self.variables.variable_type(name).ok_or_else(|| Message::undeclared(name))?;
        if let Some(split) = &mut self.split {
            split.note(name);
        }
        let number = self.parameter(Parameter::Variable(name.to_lowercase()));
        Ok(typed(format!("?{number}"), data_type))
    }

    fn system_variable(&mut self, name: &str) -> Result<Typed> {
        let function = server_function(&format!("@@{}", name.to_uppercase())).ok_or_else(|| {
            match known::is_global(name) {
                true => Message::unsupported(format!("@@{}", name.to_uppercase())),
                false => Message::undeclared(&format!("@{name}")),
            }
        })?;
        Ok(typed(format!("tsql_server('{}')", function.name), function.result))
    }

    fn niladic(&mut self, niladic: Niladic) -> Result<Typed> {
        match niladic {
            Niladic::CurrentTimestamp => Ok(now(SqlType::DateTime, false)),
            user => {
                Ok(typed(format!("tsql_server('{}')", user.keyword().text()), SqlType::SYSNAME))
            }
        }
    }

    fn case(&mut self, case: &Case, view: View<'_>) -> Result<Typed> {
        let mut compared = String::new();
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        match &case.branches {
            CaseBranches::Simple { operand, branches } => {
                let operand = self.expression(operand, view)?;
                let mut whens = Vec::new();
                for (when, then) in branches {
                    whens.push(self.expression(when, view)?);
                    values.push(self.expression(then, view)?);
                }
                (compared, conditions) = self.branches(operand, whens)?;
            }
            CaseBranches::Searched(branches) => {
                for (when, then) in branches {
                    conditions.push(self.condition(when, view)?);
                    values.push(self.expression(then, view)?);
                }
            }
        }
        let otherwise = match &case.otherwise {
            Some(otherwise) => self.expression(otherwise, view)?,
            None => typed("NULL", SqlType::Null),
        };
        values.push(otherwise);
        if values.iter().all(|value| value.data_type == SqlType::Null) {
            return Err(Message::of(table::CASE_OF_NULLS, []));
        }
        self.chosen(&compared, &conditions, values)
    }

    /// What stands behind CASE and behind each WHEN. The operand is written once, if it is compared in the same way
    /// in each branch; otherwise each branch compares with its own types, as a searched CASE would.
    fn branches(&mut self, operand: Typed, whens: Vec<Typed>) -> Result<(String, Vec<String>)> {
        let mut kinds = Vec::new();
        for when in &whens {
            kinds.push(self.compared_as(&operand, when)?);
        }
        let same = kinds.windows(2).all(|pair| pair[0] == pair[1]);
        if let (Some((data_type, sensitive)), true) = (kinds.first().copied(), same) {
            let collation = super::condition::collation(data_type, sensitive);
            let compared = format!(" {}{collation}", self.side(operand, data_type));
            let sides = whens.into_iter().map(|when| self.side(when, data_type)).collect();
            return Ok((compared, sides));
        }
        let mut conditions = Vec::new();
        for when in whens {
            self.repeat(operand.sql.len())?;
            conditions.push(self.compared(operand.clone(), Comparison::Equal, when)?);
        }
        Ok((String::new(), conditions))
    }

    /// `CASE compared WHEN .. THEN .. ELSE .. END` of one type; there is one value more than conditions.
    pub(super) fn chosen(
        &mut self,
        compared: &str,
        conditions: &[String],
        values: Vec<Typed>,
    ) -> Result<Typed> {
        let data_type = self.common_type(&values)?;
        let sensitive = values.iter().any(|value| value.sensitive);
        let mut sql = format!("CASE{compared}");
        for (at, value) in values.into_iter().enumerate() {
            let value = self.converted(value, data_type);
            match conditions.get(at) {
                Some(condition) => sql.push_str(&format!(" WHEN {condition} THEN {}", value.sql)),
                None => sql.push_str(&format!(" ELSE {}", value.sql)),
            }
        }
        sql.push_str(" END");
        Ok(Typed { sql, data_type, sensitive, constant: None })
    }

    fn iif(&mut self, iif: &Iif, view: View<'_>) -> Result<Typed> {
        let condition: &Condition = &iif.condition;
        let condition = self.condition(condition, view)?;
        let values =
            vec![self.expression(&iif.then, view)?, self.expression(&iif.otherwise, view)?];
        self.chosen("", &[condition], values)
    }

    fn convert_call(&mut self, call: &Convert, view: View<'_>) -> Result<Typed> {
        const LENGTH_DEFAULT: u16 = 30;
        let to = SqlType::declared(&call.data_type, LENGTH_DEFAULT)?;
        let operand = self.expression(&call.operand, view)?;
        let from = operand.data_type;
        if from != SqlType::Null && !crate::values::convert::allowed(from, to) {
            return Err(Message::no_conversion(from, to));
        }
        let name = if call.or_null { "tsql_try_convert" } else { "tsql_convert" };
        let Some(style) = &call.style else {
            return Ok(match call.or_null {
                false => self.converted(operand, to),
                true => Typed {
                    sql: format!("{name}({}, {}, {})", operand.sql, from.code(), to.code()),
                    data_type: to,
                    sensitive: operand.sensitive,
                    constant: None,
                },
            });
        };
        let style = self.expression(style, view)?;
        let style = self.coerced(style, SqlType::Int)?;
        let sql = format!("{name}({}, {}, {}, {})", operand.sql, from.code(), to.code(), style.sql);
        Ok(Typed { sql, data_type: to, sensitive: operand.sensitive, constant: None })
    }

    /// A query in the place of a value.
    pub(super) fn scalar_query(&mut self, query: &Query, view: View<'_>) -> Result<Typed> {
        if self.splits() {
            return Err(Message::unsupported(
                "a variable in a sub-query that the same SELECT assigns",
            ));
        }
        let within = View { clause: Clause::Other, ..view };
        let relation = self.query(query, within, true)?;
        let [column] = &relation.columns[..] else {
            return Err(Message::of(table::MORE_THAN_ONE_COLUMN, []));
        };
        let sql = match relation.single {
            true => format!("({})", relation.sql),
            false => format!("(SELECT tsql_only(c1) FROM ({}))", relation.sql),
        };
        let (data_type, sensitive) = (column.data_type, column.sensitive);
        Ok(Typed { sql, data_type, sensitive, constant: None })
    }
}

/// The time now.
pub(super) fn now(data_type: SqlType, utc: bool) -> Typed {
    typed(format!("tsql_now({}, {})", data_type.code(), u8::from(utc)), data_type)
}

fn collated(operand: Typed, collation: &str) -> Result<Typed> {
    if operand.data_type.length().is_none() {
        return Err(Message::of(table::NOT_COLLATED, [&operand.data_type.name()]));
    }
    let name = collation.to_ascii_uppercase();
    let sensitive = match name.as_str() {
        "DATABASE_DEFAULT" | "CATALOG_DEFAULT" => false,
        _ if name.ends_with("_BIN") || name.ends_with("_BIN2") || name.contains("_CS") => true,
        _ if name.contains("_CI") => false,
        _ => {
            return Err(Message::of(table::UNKNOWN_COLLATION, [&collation]));
        }
    };
    Ok(Typed { sensitive, ..operand })
}

/// A constant and its type, by how it is written.
fn constant(written: &Literal) -> Result<Typed> {
    let too_long = |digits: &str| Message::of(table::DECIMAL_OUT_OF_RANGE, [&digits]);
    let number = |digits: &str| -> Result<Typed> {
        let (precision, scale) = literal_numeric(digits);
        let decimal = Decimal::parse(digits).filter(|_| precision <= 38);
        let decimal = decimal.ok_or_else(|| too_long(digits))?;
        let mut constant = typed(decimal_literal(decimal), SqlType::numeric(precision, scale));
        constant.constant = Some((precision, scale));
        Ok(constant)
    };
    Ok(match written {
        Literal::Null => typed("NULL", SqlType::Null),
        Literal::String(string) => {
            let chars = string.text.chars().count().max(1);
            let most = if string.national { 4000 } else { 8000 };
            let length = match u16::try_from(chars) {
                Ok(chars) if chars <= most => Length::Of(chars),
                _ => Length::Max,
            };
            let data_type = match string.national {
                true => SqlType::NVarChar(length),
                false => SqlType::VarChar(length),
            };
            typed(literal(&Value::Text(string.text.clone())), data_type)
        }
        Literal::Integer(digits) => match digits.parse::<i32>() {
            Ok(value) => {
                let mut constant = typed(value.to_string(), SqlType::Int);
                constant.constant = Some(literal_numeric(digits));
                constant
            }
            Err(_) => number(digits)?,
        },
        Literal::Decimal(digits) => number(digits)?,
        Literal::Float(digits) => {
            let value = parse_float(digits)
                .ok_or_else(|| Message::of(table::FLOAT_OUT_OF_RANGE, [&digits]))?;
            typed(literal(&Value::Real(value)), SqlType::Float)
        }
        Literal::Money(digits) => {
            let sql =
                literal_as(Value::Text(digits.clone()), SqlType::VARCHAR_MAX, SqlType::Money)?;
            typed(sql, SqlType::Money)
        }
        Literal::Binary(bytes) => {
            let length = match u16::try_from(bytes.len().max(1)) {
                Ok(length) if length <= 8000 => Length::Of(length),
                _ => Length::Max,
            };
            typed(format!("X'{}'", to_hex(bytes)), SqlType::VarBinary(length))
        }
    })
}
