//! From tokens to statements, by recursive descent; one token is looked at before it is taken.
//!
//! Does not know what exists: names are not looked up, options not checked against one another.

mod backup;
mod certificate;
mod change;
mod condition;
mod control;
mod create;
mod cursor;
mod database;
mod expression;
mod index;
mod key;
mod maintenance;
mod module;
mod name;
mod options;
mod procedure;
mod provider;
mod query;
mod restore;
mod session;
mod source;
mod statement;
mod table;
mod variables;
mod xml;

use std::borrow::Cow;

use crate::ast::Statement;
use crate::error::{shortened, ErrorKind, ParseError, Result};
use crate::keyword::{Keyword, Word};
use crate::lexer::{name_value, string_value, Lexer, Symbol, Token, TokenKind};
use crate::secret::{redact, MASK};

pub use variables::Undeclared;

/// How deep statements, queries and expressions may be nested in one another.
pub const MAX_DEPTH: u32 = 100;

/// Parses a whole batch, as SQL Server does before it executes anything of it.
///
/// # Errors
/// [`ParseError`], for the first thing that is wrong.
pub fn parse(batch: &str) -> Result<Vec<Statement>> {
    statements(batch)?.collect()
}

/// The statements of a batch, and whether QUOTED_IDENTIFIER is ON at its end.
#[derive(Debug)]
pub struct Parsed {
    /// The statements.
    pub statements: Vec<Statement>,
    /// As SET in the batch, met or not by what executes it, has left it.
    pub quoted_identifier: bool,
    /// What the batch uses and does not declare before.
    pub undeclared: Vec<Undeclared>,
}

/// Parses a whole batch that begins with this QUOTED_IDENTIFIER. A SET of it counts for all of the text behind.
///
/// # Errors
/// As [`parse`].
pub fn parse_as(batch: &str, quoted_identifier: bool) -> Result<Parsed> {
    let mut parser = Parser::new(batch, quoted_identifier)?;
    let mut statements = Vec::new();
    while let Some(statement) = parser.next_statement()? {
        statements.push(statement);
    }
    let quoted_identifier = parser.lexer.quoted_identifier();
    Ok(Parsed { statements, quoted_identifier, undeclared: parser.declared.into_undeclared() })
}

/// Parses a batch one statement at a time: memory for one, whatever the batch's length.
///
/// # Errors
/// [`ErrorKind::BatchTooLong`]; everything else comes with its statement.
pub fn statements(batch: &str) -> Result<Statements<'_>> {
    Ok(Statements { parser: Parser::new(batch, true)?, failed: false })
}

/// The statements of a batch. Ends at the first error.
#[derive(Debug)]
pub struct Statements<'s> {
    parser: Parser<'s>,
    failed: bool,
}

impl Iterator for Statements<'_> {
    type Item = Result<Statement>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.parser.next_statement().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

