//! Passwords and other secrets in statements: kept apart, wiped, never shown.

use std::borrow::Cow;
use std::fmt;

use zeroize::Zeroizing;

use crate::keyword::Keyword;
use crate::lexer::{string_value, Lexer, Symbol, Token, TokenKind};

/// What is shown in a secret's place.
pub const MASK: &str = "***";

/// The literal behind PASSWORD or SECRET. Wiped when dropped; neither printing nor `Debug` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the secret's text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself, for whoever derives a key from it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({MASK})")
    }
}

/// `text`, which may be a statement or a string that holds one, with `***` for each literal behind PASSWORD or SECRET, and
/// for bytes within `PRIVATE KEY (..)`: for logs, history and messages. What stands between double quotes is a literal as
/// well, as it is under `SET QUOTED_IDENTIFIER OFF`.
///
/// Looks at words, not at grammar, so that it works on what does not parse, too. What comes behind a literal that
/// does not end is masked as a whole, and so is a comment from the word on.
///
/// Where a literal or the name of a variable has the word, any other literal may be put into it: all of them are masked. What is
/// put together of parts of the word is not found.
pub fn redact(text: &str) -> Cow<'_, str> {
    redacted(text, Reach::of(text)).0
}

/// The same, with the literals alone that stand behind the word, or are added to one that ends behind it.
pub fn redact_behind_the_word(text: &str) -> Cow<'_, str> {
    redacted(text, Reach::BehindTheWord).0
}

/// Whether a literal or a variable's name has the word.
fn has_the_word_within(text: &str) -> bool {
    if !mentions_secret(text) {
        return false;
    }
    let Ok(mut lexer) = Lexer::new(text) else { return true };
    while let Ok(token) = lexer.token() {
        let is_found = match token.kind {
            TokenKind::End => break,
            TokenKind::String { .. } | TokenKind::Variable => true,
            TokenKind::QuotedName => text[token.start as usize..].starts_with('"'),
            _ => false,
        };
        if is_found && mentions_secret(&text[token.start as usize..token.end as usize]) {
            return true;
        }
    }
    false
}

/// What is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// What stands behind the word.
    BehindTheWord,
    /// Comments with the word, too.
    Comments,
    /// Every literal, too.
    All,
}

impl Reach {
    fn of(text: &str) -> Self {
        if has_the_word_within(text) {
            Self::All
        } else {
            Self::Comments
        }
    }

    /// Within a literal.
    fn within(self, text: &str) -> Self {
        if self == Self::BehindTheWord {
            self
        } else {
            Self::of(text)
        }
    }
}

