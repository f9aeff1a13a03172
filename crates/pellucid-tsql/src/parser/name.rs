//! Names, variables and the literals that options take.

use super::Parser;
use crate::ast::{
    DataType, Name, Number, ObjectName, OrVariable, StringLiteral, Text, TypeSize, NAME_CHARS_MOST,
};
use crate::error::{shortened, ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::lexer::{name_value, string_value, Symbol, Token, TokenKind};
use crate::secret::Secret;

/// Whether a token of this kind can be a name.
pub(super) fn is_name(kind: TokenKind) -> bool {
    match kind {
        TokenKind::Name | TokenKind::QuotedName => true,
        // The catalog views have columns of this name, and SQL Server takes it without brackets.
        TokenKind::Keyword(K::PRECISION) => true,
        TokenKind::Keyword(word) => !word.is_reserved(),
        _ => false,
    }
}

impl Parser<'_> {
    pub(super) fn at_name(&self) -> bool {
        is_name(self.current.kind)
    }

    pub(super) fn name(&mut self) -> Result<Name> {
        match self.at_name() {
            true => {
                let token = self.advance();
                self.name_of(token)
            }
            false => self.unexpected(),
        }
    }

    /// The name that `token` spells, be it reserved or not.
    pub(super) fn name_of(&self, token: Token) -> Result<Name> {
        let text = match token.kind {
            TokenKind::String { .. } => string_value(self.text(token)),
            _ => name_value(self.text(token)),
        };
        match Name::new(text.as_ref()) {
            Some(name) => Ok(name),
            None if text.is_empty() => self.fail_at(token, ErrorKind::EmptyName),
            None => {
                debug_assert!(text.len() > NAME_CHARS_MOST);
                let start = shortened(&text).to_owned();
                self.fail_at(token, ErrorKind::NameTooLong { start })
            }
        }
    }

    /// A name, or a string that holds one.
    pub(super) fn name_or_string(&mut self) -> Result<Name> {
        match self.current.kind {
            TokenKind::String { .. } => {
                let token = self.advance();
                self.name_of(token)
            }
            _ => self.name(),
        }
    }

    pub(super) fn accept_name(&mut self) -> Result<Option<Name>> {
        match self.at_name() {
            true => self.name().map(Some),
            false => Ok(None),
        }
    }

    /// `[[[server.]database.]schema.]object`
    pub(super) fn object_name(&mut self) -> Result<ObjectName> {
        let [server, database, schema, object] = self.dotted()?;
        match object {
            Some(object) => Ok(ObjectName { server, database, schema, object }),
            None => self.unexpected(),
        }
    }

    /// `a.b..c`, aligned to the right: the last part is there, others may be left out.
    pub(super) fn dotted<const PARTS: usize>(&mut self) -> Result<[Option<Name>; PARTS]> {
        let start = self.current.start as usize;
        let mut parts = [const { None }; PARTS];
        parts[PARTS - 1] = Some(self.name()?);
        let mut prefixes = 0;
        while self.accept_symbol(Symbol::Dot) {
            prefixes += 1;
            if prefixes == PARTS {
                let name = shortened(&self.source[start..self.current.end as usize]).to_owned();
                return self.fail(ErrorKind::TooManyPrefixes { name, most: PARTS - 1 });
            }
            parts.rotate_left(1);
            parts[PARTS - 1] = match self.at_symbol(Symbol::Dot) {
                true => None,
                false => Some(self.name()?),
            };
        }
        Ok(parts)
    }

    pub(super) fn name_or_variable(&mut self) -> Result<OrVariable<Name>> {
        match self.accept_variable()? {
            Some(variable) => Ok(OrVariable::Variable(variable)),
            None => self.name().map(OrVariable::Given),
        }
    }

    /// `'..'` or `N'..'`
    pub(super) fn string(&mut self) -> Result<StringLiteral> {
        match self.current.kind {
            TokenKind::String { national } => {
                let token = self.advance();
                let text = string_value(self.text(token)).into_owned();
                Ok(StringLiteral { text, national })
            }
            _ => self.unexpected(),
        }
    }

    /// A string or a variable.
    pub(super) fn string_or_variable(&mut self) -> Result<Text> {
        match self.accept_variable()? {
            Some(variable) => Ok(OrVariable::Variable(variable)),
            None => self.string().map(OrVariable::Given),
        }
    }

    /// `= ` and a string or a variable.
    pub(super) fn equal_text(&mut self) -> Result<Text> {
        self.require_symbol(Symbol::Equal)?;
        self.string_or_variable()
    }

    pub(super) fn equal_string(&mut self) -> Result<StringLiteral> {
        self.require_symbol(Symbol::Equal)?;
        self.string()
    }

    pub(super) fn integer(&mut self) -> Result<u64> {
        let value = match self.current.kind {
            TokenKind::Integer => self.text(self.current).parse().ok(),
            _ => None,
        };
        match value {
            Some(value) => {
                self.advance();
                Ok(value)
            }
            None => self.unexpected(),
        }
    }

    /// `= ` and an integer.
    pub(super) fn equal_integer(&mut self) -> Result<u64> {
        self.require_symbol(Symbol::Equal)?;
        self.integer()
    }

    pub(super) fn integer_or_variable(&mut self) -> Result<Number> {
        match self.accept_variable()? {
            Some(variable) => Ok(OrVariable::Variable(variable)),
            None => self.integer().map(OrVariable::Given),
        }
    }

    /// `= ` and an integer or a variable.
    pub(super) fn equal_number(&mut self) -> Result<Number> {
        self.require_symbol(Symbol::Equal)?;
        self.integer_or_variable()
    }

    /// `word = '..'`, of which `word` is PASSWORD, SECRET or their like.
    pub(super) fn secret(&mut self, word: K) -> Result<Secret> {
        // Another word in its place is told, a literal is not.
        self.secret = self.current.kind != TokenKind::Name;
        self.require(word)?;
        self.require_symbol(Symbol::Equal)?;
        self.string().map(|literal| Secret::new(literal.text))
    }

    /// `{ENCRYPTION | DECRYPTION} BY PASSWORD = '..'`
    pub(super) fn by_password(&mut self, verb: K) -> Result<Secret> {
        self.require_all(&[verb, K::BY])?;
        self.secret(K::PASSWORD)
    }

    /// `name [(size)]`
    pub(super) fn data_type(&mut self) -> Result<DataType> {
        if self.accept(K::DOUBLE) {
            self.require(K::PRECISION)?;
            return match Name::new("float") {
                Some(float) => Ok(DataType { name: float.into(), size: TypeSize::Default }),
                None => self.unexpected(),
            };
        }
        if self.at(K::NATIONAL) {
            return self.unsupported("NATIONAL CHARACTER");
        }
        let name = self.object_name()?;
        let mut size = TypeSize::Default;
        if self.accept_symbol(Symbol::LeftParenthesis) {
            size = match self.accept(K::MAX) {
                true => TypeSize::Max,
                false => {
                    let first = self.small_integer()?;
                    match self.accept_symbol(Symbol::Comma) {
                        true => TypeSize::Two(first, self.small_integer()?),
                        false => TypeSize::One(first),
                    }
                }
            };
            self.require_symbol(Symbol::RightParenthesis)?;
        }
        Ok(DataType { name, size })
    }

    fn small_integer(&mut self) -> Result<u32> {
        match self.text(self.current).parse() {
            Ok(value) if self.current.kind == TokenKind::Integer => {
                self.advance();
                Ok(value)
            }
            _ => self.unexpected(),
        }
    }
}
