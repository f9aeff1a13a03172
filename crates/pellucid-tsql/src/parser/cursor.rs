//! Cursors.

use super::Parser;
use crate::ast::{
    Cursor, CursorName, CursorOption, CursorStatement, Expression, Fetch, FetchDirection,
    StatementKind,
};
use crate::error::Result;
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

impl Parser<'_> {
    /// `c [INSENSITIVE] [SCROLL] CURSOR ..`, behind DECLARE.
    pub(super) fn declare_cursor(&mut self) -> Result<StatementKind> {
        let name = self.name()?;
        let mut options = Vec::new();
        for (word, option) in
            [(K::INSENSITIVE, CursorOption::Static), (K::SCROLL, CursorOption::Scroll)]
        {
            options.extend(self.accept(word).then_some(option));
        }
        let cursor = Box::new(self.cursor(options)?);
        Ok(StatementKind::Cursor(CursorStatement::Declare { name, cursor }))
    }

    /// `CURSOR [options] FOR query [FOR ..]`
    pub(super) fn cursor(&mut self, mut options: Vec<CursorOption>) -> Result<Cursor> {
        self.require(K::CURSOR)?;
        while let Some(option) = self.accept_word() {
            options.push(option);
        }
        self.require(K::FOR)?;
        let with = self.with()?;
        let query = self.query_with(with)?;
        let mut update = None;
        if self.accept(K::FOR) {
            match self.accept(K::UPDATE) {
                true => {
                    update = Some(match self.accept(K::OF) {
                        true => self.comma_list(Self::column_name)?,
                        false => Vec::new(),
                    });
                }
                false => {
                    self.require_all(&[K::READ, K::ONLY])?;
                    options.push(CursorOption::ReadOnly);
                }
            }
        }
        Ok(Cursor { options, query, update })
    }

    /// Whether the query of a cursor ends here: `FOR UPDATE`, `FOR READ ONLY`.
    pub(super) fn at_end_of_cursor(&self) -> bool {
        self.at_both(K::FOR, K::UPDATE) || self.at_both(K::FOR, K::READ)
    }

    /// `[GLOBAL] c`, `@c`
    pub(super) fn cursor_name(&mut self) -> Result<CursorName> {
        if let Some(variable) = self.accept_variable()? {
            return Ok(CursorName::Variable(variable));
        }
        let is_followed = match self.peek() {
            TokenKind::Keyword(word) => !word.is_reserved() && word != K::THROW,
            kind => matches!(kind, TokenKind::Name | TokenKind::QuotedName),
        };
        let global = self.at(K::GLOBAL) && is_followed && self.accept(K::GLOBAL);
        Ok(CursorName::Named { global, name: self.name()? })
    }

    /// `FETCH [direction FROM] c [INTO ..]`
    pub(super) fn fetch(&mut self) -> Result<StatementKind> {
        self.advance();
        let direction = self.fetch_direction()?;
        let cursor = self.cursor_name()?;
        let into = match self.accept(K::INTO) {
            true => self.comma_list(Self::variable)?,
            false => Vec::new(),
        };
        let fetch = Fetch { direction, cursor, into };
        Ok(StatementKind::Cursor(CursorStatement::Fetch(Box::new(fetch))))
    }

    fn fetch_direction(&mut self) -> Result<FetchDirection> {
        let simple = match self.keyword() {
            Some(K::NEXT) => Some(FetchDirection::Next),
            Some(K::PRIOR) => Some(FetchDirection::Prior),
            Some(K::FIRST) => Some(FetchDirection::First),
            Some(K::LAST) => Some(FetchDirection::Last),
            _ => None,
        };
        if let Some(direction) = simple.filter(|_| self.peek() == TokenKind::Keyword(K::FROM)) {
            self.advance();
            self.require(K::FROM)?;
            return Ok(direction);
        }
        let is_numbered = matches!(
            self.peek(),
            TokenKind::Integer | TokenKind::Variable | TokenKind::Symbol(Symbol::Minus)
        );
        let direction = match self.keyword() {
            Some(K::ABSOLUTE) if is_numbered => FetchDirection::Absolute(self.fetch_number()?),
            Some(K::RELATIVE) if is_numbered => FetchDirection::Relative(self.fetch_number()?),
            _ => {
                self.accept(K::FROM);
                return Ok(FetchDirection::Next);
            }
        };
        self.require(K::FROM)?;
        Ok(direction)
    }

    /// `n`, `-n`, `@n` behind its word.
    fn fetch_number(&mut self) -> Result<Expression> {
        self.advance();
        if let Some(variable) = self.accept_variable()? {
            return Ok(Expression::Variable(variable));
        }
        self.signed_constant()
    }
}
