//! From text to tokens, without copying: a token is a kind and a place.
//!
//! Knows T-SQL's spelling, not its grammar. `".."` is a name, and with QUOTED_IDENTIFIER OFF a string.

mod value;

use crate::error::{shortened, ErrorKind, ParseError, Result};
use crate::keyword::Keyword;

pub use value::{binary_value, name_value, string_value};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A word that some statement knows; if it is not reserved, a name as well.
    Keyword(Keyword),
    /// A name without quotes, `#t` included.
    Name,
    /// `[..]` or `".."`.
    QuotedName,
    /// `'..'`, or `N'..'`; `".."` with QUOTED_IDENTIFIER OFF.
    String { national: bool },
    /// `12`
    Integer,
    /// `1.5`
    Decimal,
    /// `1.5e3`
    Float,
    /// `$1.50`
    Money,
    /// `0xAB`
    Binary,
    /// `@v`
    Variable,
    /// `@@v`
    SystemVariable,
    /// Punctuation and operators.
    Symbol(Symbol),
    /// A character that begins nothing.
    Stray,
    /// The text is over.
    End,
}

macro_rules! symbols {
    ($($name:ident = $text:literal,)+) => {
        /// Punctuation and operators.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Symbol { $(#[doc = concat!("`", $text, "`")] $name,)+ }

        impl Symbol {
            /// Its spelling.
            pub const fn text(self) -> &'static str {
                match self { $(Symbol::$name => $text,)+ }
            }
        }
    };
}

symbols! {
    LeftParenthesis = "(", RightParenthesis = ")", Comma = ",", Semicolon = ";", Dot = ".", Colon = ":",
    DoubleColon = "::", Equal = "=", NotEqual = "<>", NotEqualBang = "!=", Less = "<", LessEqual = "<=",
    NotLess = "!<", Greater = ">", GreaterEqual = ">=", NotGreater = "!>", Plus = "+", Minus = "-", Star = "*",
    Slash = "/", Percent = "%", Ampersand = "&", Bar = "|", Caret = "^", Tilde = "~", PlusEqual = "+=",
    MinusEqual = "-=", StarEqual = "*=", SlashEqual = "/=", PercentEqual = "%=", AmpersandEqual = "&=",
    BarEqual = "|=", CaretEqual = "^=", LeftBrace = "{", RightBrace = "}",
}

/// A token: what it is and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its first byte.
    pub start: u32,
    /// The byte behind its last.
    pub end: u32,
    /// The line it begins on, from 1.
    pub line: u32,
}

impl Token {
    /// As it is written.
    pub fn text<'s>(&self, source: &'s str) -> &'s str {
        &source[self.start as usize..self.end as usize]
    }
}

/// Bytes of text that are read at most; positions are 32 bits wide.
pub const TEXT_BYTES_MOST: usize = 64 << 20;

/// Tokens of a text, one after the other; [`TokenKind::End`] for ever behind the last.
#[derive(Debug, Clone)]
pub struct Lexer<'s> {
    source: &'s str,
    at: usize,
    line: u32,
    /// QUOTED_IDENTIFIER
    quoted_identifier: bool,
}

impl<'s> Lexer<'s> {
    /// Starts at the beginning, with QUOTED_IDENTIFIER ON.
    ///
    /// # Errors
    /// [`ErrorKind::BatchTooLong`] above [`TEXT_BYTES_MOST`].
    pub fn new(source: &'s str) -> Result<Self> {
        if source.len() > TEXT_BYTES_MOST {
            let kind = ErrorKind::BatchTooLong { most: TEXT_BYTES_MOST };
            return Err(ParseError { kind, line: 1, offset: 0 });
        }
        Ok(Self { source, at: 0, line: 1, quoted_identifier: true })
    }

    /// Whether `".."` is a name from here on.
    pub fn quoted_identifier(&self) -> bool {
        self.quoted_identifier
    }

    /// Sets it.
    pub fn set_quoted_identifier(&mut self, on: bool) {
        self.quoted_identifier = on;
    }

