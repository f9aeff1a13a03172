//! `+ - * / % & | ^` and signs.

use super::convert::operand_type;
use super::{balanced, typed, Typed, View, Work};
use crate::ast::{BinaryOperator, Chain, UnaryOperator};
use crate::message::{Message, Result};
use crate::types::{arithmetic, Family, Length, SqlType};

/// Texts that are joined: kept apart, so that a sum of any length stays a tree of little depth.
struct Joined {
    parts: Vec<String>,
    data_type: SqlType,
    sensitive: bool,
}

impl Joined {
    fn typed(self) -> Typed {
        let Self { parts, data_type, sensitive } = self;
        Typed { sql: balanced(&parts, "||"), data_type, sensitive, constant: None }
    }
}

impl Work<'_> {
    pub(super) fn chain(&mut self, chain: &Chain, view: View<'_>) -> Result<Typed> {
        let first = self.expression(&chain.first, view)?;
        let mut joined: Option<Joined> = None;
        let mut left = first;
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
                    let start = Joined {
                        parts: vec![left.sql.clone()],
                        data_type: left.data_type,
                        sensitive: left.sensitive,
                    };
                    joined = Some(join(start, right)?);
                }
                false => left = self.binary(left, *operator, right)?,
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
            true => {
                let Typed { sql, data_type, sensitive, .. } = left;
                join(Joined { parts: vec![sql], data_type, sensitive }, right).map(Joined::typed)
            }
            false => self.binary(left, operator, right),
        }
    }

    fn binary(&mut self, left: Typed, operator: BinaryOperator, right: Typed) -> Result<Typed> {
        let decimal = [&left, &right].iter().any(|v| v.data_type.family() == Family::Decimal);
        let (a, b) = (operand_type(&left, decimal), operand_type(&right, decimal));
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
            UnaryOperator::Minus if number => {
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

/// Longer than its type allows, a text is cut off.
fn join(mut left: Joined, right: Typed) -> Result<Joined> {
    let data_type = arithmetic(BinaryOperator::Add, left.data_type, right.data_type)?;
    let length = |t: SqlType| match t.length() {
        Some(Length::Of(n)) => usize::from(n),
        Some(Length::Max) => usize::MAX,
        None => 1,
    };
    let sum = length(left.data_type).saturating_add(length(right.data_type));
    left.parts.push(right.sql);
    let parts = match data_type.length() {
        Some(Length::Of(most)) if sum > usize::from(most) => {
            vec![format!("tsql_left({}, {most})", balanced(&left.parts, "||"))]
        }
        _ => left.parts,
    };
    Ok(Joined { parts, data_type, sensitive: left.sensitive || right.sensitive })
}