/// Masked, and whether the text ends within a secret.
fn redacted(text: &str, reach: Reach) -> (Cow<'_, str>, bool) {
    let all = reach == Reach::All;
    if !mentions_secret(text) {
        return (Cow::Borrowed(text), false);
    }
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    let mut mask = |from: usize, to: usize, with: &str| {
        shown.push_str(&text[copied..from]);
        shown.push_str(with);
        copied = to;
    };
    let Ok(mut lexer) = Lexer::new(text) else { return (Cow::Borrowed(MASK), false) };
    let mut before = [TokenKind::End; 2];
    // Whether a literal before has ended within a secret.
    let mut goes_on = false;
    // Whether the literal before was masked, so that one that is added to it is a secret's, too.
    let mut is_added = false;
    let mut private_key = PrivateKey::Outside;
    let mut end_before = 0;
    let is_open = loop {
        let token = lexer.token();
        let start = token.as_ref().map_or_else(|error| error.offset, |token| token.start as usize);
        if let Some(gap) = text
            .get(end_before..start)
            .filter(|gap| reach != Reach::BehindTheWord && mentions_secret(gap))
        {
            let line = if gap.contains('\n') { "\n" } else { " " };
            mask(end_before, start, &format!(" /* {MASK} */{line}"));
        }
        match token {
            Ok(Token { kind: TokenKind::End, .. }) => break follows_secret(before),
            Ok(token) => {
                let end = token.end as usize;
                end_before = end;
                private_key = private_key.after(token.kind);
                goes_on &= !begins_statement(token.kind);
                let quote = match token.kind {
                    TokenKind::String { .. } => Some('\''),
                    TokenKind::QuotedName if text[start..].starts_with('"') => Some('"'),
                    _ => None,
                };
                if let Some(quote) = quote {
                    let value = match quote {
                        '"' => Cow::Owned(text[start + 1..end - 1].replace("\"\"", "\"")),
                        _ => string_value(&text[start..end]),
                    };
                    let is_whole = follows_secret(before)
                        || is_added
                        || (goes_on && !value.starts_with(['\'', '"']))
                        || (all && !mentions_secret(&value) && !value.is_empty());
                    if is_whole {
                        is_added = follows_secret(before) || is_added;
                        mask(start, end, &format!("{quote}{MASK}{quote}"));
                    } else {
                        let (inner, open) = redacted(&value, reach.within(&value));
                        goes_on = open;
                        if let Cow::Owned(inner) = inner {
                            let twice = [quote, quote].iter().collect::<String>();
                            mask(
                                start,
                                end,
                                &format!("{quote}{}{quote}", inner.replace(quote, &twice)),
                            );
                        }
                    }
                } else if token.kind == TokenKind::Binary
                    && (private_key.is_within() || is_set(before) || all)
                {
                    mask(start, end, MASK);
                } else {
                    is_added &= token.kind == TokenKind::Symbol(Symbol::Plus);
                }
                // `N".."`, of which the lexer makes two; and a bracket that changes nothing.
                let is_prefix = (token.kind == TokenKind::Name
                    && text[start..end].eq_ignore_ascii_case("n")
                    && (end == text.len() || text[end..].starts_with('"')))
                    || token.kind == TokenKind::Symbol(Symbol::LeftParenthesis)
                        && follows_secret(before);
                // `[password]` and OLD_PASSWORD are the word as well.
                let kind = match token.kind {
                    TokenKind::QuotedName | TokenKind::Name | TokenKind::Keyword(_)
                        if quote.is_none() && mentions_word(&text[start..end]) =>
                    {
                        TokenKind::Keyword(Keyword::PASSWORD)
                    }
                    kind => kind,
                };
                if !is_prefix {
                    before = [before[1], kind];
                }
            }
            Err(error) => {
                let is_open = follows_secret(before);
                let hidden = is_open || private_key.is_within() || all;
                if hidden || mentions_secret(&text[error.offset..]) {
                    mask(error.offset, text.len(), MASK);
                }
                break is_open;
            }
        }
    };
    shown.push_str(&text[copied..]);
    (Cow::Owned(shown), is_open)
}

/// Where a token stands with regard to `PRIVATE KEY (..)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrivateKey {
    Outside,
    /// Behind PRIVATE.
    Private,
    /// Behind KEY.
    Key,
    Within,
}

impl PrivateKey {
    fn after(self, token: TokenKind) -> Self {
        match (self, token) {
            (_, TokenKind::Keyword(Keyword::PRIVATE)) => Self::Private,
            (Self::Private, TokenKind::Keyword(Keyword::KEY)) => Self::Key,
            (Self::Key, TokenKind::Symbol(Symbol::LeftParenthesis)) => Self::Within,
            (Self::Within, TokenKind::Symbol(Symbol::RightParenthesis)) => Self::Outside,
            (Self::Within, _) => Self::Within,
            _ => Self::Outside,
        }
    }

    fn is_within(self) -> bool {
        self == Self::Within
    }
}

fn follows_secret(before: [TokenKind; 2]) -> bool {
    is_set(before) || is_word(before[1])
}

/// Behind the word and `=`.
fn is_set(before: [TokenKind; 2]) -> bool {
    is_word(before[0]) && before[1] == TokenKind::Symbol(Symbol::Equal)
}

fn is_word(token: TokenKind) -> bool {
    matches!(
        token,
        TokenKind::Keyword(Keyword::PASSWORD | Keyword::SECRET | Keyword::MEDIAPASSWORD)
    )
}

/// A token that no expression goes on behind. CASE, CONVERT and their like are parts of one.
fn begins_statement(token: TokenKind) -> bool {
    use Keyword as K;
    matches!(
        token,
        TokenKind::Symbol(Symbol::Semicolon)
            | TokenKind::Keyword(
                K::ALTER
                    | K::BACKUP
                    | K::CREATE
                    | K::DECLARE
                    | K::DELETE
                    | K::DROP
                    | K::EXEC
                    | K::EXECUTE
                    | K::IF
                    | K::INSERT
                    | K::PRINT
                    | K::RAISERROR
                    | K::RESTORE
                    | K::RETURN
                    | K::SET
                    | K::USE
                    | K::WHILE
            )
    )
}

/// Whether a word of secrets or PRIVATE occurs at all, in any case.
fn mentions_secret(text: &str) -> bool {
    let bytes = text.as_bytes();
    mentions_word(text)
        || memchr::memchr2_iter(b'V', b'v', bytes)
            .any(|at| at >= 3 && is_at(bytes, at - 3, b"PRIVATE"))
}

