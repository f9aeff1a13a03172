//! `+ - * / % & | ^` and signs.

use pellucid_tsql::ast::{BinaryOperator, Chain, UnaryOperator};

use super::budget::too_complex;
use super::convert::{is_numeric, operand_type};
use super::{balanced, typed, Typed, View, Work};
use crate::message::{Message, Result};
use crate::values::types::{arithmetic, Family, Length, SqlType};

/// Texts that are joined: kept apart, so that a sum of any length stays a tree of little depth.
struct Joined {
    parts: Vec<String>,
    data_type: SqlType,
    sensitive: bool,
    /// Characters that the whole is cut to.
    cut: Option<u16>,
}

impl Joined {
    fn new(first: Typed) -> Self {
        let Typed { sql, data_type, sensitive, .. } = first;
        Self { parts: vec![sql], data_type, sensitive, cut: None }
    }

    fn typed(self) -> Typed {
        let Self { parts, data_type, sensitive, cut } = self;
        Typed { sql: cut_to(&parts, cut), data_type, sensitive, constant: None }
    }
}

fn cut_to(parts: &[String], cut: Option<u16>) -> String {
    let sql = balanced(parts, "||");
    match cut {
        Some(most) => format!("tsql_left({sql}, {most})"),
        None => sql,
    }
}

/// Operators of numbers in a row: each one nests in the next, and SQLite's expressions are 1,000 deep at most.
const OPERATORS_MOST: usize = 900;

impl Work<'_> {
    pub(super) fn chain(&mut self, chain: &Chain, view: View<'_>) -> Result<Typed> {
        let mut joined: Option<Joined> = None;
        let mut left = self.expression(&chain.first, view)?;
        let mut operators = 0;
        for (operator, right) in &chain.rest {
            let right = self.expression(right, view)?;
            if let Some(so_far) = joined.take() {
                let joins = *operator == BinaryOperator::Add
                    && matches!(right.data_type.family(), Family::Text | Family::Null);
                match joins {
                    true => {
                        joined = Some(join(so_far, right)?);
                        continue;
                    }
                    false => left = so_far.typed(),
                }
            }
            let texts = |a: Family, b: Family| {
                a == Family::Text && matches!(b, Family::Text | Family::Null)
            };
            let (a, b) = (left.data_type.family(), right.data_type.family());
            match *operator == BinaryOperator::Add && (texts(a, b) || texts(b, a)) {
                true => {
                    joined = Some(join(Joined::new(left.clone()), right)?);
                }
                false => {
                    operators += 1;
                    if operators > OPERATORS_MOST {
                        return Err(too_complex());
                    }
                    left = self.binary(left, *operator, right)?;
                }
            }
        }
        Ok(match joined {
            Some(joined) => joined.typed(),
            None => left,
        })
    }

    /// `left operator right`, of texts too.
    pub(super) fn operated(
        &mut self,
        left: Typed,
        operator: BinaryOperator,
        right: Typed,
    ) -> Result<Typed> {
        let text = |value: &Typed| matches!(value.data_type.family(), Family::Text | Family::Null);
        let null = |value: &Typed| value.data_type.family() == Family::Null;
        let texts = text(&left) && text(&right) && !(null(&left) && null(&right));
        match operator == BinaryOperator::Add && texts {
            true => join(Joined::new(left), right).map(Joined::typed),
            false => self.binary(left, operator, right),
        }
    }

    fn binary(&mut self, left: Typed, operator: BinaryOperator, right: Typed) -> Result<Typed> {
        // Bytes beside a whole number are one.
        let whole = |value: &Typed| value.data_type.family() == Family::Integer;
        let bytes = |value: &Typed| value.data_type.family() == Family::Binary;
        let (left, right) = match (bytes(&left) && whole(&right), whole(&left) && bytes(&right)) {
            (true, _) => (self.converted(left, right.data_type), right),
            (_, true) => {
                let converted = self.converted(right, left.data_type);
                (left, converted)
            }
            _ => (left, right),
        };
        let numeric = is_numeric(&left) || is_numeric(&right);
        let (a, b) = (operand_type(&left, numeric), operand_type(&right, numeric));
        let result = arithmetic(operator, a, b)?;
        let name = match operator {
            BinaryOperator::Add => "add",
            BinaryOperator::Subtract => "subtract",
            BinaryOperator::Multiply => "multiply",
            BinaryOperator::Divide => "divide",
            BinaryOperator::Modulo => "modulo",
            BinaryOperator::BitAnd => "bit_and",
            BinaryOperator::BitOr => "bit_or",
            BinaryOperator::BitXor => "bit_xor",
        };
        let sql = match operator {
            BinaryOperator::BitAnd | BinaryOperator::BitOr | BinaryOperator::BitXor => {
                format!("tsql_{name}({}, {})", left.sql, right.sql)
            }
            _ => format!("tsql_{name}({}, {}, {}, {})", left.sql, a.code(), right.sql, b.code()),
        };
        Ok(typed(sql, result))
    }

    pub(super) fn unary(&mut self, operator: UnaryOperator, operand: Typed) -> Result<Typed> {
        let family = operand.data_type.family();
        let number = matches!(family, Family::Integer | Family::Decimal | Family::Float);
        match operator {
            UnaryOperator::Plus => Ok(Typed { constant: None, ..operand }),
            UnaryOperator::Minus if family == Family::Null => Ok(typed("NULL", SqlType::Int)),
            // The smallest type that has the value with the other sign.
            UnaryOperator::Minus if operand.data_type == SqlType::TinyInt => {
                self.unary(operator, self.converted(operand, SqlType::SmallInt))
            }
            UnaryOperator::Minus if number && operand.data_type != SqlType::Bit => {
                let code = operand.data_type.code();
                let sql = format!("tsql_negate({}, {code})", operand.sql);
                Ok(Typed { sql, ..operand })
            }
            UnaryOperator::Not if matches!(family, Family::Integer | Family::Null) => {
                let code = operand.data_type.code();
                Ok(typed(format!("tsql_bit_not({}, {code})", operand.sql), operand.data_type))
            }
            UnaryOperator::Minus => Err(Message::bad_operand(operand.data_type, "minus")),
            UnaryOperator::Not => Err(Message::bad_operand(operand.data_type, "'~'")),
        }
    }
}

/// Longer than its type allows, a text is cut off: once for all that is joined, as long as the type has a length.
fn join(mut left: Joined, right: Typed) -> Result<Joined> {
    let data_type = arithmetic(BinaryOperator::Add, left.data_type, right.data_type)?;
    let length = |t: SqlType| match t.length() {
        Some(Length::Of(n)) => usize::from(n),
        Some(Length::Max) => usize::MAX,
        None => 1,
    };
    let sum = length(left.data_type).saturating_add(length(right.data_type));
    match data_type.length() {
        Some(Length::Of(most)) if sum > usize::from(most) => left.cut = Some(most),
        Some(Length::Of(_)) => {}
        _ if left.cut.is_some() => left.parts = vec![cut_to(&left.parts, left.cut.take())],
        _ => {}
    }
    left.parts.push(right.sql);
    Ok(Joined { data_type, sensitive: left.sensitive || right.sensitive, ..left })
}
