//! INSERT, UPDATE and DELETE.

use super::name::is_name;
use super::query::assignment_operator;
use super::Parser;
use crate::ast::{
    ChangeTarget, ColumnName, CommonTable, Condition, Delete, Execute, Expression, Insert,
    InsertSource, SetClause, SetTarget, StatementKind, Update,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    pub(super) fn insert(&mut self, with: Vec<CommonTable>) -> Result<StatementKind> {
        self.require(K::INSERT)?;
        if self.at(K::BULK) {
            return self.unsupported("INSERT BULK");
        }
        let top = self.top()?;
        self.accept(K::INTO);
        let target = self.change_target()?;
        let opens_columns = self.at_symbol(Symbol::LeftParenthesis)
            && self.peek() != TokenKind::Keyword(K::SELECT)
            && self.peek() != TokenKind::Symbol(Symbol::LeftParenthesis);
        let columns = match opens_columns {
            true => self.parenthesized_list(Self::name)?,
            false => Vec::new(),
        };
        self.refuse_output()?;
        let source = match self.keyword() {
            Some(K::VALUES) => {
                self.advance();
                let row = |p: &mut Self| p.parenthesized_list(Self::value_or_default);
                InsertSource::Values(self.comma_list(row)?)
            }
            Some(K::DEFAULT) => {
                self.require_all(&[K::DEFAULT, K::VALUES])?;
                InsertSource::DefaultValues
            }
            Some(K::EXEC | K::EXECUTE) => {
                let execute: Execute = self.execute()?;
                InsertSource::Execute(Box::new(execute))
            }
            _ => InsertSource::Query(Box::new(self.query()?)),
        };
        Ok(StatementKind::Insert(Box::new(Insert { with, top, target, columns, source })))
    }

    pub(super) fn update(&mut self, with: Vec<CommonTable>) -> Result<StatementKind> {
        self.require(K::UPDATE)?;
        let top = self.top()?;
        let target = self.change_target()?;
        self.require(K::SET)?;
        let set = self.comma_list(Self::set_clause)?;
        self.refuse_output()?;
        let from = self.from()?;
        let filter = self.change_filter()?;
        let options = self.query_options()?;
        let update = Update { with, top, target, set, from, filter, options };
        Ok(StatementKind::Update(Box::new(update)))
    }

    pub(super) fn delete(&mut self, with: Vec<CommonTable>) -> Result<StatementKind> {
        self.require(K::DELETE)?;
        let top = self.top()?;
        self.accept(K::FROM);
        let target = self.change_target()?;
        self.refuse_output()?;
        let from = self.from()?;
        let filter = self.change_filter()?;
        let options = self.query_options()?;
        let delete = Delete { with, top, target, from, filter, options };
        Ok(StatementKind::Delete(Box::new(delete)))
    }

    fn refuse_output(&self) -> Result<()> {
        match self.at(K::OUTPUT) {
            true => self.unsupported("OUTPUT clause"),
            false => Ok(()),
        }
    }

    fn change_target(&mut self) -> Result<ChangeTarget> {
        if let Some(variable) = self.accept_variable()? {
            return Ok(ChangeTarget::Variable(variable));
        }
        if let Some(word @ (K::OPENQUERY | K::OPENROWSET | K::OPENDATASOURCE)) = self.keyword() {
            return self.unsupported(word.text());
        }
        let name = self.object_name()?;
        Ok(ChangeTarget::Table { name, hints: self.table_hints()? })
    }

    fn change_filter(&mut self) -> Result<Option<Condition>> {
        if !self.accept(K::WHERE) {
            return Ok(None);
        }
        match self.at_both(K::CURRENT, K::OF) {
            true => self.unsupported("WHERE CURRENT OF"),
            false => self.condition().map(Some),
        }
    }

    /// A value; `None`: `DEFAULT`.
    fn value_or_default(&mut self) -> Result<Option<Expression>> {
        match self.accept(K::DEFAULT) {
            true => Ok(None),
            false => self.expression().map(Some),
        }
    }

    fn set_clause(&mut self) -> Result<SetClause> {
        let target = match self.accept_variable()? {
            Some(variable) => {
                // `@v = column = value`, unless what follows is the value.
                let column = match self.at_symbol(Symbol::Equal) {
                    true => self.column_before_equal()?,
                    false => None,
                };
                match column {
                    Some(column) => SetTarget::Both(variable, column),
                    None => SetTarget::Variable(variable),
                }
            }
            None => SetTarget::Column(self.column_name()?),
        };
        if self.at_symbol(Symbol::LeftParenthesis) {
            return self.unsupported(".WRITE");
        }
        let operator = self.assignment_operator()?;
        Ok(SetClause { target, operator, value: self.value_or_default()? })
    }

    /// The column of `= column = value`; without taking anything if that is not what is here.
    fn column_before_equal(&mut self) -> Result<Option<ColumnName>> {
        let mut ahead = self.lexer.clone();
        let mut named = false;
        loop {
            match ahead.token().map_or(TokenKind::Stray, |token| token.kind) {
                kind if !named && is_name(kind) => named = true,
                TokenKind::Symbol(Symbol::Dot) => named = false,
                kind if named && assignment_operator(kind).is_some() => break,
                _ => return Ok(None),
            }
        }
        self.require_symbol(Symbol::Equal)?;
        self.column_name().map(Some)
    }
}
