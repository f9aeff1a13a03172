//! USE and SET.

use super::Parser;
use crate::ast::{
    AssignmentOperator, CursorStatement, IsolationLevel, SessionSetting, SessionStatement,
    SessionSwitch, SettingValue, StatementKind,
};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::known;
use crate::lexer::{binary_value, Symbol, TokenKind};

impl Parser<'_> {
    pub(super) fn use_database(&mut self) -> Result<StatementKind> {
        self.advance();
        self.name().map(|name| StatementKind::Session(SessionStatement::Use(name)))
    }

    pub(super) fn set(&mut self) -> Result<StatementKind> {
        self.advance();
        if let Some(variable) = self.accept_variable()? {
            if self.at_symbol(Symbol::Dot) {
                return self.unsupported("method of a variable");
            }
            let operator = self.assignment_operator()?;
            if self.at(K::CURSOR) && operator == AssignmentOperator::Set {
                let cursor = Box::new(self.cursor(Vec::new())?);
                return Ok(StatementKind::Cursor(CursorStatement::Assign { variable, cursor }));
            }
            let value = self.expression()?;
            let set = SessionStatement::SetVariable { variable, operator, value };
            return Ok(StatementKind::Session(set));
        }
        self.set_what().map(StatementKind::Session)
    }

    fn set_what(&mut self) -> Result<SessionStatement> {
        if let Some(setting) = self.accept_word() {
            return self.setting_value(setting);
        }
        match self.keyword() {
            Some(K::STATISTICS) => {
                self.advance();
                let kinds = self.comma_list(Self::require_word)?;
                Ok(SessionStatement::SetStatistics { kinds, on: self.on_off()? })
            }
            Some(K::TRAN | K::TRANSACTION) => {
                self.advance();
                self.require_all(&[K::ISOLATION, K::LEVEL])?;
                self.isolation_level().map(SessionStatement::SetIsolation)
            }
            Some(K::IDENTITY_INSERT) => {
                self.advance();
                let table = self.object_name()?;
                Ok(SessionStatement::SetIdentityInsert { table, on: self.on_off()? })
            }
            _ => {
                if let Some(setting) = self.words_of(known::SETTINGS) {
                    return self.unsupported(format!("SET {setting}"));
                }
                let switches = self.comma_list(|p| match p.accept_word() {
                    Some(switch) => Ok(switch),
                    None if p.at_name() => {
                        p.fail(ErrorKind::UnknownSetOption { name: p.near(p.current) })
                    }
                    None => p.unexpected(),
                })?;
                // The token behind ON or OFF is read by it already.
                if switches.contains(&SessionSwitch::QuotedIdentifier) {
                    self.lexer.set_quoted_identifier(self.at(K::ON));
                }
                Ok(SessionStatement::SetSwitches { switches, on: self.on_off()? })
            }
        }
    }

    fn setting_value(&mut self, setting: SessionSetting) -> Result<SessionStatement> {
        let value = match self.current.kind {
            TokenKind::Symbol(Symbol::Minus) => {
                self.advance();
                SettingValue::Number { negative: true, value: self.integer()? }
            }
            TokenKind::Integer => SettingValue::Number { negative: false, value: self.integer()? },
            TokenKind::String { .. } => SettingValue::Text(self.string()?),
            TokenKind::Binary => {
                let token = self.advance();
                SettingValue::Binary(binary_value(self.text(token)))
            }
            _ => SettingValue::Word(self.name_or_variable()?),
        };
        Ok(SessionStatement::SetValue { setting, value })
    }

    fn isolation_level(&mut self) -> Result<IsolationLevel> {
        match self.keyword() {
            Some(K::READ) => {
                self.advance();
                match self.accept(K::UNCOMMITTED) {
                    true => Ok(IsolationLevel::ReadUncommitted),
                    false => self.require(K::COMMITTED).map(|()| IsolationLevel::ReadCommitted),
                }
            }
            Some(K::REPEATABLE) => {
                self.advance();
                self.require(K::READ).map(|()| IsolationLevel::RepeatableRead)
            }
            Some(K::SNAPSHOT) => {
                self.advance();
                Ok(IsolationLevel::Snapshot)
            }
            _ => self.require(K::SERIALIZABLE).map(|()| IsolationLevel::Serializable),
        }
    }
}
