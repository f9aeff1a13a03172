//! Control of flow, variables, transactions.

use super::Parser;
use crate::ast::{
    Control, Declaration, Name, OrVariable, RaiseError, StatementKind, Throw, TransactionStatement,
};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    /// `BEGIN` of a block, of TRY or of a transaction.
    pub(super) fn begin(&mut self) -> Result<StatementKind> {
        self.advance();
        match self.keyword() {
            Some(K::TRAN | K::TRANSACTION) => self.begin_transaction(),
            Some(K::DISTRIBUTED) => self.unsupported("BEGIN DISTRIBUTED TRANSACTION"),
            Some(K::CONVERSATION) => self.unsupported("BEGIN CONVERSATION"),
            None if self.words_of(&["DIALOG"]).is_some() => self.unsupported("BEGIN DIALOG"),
            Some(K::TRY) => {
                self.advance();
                self.try_catch().map(StatementKind::Control)
            }
            _ => {
                let body = self.statements_to_end()?;
                if body.is_empty() {
                    return self.unexpected();
                }
                self.advance();
                Ok(StatementKind::Control(Control::Block(body)))
            }
        }
    }

    fn try_catch(&mut self) -> Result<Control> {
        let body = self.statements_to_end()?;
        if body.is_empty() {
            return self.unexpected();
        }
        self.require_all(&[K::END, K::TRY, K::BEGIN, K::CATCH])?;
        self.catches += 1;
        let catch = self.statements_to_end();
        self.catches -= 1;
        let catch = catch?;
        self.require_all(&[K::END, K::CATCH])?;
        Ok(Control::Try { body, catch })
    }

    pub(super) fn if_statement(&mut self) -> Result<StatementKind> {
        self.advance();
        let condition = self.condition()?;
        let then = self.body()?;
        if self.at_symbol(Symbol::Semicolon) && self.peek() == TokenKind::Keyword(K::ELSE) {
            self.advance();
        }
        let otherwise = match self.accept(K::ELSE) {
            true => Some(self.body()?),
            false => None,
        };
        Ok(StatementKind::Control(Control::If { condition, then, otherwise }))
    }

    pub(super) fn while_statement(&mut self) -> Result<StatementKind> {
        self.advance();
        let condition = self.condition()?;
        self.loops += 1;
        let body = self.body();
        self.loops -= 1;
        Ok(StatementKind::Control(Control::While { condition, body: body? }))
    }

    /// BREAK or CONTINUE.
    pub(super) fn leave_loop(&mut self, word: K) -> Result<StatementKind> {
        let (control, error) = match word {
            K::BREAK => (Control::Break, ErrorKind::BreakOutsideWhile),
            _ => (Control::Continue, ErrorKind::ContinueOutsideWhile),
        };
        if self.loops == 0 {
            return self.fail(error);
        }
        self.advance();
        Ok(StatementKind::Control(control))
    }

    /// `GOTO label`
    pub(super) fn goto(&mut self) -> Result<StatementKind> {
        self.advance();
        self.name().map(|label| StatementKind::Control(Control::Goto(label)))
    }

    /// `label:`
    pub(super) fn label(&mut self) -> Result<StatementKind> {
        let label = self.name()?;
        self.require_symbol(Symbol::Colon)?;
        Ok(StatementKind::Control(Control::Label(label)))
    }

    pub(super) fn return_statement(&mut self) -> Result<StatementKind> {
        self.advance();
        let valued = match self.current.kind {
            TokenKind::Symbol(
                Symbol::LeftParenthesis | Symbol::Minus | Symbol::Plus | Symbol::Tilde,
            )
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Float
            | TokenKind::Money
            | TokenKind::Binary
            | TokenKind::String { .. }
            | TokenKind::Variable
            | TokenKind::SystemVariable
            | TokenKind::Keyword(
                K::NULL
                | K::CASE
                | K::CONVERT
                | K::COALESCE
                | K::NULLIF
                | K::LEFT
                | K::RIGHT
                | K::TRY_CONVERT
                | K::CURRENT_TIMESTAMP,
            ) => true,
            // What may begin a statement as well begins one within a procedure.
            _ => {
                self.at_name()
                    && !self.at(K::THROW)
                    && self.peek() != TokenKind::Symbol(Symbol::Colon)
            }
        };
        let value = match valued {
            true if !self.in_module => return self.fail(ErrorKind::ReturnsValue),
            true => Some(self.expression()?),
            false => None,
        };
        Ok(StatementKind::Control(Control::Return(value)))
    }

    pub(super) fn throw(&mut self) -> Result<Control> {
        let word = self.advance();
        let has_arguments = matches!(self.current.kind, TokenKind::Integer | TokenKind::Variable);
        if !has_arguments {
            return match self.catches {
                0 => self.fail_at(word, ErrorKind::ThrowOutsideCatch),
                _ => Ok(Control::Throw(None)),
            };
        }
        let number = self.integer_or_variable()?;
        self.require_symbol(Symbol::Comma)?;
        let message = self.string_or_variable()?;
        self.require_symbol(Symbol::Comma)?;
        let state = self.integer_or_variable()?;
        Ok(Control::Throw(Some(Throw { number, message, state })))
    }

    pub(super) fn raiserror(&mut self) -> Result<StatementKind> {
        self.advance();
        self.require_symbol(Symbol::LeftParenthesis)?;
        let message = self.expression()?;
        self.require_symbol(Symbol::Comma)?;
        let severity = self.expression()?;
        self.require_symbol(Symbol::Comma)?;
        let state = self.expression()?;
        let arguments = match self.accept_symbol(Symbol::Comma) {
            true => self.comma_list(Self::expression)?,
            false => Vec::new(),
        };
        self.require_symbol(Symbol::RightParenthesis)?;
        let has_options = self.at(K::WITH)
            && matches!(self.peek(), TokenKind::Keyword(K::LOG | K::NOWAIT | K::SETERROR));
        let mut options = Vec::new();
        if has_options {
            self.advance();
            options = self.comma_list(Self::require_word)?;
        }
        let raise = RaiseError { message, severity, state, arguments, options };
        Ok(StatementKind::Control(Control::RaiseError(Box::new(raise))))
    }

    pub(super) fn waitfor(&mut self) -> Result<StatementKind> {
        self.advance();
        if self.at_symbol(Symbol::LeftParenthesis) {
            return self.unsupported("WAITFOR a statement");
        }
        let kind = self.require_word()?;
        let time = self.string_or_variable()?;
        Ok(StatementKind::Control(Control::WaitFor { kind, time }))
    }

    pub(super) fn declare(&mut self) -> Result<StatementKind> {
        self.advance();
        if self.at_name() {
            return self.declare_cursor();
        }
        let declarations = self.comma_list(|parser| {
            let declaration = parser.declaration()?;
            parser.declare_variable(declaration.variable());
            Ok(declaration)
        })?;
        Ok(StatementKind::Declare(declarations))
    }

    fn declaration(&mut self) -> Result<Declaration> {
        let variable = self.variable_name()?;
        self.accept(K::AS);
        if self.accept(K::CURSOR) {
            return Ok(Declaration::Cursor(variable));
        }
        if self.accept(K::TABLE) {
            let elements = self.parenthesized_list(Self::table_element)?;
            return Ok(Declaration::Table { variable, elements });
        }
        let data_type = self.data_type()?;
        let value = match self.accept_symbol(Symbol::Equal) {
            true => Some(self.expression()?),
            false => None,
        };
        Ok(Declaration::Scalar { variable, data_type, value })
    }

    fn begin_transaction(&mut self) -> Result<StatementKind> {
        self.advance();
        let name = self.transaction_name()?;
        let mut mark = None;
        if name.is_some() && self.at_both(K::WITH, K::MARK) {
            self.require_all(&[K::WITH, K::MARK])?;
            mark = Some(match self.current.kind {
                TokenKind::String { .. } => Some(self.string()?),
                _ => None,
            });
        }
        Ok(StatementKind::Transaction(TransactionStatement::Begin { name, mark }))
    }

    /// COMMIT, ROLLBACK or SAVE.
    pub(super) fn transaction(&mut self, verb: K) -> Result<StatementKind> {
        self.advance();
        if verb == K::SAVE {
            if !self.accept(K::TRAN) {
                self.require(K::TRANSACTION)?;
            }
            let name = self.name_or_variable()?;
            return Ok(StatementKind::Transaction(TransactionStatement::Save { name }));
        }
        let name = match self.accept(K::TRAN) || self.accept(K::TRANSACTION) {
            true => self.transaction_name()?,
            false => {
                self.accept(K::WORK);
                None
            }
        };
        Ok(StatementKind::Transaction(match verb {
            K::COMMIT => TransactionStatement::Commit { name },
            _ => TransactionStatement::Rollback { name },
        }))
    }

    fn transaction_name(&mut self) -> Result<Option<OrVariable<Name>>> {
        // A label that follows is none: `ROLLBACK TRANSACTION EndSave:`
        let is_label = self.peek() == TokenKind::Symbol(Symbol::Colon);
        match (self.at_name() && !is_label) || self.current.kind == TokenKind::Variable {
            true => self.name_or_variable().map(Some),
            false => Ok(None),
        }
    }
}