/// Whether a word occurs that a secret stands behind.
fn mentions_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let any = |one: u8, words: &[(usize, &[u8])]| {
        memchr::memchr2_iter(one, one.to_ascii_lowercase(), bytes).any(|at| {
            words.iter().any(|(before, word)| at >= *before && is_at(bytes, at - before, word))
        })
    };
    any(b'W', &[(4, b"PASSWORD"), (4, b"PASSWD"), (1, b"PWD")])
        || any(b'C', &[(2, b"SECRET"), (8, b"KEY_SOURCE")])
        || any(b'V', &[(9, b"IDENTITY_VALUE")])
        || any(b'H', &[(5, b"PASSPHRASE")])
}

fn is_at(bytes: &[u8], at: usize, word: &[u8]) -> bool {
    bytes.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_clone_show_nothing() {
        let secret = Secret::new("p@ssw0rd".into());
        assert_eq!(format!("{:?}", secret.clone()), "Secret(***)");
        assert_eq!(secret.reveal(), "p@ssw0rd");
        assert_ne!(secret, Secret::new("p".into()));
    }

    #[test]
    fn redact_masks_what_follows_the_words() {
        for (text, shown) in [
            (
                "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'x'",
                "CREATE MASTER KEY ENCRYPTION BY PASSWORD = '***'",
            ),
            ("... password=N'it''s', FILE = 'f'", "... password='***', FILE = 'f'"),
            (
                "EXEC(\"OPEN MASTER KEY DECRYPTION BY PASSWORD = 'x \"\"y'; PRINT \"\"z\"\"\")",
                "EXEC(\"OPEN MASTER KEY DECRYPTION BY PASSWORD = '***'; PRINT \"\"z\"\"\")",
            ),
            ("... PASSWORD = 0x00FF, FILE = 'f'", "... PASSWORD = ***, FILE = 'f'"),
            (
                "WITH SECRET\n=\n'x', MEDIAPASSWORD 'y'",
                "WITH SECRET\n=\n'***', MEDIAPASSWORD '***'",
            ),
            ("WITH MEDIAPASSWORD \"x\", PASSWORD \"y\"", "WITH MEDIAPASSWORD \"***\", PASSWORD \"***\""),
            ("PASSWORD N\"x\", SECRET = N\"y\"", "PASSWORD N\"***\", SECRET = N\"***\""),
            ("EXEC(\"WITH PASSWORD \"\"x\"\"\")", "EXEC(\"WITH PASSWORD \"\"***\"\"\")"),
            ("EXEC('WITH PASSWORD \"x\"')", "EXEC('WITH PASSWORD \"***\"')"),
            (
                "EXEC('WITH PASSWORD = ''' + 'x' + N'y' + ''', FILE = ''f''' + 'z')",
                "EXEC('WITH PASSWORD = ***' + '***' + '***' + ''', FILE = ''f''' + 'z')",
            ),
            (
                "EXEC(\"MEDIAPASSWORD '\" + \"x\" + \"'\"); PRINT 'z'",
                "EXEC(\"MEDIAPASSWORD ***\" + \"***\" + \"'\"); PRINT 'z'",
            ),
            (
                "EXEC('WITH PASSWORD = ' + QUOTENAME('x', ''''))",
                "EXEC('WITH PASSWORD = ' + QUOTENAME('***', ''''))",
            ),
            (
                "EXEC('.. PASSWORD = ''' + CONVERT(nvarchar(9), 'x') + '''')",
                "EXEC('.. PASSWORD = ***' + CONVERT(nvarchar(9), '***') + '''')",
            ),
            (
                "EXEC('.. PASSWORD = ''' + CASE WHEN 1 = 1 THEN 'x' ELSE LEFT('y', 2) END + ''', ' + 'z')",
                "EXEC('.. PASSWORD = ***' + CASE WHEN 1 = 1 THEN '***' ELSE LEFT('***', 2) END + ''', ' + 'z')",
            ),
            (
                "EXEC('.. MEDIAPASSWORD ' + QUOTENAME('x', '''')) PRINT 'z'",
                "EXEC('.. MEDIAPASSWORD ' + QUOTENAME('***', '''')) PRINT 'z'",
            ),
            ("SELECT password \"x\"", "SELECT password \"***\""),
            ("PASSWORD \"never ends", "PASSWORD ***"),
            (
                "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''x''')",
                "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''***''')",
            ),
            (
                "CREATE CERTIFICATE c FROM BINARY = 0x30 WITH PRIVATE KEY (BINARY = 0x3082)",
                "CREATE CERTIFICATE c FROM BINARY = 0x30 WITH PRIVATE KEY (BINARY = ***)",
            ),
            (
                "EXEC('.. private key(DECRYPTION BY PASSWORD = ''x'', BINARY = 0x3082), BINARY = 0x30')",
                "EXEC('.. private key(DECRYPTION BY PASSWORD = ''***'', BINARY = ***), BINARY = 0x30')",
            ),
            ("ENCRYPTION BY PASSWORD = \"x\"", "ENCRYPTION BY PASSWORD = \"***\""),
            ("PRIVATE KEY (BINARY = 0x3082 'never ends", "PRIVATE KEY (BINARY = *** ***"),
            ("PASSWORD = 'never ends", "PASSWORD = ***"),
            ("PRINT 'BY PASSWORD = ''x'' + never ends", "PRINT ***"),
            ("SELECT 'BY PASSWORD = ''' + @p + ''''", "SELECT 'BY PASSWORD = ***' + @p + ''''"),
        ] {
            assert_eq!(redact_behind_the_word(text), shown, "{text}");
        }
        for plain in [
            "SELECT password FROM t WHERE name = 'x'",
            "SELECT [password] FROM t WHERE password = [x]",
            "SELECT is_private FROM t WHERE a = 0x30",
            "PRINT 'x'",
            "",
            "secre",
            "'assword",
        ] {
            assert_eq!(redact(plain), plain);
        }
    }

    /// Whatever way a literal takes into the one with the word.
    #[test]
    fn redact_masks_what_is_put_into_a_literal_with_the_word() {
        for text in [
            "EXEC('.. PASSWORD = ' + '''x1''')",
            "EXEC('.. PASSWORD = ' + '\"x1\"')",
            "EXEC('.. PASSWORD = N' + '''x1''')",
            "EXEC('.. PASSWORD = ''' + CASE WHEN 1 = 1 THEN 'x1' ELSE LEFT('x1', 2) END + '''')",
            "EXEC('.. MEDIAPASSWORD ' + QUOTENAME('x1', ''''))",
            "EXEC(REPLACE('.. PASSWORD = ''@p''', '@p', 'x1'))",
            "EXEC(STUFF('.. PASSWORD = ''''', 16, 0, 'x1'))",
            "DECLARE @s nvarchar(99) = '.. PASSWORD = '''; SET @s += 'x1'; SET @s += ''''; EXEC(@s)",
            "DECLARE @p nvarchar(9) = 'x1'; EXEC('.. PASSWORD = ''' + @p + '''')",
            "EXEC sp_executesql N'.. PASSWORD = @p', N'@p nvarchar(9)', @p = N'x1'",
            "DECLARE @password nvarchar(9) = 'x1'",
            "EXEC p @old_Password = 'x1', @b = 2",
            "EXEC(\"EXEC('.. PASSWORD = ''' + 'x1' + '''')\")",
            "EXEC('.. SECRET = ' + 0xA1FACE)",
            "... PASSWORD = ('x1')",
            "... PASSWORD = 'a' + 'x1'",
            "UPDATE t SET [password] = 'x1'",
            "ALTER LOGIN l WITH PASSWORD = 'x1' OLD_PASSWORD = 'x1'",
            "CREATE SYMMETRIC KEY k WITH KEY_SOURCE = 'x1', IDENTITY_VALUE = 'x1'",
            "SELECT ENCRYPTBYPASSPHRASE('x1', a), DECRYPTBYPASSPHRASE(N'x1', a)",
            "DECLARE @pwd nvarchar(9) = 'x1'",
            "EXEC p @Passwd = 'x1'",
            "SELECT 1 -- ALTER .. PASSWORD = 'x1'\nSELECT 2",
            "SELECT 1 /* PASSWORD = 'x1' */ SELECT 2",
            "SELECT 1 -- PASSWORD = 'x1'",
            "EXEC('.. PASSWORD = ''x1''') EXEC('never ends x1",
        ] {
            let shown = redact(text);
            assert!(!shown.contains("x1") && !shown.contains("A1FACE"), "{text}\n{shown}");
            assert!(shown.contains(MASK), "{text}\n{shown}");
            let words = |text: &str| text.matches("SELECT").count() + text.matches("DECLARE").count();
            assert_eq!(words(text), words(&shown), "{text}\n{shown}");
        }
        assert_eq!(
            redact("WITH PASSWORD = 'x', FILE = 'f' PRINT 'y'"),
            "WITH PASSWORD = '***', FILE = 'f' PRINT 'y'"
        );
    }
}
