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

/// `text`, which may be a statement or a string that holds one, with `'***'` for each literal behind PASSWORD or
/// SECRET: for logs, history and messages.
///
/// Looks at words, not at grammar, so that it works on what does not parse, too. What comes behind a literal that
/// does not end is masked as a whole.
pub fn redact(text: &str) -> Cow<'_, str> {
    if !mentions_secret(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    let mut mask = |from: usize, to: usize, with: &str| {
        shown.push_str(&text[copied..from]);
        shown.push_str(with);
        copied = to;
    };
    let Ok(mut lexer) = Lexer::new(text) else { return Cow::Borrowed(MASK) };
    let mut before = [TokenKind::End; 2];
    loop {
        match lexer.token() {
            Ok(Token { kind: TokenKind::End, .. }) => break,
            Ok(token) => {
                let (start, end) = (token.start as usize, token.end as usize);
                if matches!(token.kind, TokenKind::String { .. }) {
                    let value = string_value(&text[start..end]);
                    if follows_secret(before) {
                        mask(start, end, &format!("'{MASK}'"));
                    } else if let Cow::Owned(inner) = redact(&value) {
                        mask(start, end, &format!("'{}'", inner.replace('\'', "''")));
                    }
                }
                before = [before[1], token.kind];
            }
            Err(error) => {
                if follows_secret(before) || mentions_secret(&text[error.offset..]) {
                    mask(error.offset, text.len(), MASK);
                }
                break;
            }
        }
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

fn follows_secret(before: [TokenKind; 2]) -> bool {
    let word = match before {
        [word, TokenKind::Symbol(Symbol::Equal)] => word,
        [_, word] => word,
    };
    matches!(word, TokenKind::Keyword(Keyword::PASSWORD | Keyword::SECRET | Keyword::MEDIAPASSWORD))
}

/// Whether either word occurs at all, in any case.
fn mentions_secret(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'W', b'w', bytes).any(|at| at >= 4 && is_at(bytes, at - 4, b"PASSWORD"))
        || memchr::memchr2_iter(b'C', b'c', bytes)
            .any(|at| at >= 2 && is_at(bytes, at - 2, b"SECRET"))
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
                "WITH SECRET\n=\n'x', MEDIAPASSWORD 'y'",
                "WITH SECRET\n=\n'***', MEDIAPASSWORD '***'",
            ),
            (
                "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''x''')",
                "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''***''')",
            ),
            ("PASSWORD = 'never ends", "PASSWORD = ***"),
            ("PRINT 'BY PASSWORD = ''x'' + never ends", "PRINT ***"),
            ("SELECT 'BY PASSWORD = ''' + @p + ''''", "SELECT 'BY PASSWORD = ***' + @p + ''''"),
        ] {
            assert_eq!(redact(text), shown, "{text}");
        }
        for plain in
            ["SELECT password FROM t WHERE name = 'x'", "PRINT 'x'", "", "secre", "'assword"]
        {
            assert_eq!(redact(plain), plain);
        }
    }
}
