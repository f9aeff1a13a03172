//! INSERT, UPDATE and DELETE.

use super::name::is_name;
use super::query::assignment_operator;
use super::Parser;
use crate::ast::{
    ChangeTarget, ColumnName, CommonTable, Condition, Delete, Execute, Expression, Insert,
    InsertSource, Name, OutputClause, OutputInto, SelectItem, SetClause, SetTarget, StatementKind,
    Update,
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
        let columns = self.columns_of_insert()?;
        let output = self.output_clauses()?;
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
        Ok(StatementKind::Insert(Box::new(Insert { with, top, target, columns, output, source })))
    }

    pub(super) fn update(&mut self, with: Vec<CommonTable>) -> Result<StatementKind> {
        self.require(K::UPDATE)?;
        let top = self.top()?;
        let target = self.change_target()?;
        self.require(K::SET)?;
        let set = self.comma_list(Self::set_clause)?;
        let output = self.output_clauses()?;
        let from = self.from()?;
        let filter = self.change_filter()?;
        let options = self.query_options()?;
        let update = Update { with, top, target, set, output, from, filter, options };
        Ok(StatementKind::Update(Box::new(update)))
    }

    pub(super) fn delete(&mut self, with: Vec<CommonTable>) -> Result<StatementKind> {
        self.require(K::DELETE)?;
        let top = self.top()?;
        self.accept(K::FROM);
        let target = self.change_target()?;
        let output = self.output_clauses()?;
        let from = self.from()?;
        let filter = self.change_filter()?;
        let options = self.query_options()?;
        let delete = Delete { with, top, target, output, from, filter, options };
        Ok(StatementKind::Delete(Box::new(delete)))
    }

    /// `(a, b)`, unless it is a query that is in parentheses.
    fn columns_of_insert(&mut self) -> Result<Vec<Name>> {
        let opens_columns = self.at_symbol(Symbol::LeftParenthesis)
            && self.peek() != TokenKind::Keyword(K::SELECT)
            && self.peek() != TokenKind::Symbol(Symbol::LeftParenthesis);
        match opens_columns {
            true => self.parenthesized_list(Self::name),
            false => Ok(Vec::new()),
        }
    }

    /// `OUTPUT a, b [INTO t (c, d) [OUTPUT e]]`; empty if there is none.
    fn output_clauses(&mut self) -> Result<Vec<OutputClause>> {
        let mut clauses = Vec::new();
        while self.accept(K::OUTPUT) {
            let items = self.comma_list(Self::output_item)?;
            let is_first = clauses.is_empty();
            let into = match is_first && self.accept(K::INTO) {
                true => Some(self.output_into()?),
                false => None,
            };
            let is_last = into.is_none();
            clauses.push(OutputClause { items, into });
            if is_last {
                break;
            }
        }
        Ok(clauses)
    }

    fn output_item(&mut self) -> Result<SelectItem> {
        // What is given has no star but that of a table, and assigns nothing.
        let is_star = self.at_symbol(Symbol::Star);
        if is_star || (self.current.kind == TokenKind::Variable && self.assigns_next()) {
            return self.unexpected();
        }
        self.select_item()
    }

    fn assigns_next(&self) -> bool {
        assignment_operator(self.peek()).is_some()
    }

    fn output_into(&mut self) -> Result<OutputInto> {
        let target = match self.accept_table_variable()? {
            Some(variable) => ChangeTarget::Variable(variable),
            None => ChangeTarget::Table { name: self.object_name()?, hints: Vec::new() },
        };
        Ok(OutputInto { target, columns: self.columns_of_insert()? })
    }

    fn change_target(&mut self) -> Result<ChangeTarget> {
        if let Some(variable) = self.accept_table_variable()? {
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