/// A place in a batch, and what is around it.
#[derive(Debug)]
struct Parser<'s> {
    source: &'s str,
    /// Stands behind `current`.
    lexer: Lexer<'s>,
    current: Token,
    /// The token before `current`.
    last: Token,
    /// What made the lexer give up; `current` is then a stray character that no rule takes.
    broken: Option<ParseError>,
    depth: u32,
    /// WHILE loops around.
    loops: u32,
    /// CATCH blocks around.
    catches: u32,
    /// Within a procedure, where RETURN has a value.
    in_module: bool,
    /// No statement has begun yet.
    first: bool,
    /// A WITH may begin a statement here.
    separated: bool,
    /// The statement before has to be the last of its batch.
    closed: bool,
    /// The statement at hand has a secret, or was about to have one.
    secret: bool,
    declared: variables::Declared,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, quoted_identifier: bool) -> Result<Self> {
        let mut lexer = Lexer::new(source)?;
        lexer.set_quoted_identifier(quoted_identifier);
        let nothing = Token { kind: TokenKind::End, start: 0, end: 0, line: 1 };
        let mut parser = Self {
            source,
            lexer,
            current: nothing,
            last: nothing,
            broken: None,
            depth: 0,
            loops: 0,
            catches: 0,
            in_module: false,
            first: true,
            separated: true,
            closed: false,
            secret: false,
            declared: variables::Declared::default(),
        };
        parser.advance();
        Ok(parser)
    }

    /// Takes the current token.
    fn advance(&mut self) -> Token {
        self.last = self.current;
        if self.broken.is_none() {
            match self.lexer.token() {
                Ok(token) => self.current = token,
                Err(error) => {
                    let at = error.offset as u32;
                    self.current =
                        Token { kind: TokenKind::Stray, start: at, end: at, line: error.line };
                    self.broken = Some(error);
                }
            }
        }
        self.last
    }

    /// The kind of the token behind the current one.
    fn peek(&self) -> TokenKind {
        self.lexer.clone().token().map_or(TokenKind::Stray, |token| token.kind)
    }

    fn text(&self, token: Token) -> &'s str {
        token.text(self.source)
    }

    fn keyword(&self) -> Option<Keyword> {
        match self.current.kind {
            TokenKind::Keyword(keyword) => Some(keyword),
            _ => None,
        }
    }

    fn at(&self, keyword: Keyword) -> bool {
        self.current.kind == TokenKind::Keyword(keyword)
    }

    fn at_symbol(&self, symbol: Symbol) -> bool {
        self.current.kind == TokenKind::Symbol(symbol)
    }

    /// Whether `first` is here and `second` behind it.
    fn at_both(&self, first: Keyword, second: Keyword) -> bool {
        self.at(first) && self.peek() == TokenKind::Keyword(second)
    }

    fn accept(&mut self, keyword: Keyword) -> bool {
        let found = self.at(keyword);
        if found {
            self.advance();
        }
        found
    }

    fn accept_symbol(&mut self, symbol: Symbol) -> bool {
        let found = self.at_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn require(&mut self, keyword: Keyword) -> Result<()> {
        match self.accept(keyword) {
            true => Ok(()),
            false => self.unexpected(),
        }
    }

    fn require_all(&mut self, keywords: &[Keyword]) -> Result<()> {
        keywords.iter().try_for_each(|keyword| self.require(*keyword))
    }

    fn require_symbol(&mut self, symbol: Symbol) -> Result<()> {
        match self.accept_symbol(symbol) {
            true => Ok(()),
            false => self.unexpected(),
        }
    }

    /// The variant of `W` that is here.
    fn at_word<W: Word>(&self) -> Option<W> {
        self.keyword().and_then(W::from_keyword)
    }

    fn accept_word<W: Word>(&mut self) -> Option<W> {
        let word = self.at_word();
        if word.is_some() {
            self.advance();
        }
        word
    }

    fn require_word<W: Word>(&mut self) -> Result<W> {
        match self.accept_word() {
            Some(word) => Ok(word),
            None => self.unexpected(),
        }
    }

    /// `ON` or `OFF`
    fn on_off(&mut self) -> Result<bool> {
        match self.accept(Keyword::ON) {
            true => Ok(true),
            false => self.require(Keyword::OFF).map(|()| false),
        }
    }

    /// `item, item, ..`
    fn comma_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept_symbol(Symbol::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `(item, item, ..)`
    fn parenthesized_list<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.require_symbol(Symbol::LeftParenthesis)?;
        let items = self.comma_list(item)?;
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(items)
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return self.fail(ErrorKind::TooDeep);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// The error `kind` at the current token.
    fn fail<T>(&self, kind: ErrorKind) -> Result<T> {
        self.fail_at(self.current, kind)
    }

    fn fail_at<T>(&self, token: Token, kind: ErrorKind) -> Result<T> {
        Err(ParseError { kind, line: token.line, offset: token.start as usize })
    }

    /// The current token does not fit here.
    fn unexpected<T>(&self) -> Result<T> {
        if let Some(mut broken) = self.broken.clone() {
            if let ErrorKind::UnclosedQuote { text } = &mut broken.kind {
                if self.secret || matches!(redact(text), Cow::Owned(_)) {
                    *text = MASK.to_owned();
                }
            }
            return Err(broken);
        }
        let token = match self.current.kind {
            TokenKind::End => self.last,
            _ => self.current,
        };
        let near = self.near(token);
        let kind = match self.current.kind {
            TokenKind::Keyword(Keyword::WITH) => ErrorKind::WithNeedsSemicolon,
            TokenKind::Keyword(word) if word.is_reserved() => ErrorKind::SyntaxKeyword { near },
            _ => ErrorKind::Syntax { near },
        };
        self.fail_at(token, kind)
    }

    /// What a message shows of `token`.
    fn near(&self, token: Token) -> String {
        let text = self.text(token);
        let value = match token.kind {
            TokenKind::Keyword(_) | TokenKind::Symbol(_) | TokenKind::End => text.into(),
            _ if self.secret => MASK.into(),
            TokenKind::String { .. } => string_value(text),
            TokenKind::QuotedName => name_value(text),
            _ => text.into(),
        };
        shortened(&redact(&value)).to_owned()
    }

    /// The words of `list` that are here, the most of them.
    fn words_of(&self, list: &[&'static str]) -> Option<&'static str> {
        let mut ahead = self.lexer.clone();
        let mut words = self.text(self.current).to_uppercase();
        for _ in 0..2 {
            match ahead.token() {
                Ok(token) => {
                    words.push(' ');
                    words.push_str(&self.text(token).to_uppercase());
                }
                Err(_) => break,
            }
        }
        let is_here = |known: &&str| {
            words.strip_prefix(*known).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        list.iter().copied().filter(is_here).max_by_key(|known| known.len())
    }

    /// SQL Server knows `construct`, Pellucid does not do it.
    fn unsupported<T>(&self, construct: impl Into<Cow<'static, str>>) -> Result<T> {
        self.fail(ErrorKind::Unsupported { construct: construct.into() })
    }
}

#[cfg(test)]
mod tests;
