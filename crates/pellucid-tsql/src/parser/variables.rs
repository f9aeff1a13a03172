//! Which variables a batch has declared so far, as its text goes: SQL Server looks before it executes anything.

use std::collections::HashSet;

use super::Parser;
use crate::ast::{Variable, NAME_CHARS_MOST};
use crate::error::{shortened, ErrorKind, Result};
use crate::lexer::TokenKind;

/// A variable that is used where no text before declares it. What executes the batch may know it: `sp_executesql` has
/// parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undeclared {
    /// The name.
    pub variable: Variable,
    /// A table is expected.
    pub is_table: bool,
    /// Line within the batch, from 1.
    pub line: u32,
    /// Which statement of the batch uses it: of one statement, a message tells of the first.
    pub statement: u32,
}

/// What is declared, and what is used without.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// In lower case.
    names: HashSet<String>,
    undeclared: Vec<Undeclared>,
    /// How many have begun.
    statements: u32,
}

impl Declared {
    pub(super) fn begin_statement(&mut self) {
        self.statements = self.statements.saturating_add(1);
    }

    pub(super) fn into_undeclared(self) -> Vec<Undeclared> {
        self.undeclared
    }

    fn use_of(&mut self, variable: &Variable, is_table: bool, line: u32) {
        if self.names.contains(&variable.0.to_lowercase()) {
            return;
        }
        let statement = self.statements;
        self.undeclared.push(Undeclared { variable: variable.clone(), is_table, line, statement });
    }
}

impl Parser<'_> {
    /// `@v`, a value
    pub(super) fn variable(&mut self) -> Result<Variable> {
        match self.accept_variable()? {
            Some(variable) => Ok(variable),
            None => self.unexpected(),
        }
    }

    /// From here on there is a variable of that name.
    pub(super) fn declare_variable(&mut self, variable: &Variable) {
        self.declared.names.insert(variable.0.to_lowercase());
    }

    pub(super) fn accept_variable(&mut self) -> Result<Option<Variable>> {
        self.accept_used(false)
    }

    /// The same of a table variable.
    pub(super) fn accept_table_variable(&mut self) -> Result<Option<Variable>> {
        self.accept_used(true)
    }

    fn accept_used(&mut self, is_table: bool) -> Result<Option<Variable>> {
        if self.current.kind != TokenKind::Variable {
            return Ok(None);
        }
        let line = self.current.line;
        let variable = self.variable_name()?;
        self.declared.use_of(&variable, is_table, line);
        Ok(Some(variable))
    }

    /// `@v` where it is not used: where it is declared, or names a parameter of what is called
    pub(super) fn variable_name(&mut self) -> Result<Variable> {
        if self.current.kind != TokenKind::Variable {
            return self.unexpected();
        }
        let token = self.advance();
        let text = self.text(token);
        if text.len() > NAME_CHARS_MOST && text.chars().count() > NAME_CHARS_MOST {
            let start = shortened(text).to_owned();
            return self.fail_at(token, ErrorKind::NameTooLong { start });
        }
        Ok(Variable(text[1..].to_owned()))
    }
}
