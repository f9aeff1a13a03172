//! EXECUTE.

use super::Parser;
use crate::ast::{
    Argument, ArgumentValue, Execute, Principal, ProcedureName, SessionStatement, StatementKind,
    Variable,
};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    /// `{EXEC | EXECUTE} ..`, and `EXECUTE AS ..`
    pub(super) fn execute_statement(&mut self) -> Result<StatementKind> {
        match self.peek() == TokenKind::Keyword(K::AS) {
            true => self.execute_as().map(StatementKind::Session),
            false => self.execute().map(|execute| StatementKind::Execute(Box::new(execute))),
        }
    }

    /// `EXECUTE AS {CALLER | {LOGIN | USER} = name} [WITH {NO REVERT | COOKIE INTO @v}]`
    fn execute_as(&mut self) -> Result<SessionStatement> {
        self.advance();
        self.require(K::AS)?;
        let principal = match self.text(self.current).to_ascii_uppercase().as_str() {
            "CALLER" => {
                self.advance();
                Principal::Caller
            }
            "LOGIN" => {
                self.advance();
                Principal::Login(self.equal_text()?)
            }
            "USER" => {
                self.advance();
                Principal::User(self.equal_text()?)
            }
            _ => return self.unexpected(),
        };
        if self.at(K::WITH) {
            return self.unsupported("EXECUTE AS WITH");
        }
        Ok(SessionStatement::ExecuteAs(principal))
    }

    /// `REVERT`
    pub(super) fn revert(&mut self) -> Result<StatementKind> {
        self.advance();
        if self.at(K::WITH) {
            return self.unsupported("REVERT WITH COOKIE");
        }
        Ok(StatementKind::Session(SessionStatement::Revert))
    }

    /// `{EXEC | EXECUTE} ..`
    pub(super) fn execute(&mut self) -> Result<Execute> {
        if !self.accept(K::EXEC) {
            self.require(K::EXECUTE)?;
        }
        match self.current.kind {
            TokenKind::Symbol(Symbol::LeftParenthesis) => self.execute_statements(),
            _ => {
                let called = match self.accept_variable()? {
                    Some(result) if self.accept_symbol(Symbol::Equal) => {
                        return self.execute_procedure(Some(result));
                    }
                    called => called,
                };
                match called {
                    Some(variable) => self.execute_named(None, ProcedureName::Variable(variable)),
                    None => self.execute_procedure(None),
                }
            }
        }
    }

    /// A procedure and its arguments.
    pub(super) fn execute_procedure(&mut self, result: Option<Variable>) -> Result<Execute> {
        let procedure = match self.accept_variable()? {
            Some(variable) => ProcedureName::Variable(variable),
            None => ProcedureName::Name(self.object_name()?),
        };
        self.execute_named(result, procedure)
    }

    fn execute_named(
        &mut self,
        result: Option<Variable>,
        procedure: ProcedureName,
    ) -> Result<Execute> {
        if self.at_symbol(Symbol::Semicolon) && self.peek() == TokenKind::Integer {
            return self.unsupported("procedure number");
        }
        let mut arguments: Vec<Argument> = Vec::new();
        if self.at_argument() {
            loop {
                let argument = self.argument()?;
                let named = arguments.last().is_some_and(|before| before.parameter.is_some());
                if named && argument.parameter.is_none() {
                    let number = arguments.len() + 1;
                    return self.fail(ErrorKind::PositionalAfterNamed { number });
                }
                arguments.push(argument);
                if !self.accept_symbol(Symbol::Comma) {
                    break;
                }
            }
        }
        if self.at(K::WITH) {
            match self.peek() {
                // Plans are not kept: it changes nothing.
                TokenKind::Keyword(K::RECOMPILE) => self.require_all(&[K::WITH, K::RECOMPILE])?,
                TokenKind::Keyword(K::RESULT) => return self.unsupported("WITH RESULT SETS"),
                _ => {}
            }
        }
        Ok(Execute::Procedure { result, procedure, arguments })
    }

    fn at_argument(&self) -> bool {
        // A label that follows is none: `EXEC p EndSave:`
        if self.peek() == TokenKind::Symbol(Symbol::Colon) {
            return false;
        }
        match self.current.kind {
            TokenKind::Keyword(word) => match word {
                K::NULL | K::DEFAULT => true,
                K::THROW => false,
                word => !word.is_reserved(),
            },
            TokenKind::Symbol(symbol) => matches!(symbol, Symbol::Minus | Symbol::Plus),
            TokenKind::Stray | TokenKind::End => false,
            _ => true,
        }
    }

    fn argument(&mut self) -> Result<Argument> {
        let named = self.current.kind == TokenKind::Variable
            && self.peek() == TokenKind::Symbol(Symbol::Equal);
        let parameter = match named {
            true => {
                let parameter = self.variable_name()?;
                self.require_symbol(Symbol::Equal)?;
                Some(parameter)
            }
            false => None,
        };
        let value = match self.current.kind {
            TokenKind::Variable => {
                let variable = self.variable()?;
                let output = self.accept(K::OUTPUT) || self.accept(K::OUT);
                return Ok(Argument {
                    parameter,
                    value: ArgumentValue::Variable { variable, output },
                });
            }
            TokenKind::SystemVariable => {
                let token = self.advance();
                ArgumentValue::SystemVariable(self.text(token)[2..].to_owned())
            }
            TokenKind::Keyword(K::DEFAULT) => {
                self.advance();
                ArgumentValue::Default
            }
            _ if self.at_name() => ArgumentValue::Word(self.name()?),
            _ => {
                let (negative, value) = self.signed_literal()?;
                ArgumentValue::Literal { negative, value }
            }
        };
        match self.at(K::OUTPUT) || self.at(K::OUT) {
            true => self.fail(ErrorKind::OutputOfConstant),
            false => Ok(Argument { parameter, value }),
        }
    }

    /// `('..' + @v)`
    fn execute_statements(&mut self) -> Result<Execute> {
        self.require_symbol(Symbol::LeftParenthesis)?;
        let statements = self.expression()?;
        if self.at_symbol(Symbol::Comma) {
            return self.unsupported("EXECUTE with parameters AT a linked server");
        }
        self.require_symbol(Symbol::RightParenthesis)?;
        match self.keyword() {
            Some(K::AS) => self.unsupported("EXECUTE (..) AS"),
            Some(K::AT) => self.unsupported("EXECUTE AT a linked server"),
            _ => Ok(Execute::Statements(statements)),
        }
    }
}
