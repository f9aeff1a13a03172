//! Conditions. A parenthesis may open a value, a condition or a query: which, its content says.

use super::Parser;
use crate::ast::{Comparison, Condition, Expression, InList, Query, QueryBody};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

/// What a parenthesis turned out to hold.
pub(super) enum Operand {
    Value(Expression),
    Truth(Condition),
    Query(Query),
}

impl Parser<'_> {
    pub(super) fn condition(&mut self) -> Result<Condition> {
        match self.nested(Self::operand)? {
            Operand::Truth(condition) => Ok(condition),
            _ => self.not_a_condition(),
        }
    }

    fn not_a_condition<T>(&self) -> Result<T> {
        match (self.broken.is_some(), self.current.kind) {
            (true, _) => self.unexpected(),
            (_, TokenKind::End) => {
                self.fail_at(self.last, ErrorKind::NotACondition { near: self.near(self.last) })
            }
            _ => self.fail(ErrorKind::NotACondition { near: self.near(self.current) }),
        }
    }

    /// A condition, if it turns out to be one.
    fn operand(&mut self) -> Result<Operand> {
        match self.term()? {
            Operand::Truth(condition) => self.condition_from(condition),
            other => Ok(other),
        }
    }

    fn conjunction_from(&mut self, mut left: Condition) -> Result<Condition> {
        while self.accept(K::AND) {
            left = Condition::and(left, self.truth()?);
        }
        Ok(left)
    }

    fn truth(&mut self) -> Result<Condition> {
        match self.term()? {
            Operand::Truth(condition) => Ok(condition),
            _ => self.not_a_condition(),
        }
    }

    /// An operand of AND and OR, or a value.
    fn term(&mut self) -> Result<Operand> {
        match self.current.kind {
            TokenKind::Keyword(K::NOT) => {
                self.advance();
                let inner = self.nested(Self::truth)?;
                Ok(Operand::Truth(Condition::Not(Box::new(inner))))
            }
            TokenKind::Keyword(K::EXISTS) => {
                self.advance();
                let query = self.parenthesized_query()?;
                Ok(Operand::Truth(Condition::Exists(Box::new(query))))
            }
            TokenKind::Keyword(word @ (K::CONTAINS | K::FREETEXT)) => self.unsupported(word.text()),
            TokenKind::Name if self.words_of(&["MATCH ("]).is_some() => self.unsupported("MATCH"),
            TokenKind::Symbol(Symbol::LeftParenthesis) => match self.parenthesized(true)? {
                Operand::Value(value) => self.value_or_comparison(value),
                Operand::Query(query) => {
                    self.value_or_comparison(Expression::Subquery(Box::new(query)))
                }
                truth => Ok(truth),
            },
            _ => {
                let value = self.expression()?;
                self.comparison(value)
            }
        }
    }

    fn value_or_comparison(&mut self, first: Expression) -> Result<Operand> {
        let value = self.expression_from(first)?;
        self.comparison(value)
    }

    /// `( .. )`: a value, a query, or, where `truth` fits, a condition.
    pub(super) fn parenthesized(&mut self, truth: bool) -> Result<Operand> {
        self.nested(|p| p.parenthesized_within(truth))
    }

    fn parenthesized_within(&mut self, truth: bool) -> Result<Operand> {
        self.require_symbol(Symbol::LeftParenthesis)?;
        let content = match self.current.kind {
            TokenKind::Keyword(K::SELECT) => Operand::Query(self.query()?),
            TokenKind::Symbol(Symbol::LeftParenthesis) => match self.parenthesized(truth)? {
                Operand::Query(query) if self.at_set_operator() => {
                    Operand::Query(self.query_from(query)?)
                }
                Operand::Query(query) if self.at_symbol(Symbol::RightParenthesis) => {
                    Operand::Query(query)
                }
                Operand::Query(query) => {
                    self.content_from(Expression::Subquery(Box::new(query)), truth)?
                }
                Operand::Value(value) => self.content_from(value, truth)?,
                Operand::Truth(condition) => self.condition_from(condition)?,
            },
            _ if truth => self.operand()?,
            _ => Operand::Value(self.expression()?),
        };
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(content)
    }

    /// The rest of what a parenthesis holds, behind a first operand that is a value.
    fn content_from(&mut self, first: Expression, truth: bool) -> Result<Operand> {
        let value = self.expression_from(first)?;
        match truth {
            true => match self.comparison(value)? {
                Operand::Truth(condition) => self.condition_from(condition),
                value => Ok(value),
            },
            false => Ok(Operand::Value(value)),
        }
    }

    /// The rest of a condition of which `first` is taken.
    fn condition_from(&mut self, first: Condition) -> Result<Operand> {
        let mut left = self.conjunction_from(first)?;
        while self.accept(K::OR) {
            let first = self.truth()?;
            left = Condition::or(left, self.conjunction_from(first)?);
        }
        Ok(Operand::Truth(left))
    }

    /// What `operand` is compared with; if with nothing, it is a value.
    fn comparison(&mut self, operand: Expression) -> Result<Operand> {
        if let TokenKind::Symbol(symbol) = self.current.kind {
            let comparison = match symbol {
                Symbol::Equal => Comparison::Equal,
                Symbol::NotEqual | Symbol::NotEqualBang => Comparison::NotEqual,
                Symbol::Less => Comparison::Less,
                Symbol::LessEqual | Symbol::NotGreater => Comparison::LessOrEqual,
                Symbol::Greater => Comparison::Greater,
                Symbol::GreaterEqual | Symbol::NotLess => Comparison::GreaterOrEqual,
                Symbol::StarEqual => return self.unsupported("*="),
                _ => return Ok(Operand::Value(operand)),
            };
            self.advance();
            return self.compared(operand, comparison).map(Operand::Truth);
        }
        let negated = self.accept(K::NOT);
        let condition = match self.keyword() {
            Some(K::IS) if !negated => self.is(operand)?,
            Some(K::BETWEEN) => {
                self.advance();
                let low = self.expression()?;
                self.require(K::AND)?;
                Condition::Between { operand, negated, low, high: self.expression()? }
            }
            Some(K::IN) => {
                self.advance();
                Condition::In { operand, negated, list: self.in_list()? }
            }
            Some(K::LIKE) => {
                self.advance();
                let pattern = self.expression()?;
                let escape = match self.accept(K::ESCAPE) {
                    true => Some(self.expression()?),
                    false => None,
                };
                Condition::Like { operand, negated, pattern, escape }
            }
            _ if negated => return self.unexpected(),
            _ => return Ok(Operand::Value(operand)),
        };
        Ok(Operand::Truth(condition))
    }

    fn compared(&mut self, left: Expression, comparison: Comparison) -> Result<Condition> {
        match self.accept_word() {
            Some(quantifier) => {
                let query = Box::new(self.parenthesized_query()?);
                Ok(Condition::Quantified { left, comparison, quantifier, query })
            }
            None => Ok(Condition::Compare { left, comparison, right: self.expression()? }),
        }
    }

    fn is(&mut self, operand: Expression) -> Result<Condition> {
        self.require(K::IS)?;
        let negated = self.accept(K::NOT);
        match self.accept(K::DISTINCT) {
            true => {
                self.require(K::FROM)?;
                Ok(Condition::IsDistinct { left: operand, negated, right: self.expression()? })
            }
            false => self.require(K::NULL).map(|()| Condition::IsNull { operand, negated }),
        }
    }

    fn in_list(&mut self) -> Result<InList> {
        self.require_symbol(Symbol::LeftParenthesis)?;
        let first = match self.current.kind {
            TokenKind::Keyword(K::SELECT) => {
                let query = self.query()?;
                self.require_symbol(Symbol::RightParenthesis)?;
                return Ok(InList::Query(Box::new(query)));
            }
            TokenKind::Symbol(Symbol::LeftParenthesis) => match self.parenthesized(false)? {
                Operand::Query(first) if self.at_set_operator() => {
                    let query = self.query_from(first)?;
                    self.require_symbol(Symbol::RightParenthesis)?;
                    return Ok(InList::Query(Box::new(query)));
                }
                Operand::Query(query) => {
                    self.expression_from(Expression::Subquery(Box::new(query)))?
                }
                Operand::Value(value) => self.expression_from(value)?,
                Operand::Truth(_) => return self.unexpected(),
            },
            _ => self.expression()?,
        };
        let mut values = vec![first];
        while self.accept_symbol(Symbol::Comma) {
            values.push(self.expression()?);
        }
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(InList::Values(values))
    }

    /// `(SELECT ..)`
    pub(super) fn parenthesized_query(&mut self) -> Result<Query> {
        match self.parenthesized(false)? {
            Operand::Query(query) => Ok(query),
            _ => self.unexpected(),
        }
    }

    /// The rest of a query of which `first`, in parentheses, is taken.
    pub(super) fn query_from(&mut self, first: Query) -> Result<Query> {
        match first {
            Query { with, body, order, offset: None, xml: None, options }
                if with.is_empty() && order.is_empty() && options.is_empty() =>
            {
                let body: QueryBody = self.query_body_from(body)?;
                self.query_end(Vec::new(), body)
            }
            _ => self.unexpected(),
        }
    }
}