    /// The next token.
    ///
    /// # Errors
    /// [`ErrorKind::UnclosedQuote`] and [`ErrorKind::UnclosedComment`], and then again at every call.
    pub fn token(&mut self) -> Result<Token> {
        self.skip_blanks()?;
        let (start, line) = (self.at, self.line);
        let kind = match self.byte(0) {
            None => TokenKind::End,
            Some(b'\'') => self.string(false)?,
            Some(b'N' | b'n') if self.byte(1) == Some(b'\'') => {
                self.at += 1;
                self.string(true)?
            }
            Some(b'[') => self.quoted(b']')?,
            Some(b'"') if self.quoted_identifier => self.quoted(b'"')?,
            Some(b'"') => self.delimited(b'"').map(|()| TokenKind::String { national: false })?,
            Some(b'@') => self.variable(),
            Some(b'0'..=b'9') => self.number(),
            Some(b'.') if self.byte(1).is_some_and(|b| b.is_ascii_digit()) => self.number(),
            Some(b'$') => self.money(),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'#') => self.word(),
            Some(byte) if byte.is_ascii() => self.symbol(byte),
            Some(_) => match self.char().is_some_and(char::is_alphabetic) {
                true => self.word(),
                false => {
                    self.at += self.char().map_or(1, char::len_utf8);
                    TokenKind::Stray
                }
            },
        };
        Ok(Token { kind, start: start as u32, end: self.at as u32, line })
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + ahead).copied()
    }

    fn char(&self) -> Option<char> {
        self.source[self.at..].chars().next()
    }

    fn error<T>(&self, kind: ErrorKind, offset: usize, line: u32) -> Result<T> {
        Err(ParseError { kind, line, offset })
    }

    fn skip_blanks(&mut self) -> Result<()> {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c' => self.at += 1,
                b'-' if self.byte(1) == Some(b'-') => {
                    let rest = &self.source.as_bytes()[self.at..];
                    self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                b'/' if self.byte(1) == Some(b'*') => self.skip_comment()?,
                0x80.. => match self.char() {
                    Some(blank) if blank.is_whitespace() || blank == '\u{feff}' => {
                        self.at += blank.len_utf8();
                    }
                    _ => break,
                },
                _ => break,
            }
        }
        Ok(())
    }

    /// `/* .. */`, which nest.
    fn skip_comment(&mut self) -> Result<()> {
        let (bytes, start, first_line) = (self.source.as_bytes(), self.at, self.line);
        let (mut at, mut line, mut depth) = (start + 2, first_line, 1);
        while depth > 0 {
            match (bytes.get(at), bytes.get(at + 1)) {
                (None, _) => return self.error(ErrorKind::UnclosedComment, start, first_line),
                (Some(b'/'), Some(b'*')) => {
                    depth += 1;
                    at += 1;
                }
                (Some(b'*'), Some(b'/')) => {
                    depth -= 1;
                    at += 1;
                }
                (Some(b'\n'), _) => line += 1,
                _ => {}
            }
            at += 1;
        }
        (self.at, self.line) = (at, line);
        Ok(())
    }

    /// What stands between `close` and the next one that is not doubled.
    fn delimited(&mut self, close: u8) -> Result<()> {
        let bytes = self.source.as_bytes();
        let mut at = self.at + 1;
        loop {
            let Some(found) = memchr::memchr(close, &bytes[at..]) else {
                let text = shortened(&self.source[self.at + 1..]).to_owned();
                return self.error(ErrorKind::UnclosedQuote { text }, self.at, self.line);
            };
            at += found + 1;
            if bytes.get(at) != Some(&close) {
                break;
            }
            at += 1;
        }
        self.line += memchr::memchr_iter(b'\n', &bytes[self.at..at]).count() as u32;
        self.at = at;
        Ok(())
    }

    fn string(&mut self, national: bool) -> Result<TokenKind> {
        self.delimited(b'\'').map(|()| TokenKind::String { national })
    }

    fn quoted(&mut self, close: u8) -> Result<TokenKind> {
        self.delimited(close).map(|()| TokenKind::QuotedName)
    }

    fn skip_name(&mut self) {
        loop {
            match self.byte(0) {
                Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'@' | b'#' | b'$') => {
                    self.at += 1;
                }
                Some(0x80..) => match self.char() {
                    Some(letter) if letter.is_alphanumeric() => self.at += letter.len_utf8(),
                    _ => break,
                },
                _ => break,
            }
        }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        self.at += self.char().map_or(1, char::len_utf8);
        self.skip_name();
        Keyword::find(&self.source[start..self.at]).map_or(TokenKind::Name, TokenKind::Keyword)
    }

    fn variable(&mut self) -> TokenKind {
        let system = self.byte(1) == Some(b'@');
        self.at += 1 + usize::from(system);
        self.skip_name();
        match system {
            true => TokenKind::SystemVariable,
            false => TokenKind::Variable,
        }
    }

    fn skip_digits(&mut self) {
        while self.byte(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> TokenKind {
        if self.byte(0) == Some(b'0') && matches!(self.byte(1), Some(b'x' | b'X')) {
            self.at += 2;
            while self.byte(0).is_some_and(|byte| byte.is_ascii_hexdigit()) {
                self.at += 1;
            }
            return TokenKind::Binary;
        }
        let mut kind = TokenKind::Integer;
        self.skip_digits();
        if self.byte(0) == Some(b'.') {
            self.at += 1;
            self.skip_digits();
            kind = TokenKind::Decimal;
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.byte(1), Some(b'+' | b'-')));
            // Without digits the exponent is 0, and a sign is an operator.
            let has_digits = self.byte(1 + sign).is_some_and(|byte| byte.is_ascii_digit());
            self.at += if has_digits { 1 + sign } else { 1 };
            self.skip_digits();
            kind = TokenKind::Float;
        }
        kind
    }

    fn money(&mut self) -> TokenKind {
        self.at += 1;
        if !self.byte(0).is_some_and(|byte| byte.is_ascii_digit()) {
            return TokenKind::Stray;
        }
        self.skip_digits();
        if self.byte(0) == Some(b'.') {
            self.at += 1;
            self.skip_digits();
        }
        TokenKind::Money
    }

    fn symbol(&mut self, first: u8) -> TokenKind {
        use Symbol::*;
        let (symbol, length) = match (first, self.byte(1)) {
            (b'(', _) => (LeftParenthesis, 1),
            (b')', _) => (RightParenthesis, 1),
            (b',', _) => (Comma, 1),
            (b';', _) => (Semicolon, 1),
            (b'.', _) => (Dot, 1),
            (b':', Some(b':')) => (DoubleColon, 2),
            (b':', _) => (Colon, 1),
            (b'=', _) => (Equal, 1),
            (b'<', Some(b'>')) => (NotEqual, 2),
            (b'<', Some(b'=')) => (LessEqual, 2),
            (b'<', _) => (Less, 1),
            (b'>', Some(b'=')) => (GreaterEqual, 2),
            (b'>', _) => (Greater, 1),
            (b'!', Some(b'=')) => (NotEqualBang, 2),
            (b'!', Some(b'<')) => (NotLess, 2),
            (b'!', Some(b'>')) => (NotGreater, 2),
            (b'+', Some(b'=')) => (PlusEqual, 2),
            (b'+', _) => (Plus, 1),
            (b'-', Some(b'=')) => (MinusEqual, 2),
            (b'-', _) => (Minus, 1),
            (b'*', Some(b'=')) => (StarEqual, 2),
            (b'*', _) => (Star, 1),
            (b'/', Some(b'=')) => (SlashEqual, 2),
            (b'/', _) => (Slash, 1),
            (b'%', Some(b'=')) => (PercentEqual, 2),
            (b'%', _) => (Percent, 1),
            (b'&', Some(b'=')) => (AmpersandEqual, 2),
            (b'&', _) => (Ampersand, 1),
            (b'|', Some(b'=')) => (BarEqual, 2),
            (b'|', _) => (Bar, 1),
            (b'^', Some(b'=')) => (CaretEqual, 2),
            (b'^', _) => (Caret, 1),
            (b'~', _) => (Tilde, 1),
            (b'{', _) => (LeftBrace, 1),
            (b'}', _) => (RightBrace, 1),
            _ => {
                self.at += 1;
                return TokenKind::Stray;
            }
        };
        self.at += length;
        TokenKind::Symbol(symbol)
    }
}

#[cfg(test)]
mod tests;
