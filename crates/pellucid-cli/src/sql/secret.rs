//! Whether a text shows a secret: a literal behind PASSWORD or SECRET that is not a scripting variable.

use pellucid_tsql::batch::Variables;
use pellucid_tsql::secret::redact_behind_the_word;
use zeroize::Zeroizing;

/// Whether it does. `'$(NAME)'` shows none.
pub fn is_shown(text: &str) -> bool {
    let text = without_variables(text);
    redact_behind_the_word(&text) != text.as_str()
}

/// `text` with a variable of the language for each literal that is a scripting variable, also within a string.
fn without_variables(text: &str) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(text.len()));
    let mut rest = text;
    while let Some(at) = rest.find("'$(") {
        let quotes = if rest[..at].ends_with('\'') { "''" } else { "'" };
        let before = at + 1 - quotes.len();
        let behind = &rest[at + 3..];
        let name = behind.find(')').map(|end| (&behind[..end], &behind[end + 1..]));
        match name {
            Some((name, behind)) if Variables::is_name(name) && ends(behind, quotes.len()) => {
                out.push_str(&rest[..before]);
                out.push_str("@v");
                rest = &behind[quotes.len()..];
            }
            _ => {
                out.push_str(&rest[..at + 3]);
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Whether a literal ends here that is between so many quotes: two more are one within it.
fn ends(text: &str, quotes: usize) -> bool {
    let found = text.bytes().take_while(|byte| *byte == b'\'').count();
    // Behind that of a literal within a string may stand that of the string.
    found == quotes || (quotes == 2 && found == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_no_secrets() {
        for text in [
            "SELECT 'x'",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = '$(pw)'",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = N'$(pw)'",
            "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''$(pw)''')",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = $(pw)",
            "PRINT '$(a) and $(b)'",
        ] {
            assert!(!is_shown(text), "{text}");
        }
    }

    #[test]
    fn everything_else_behind_the_words_is_one() {
        for text in [
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'x'",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = '$(pw)x'",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'x$(pw)'",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = '$(pw'",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = '$(pw)''x'",
            "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''x''')",
            "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''$(pw)''''x''')",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = '''$(pw)'''",
            "PRINT '$(a)' OPEN MASTER KEY DECRYPTION BY PASSWORD = 'x",
        ] {
            assert!(is_shown(text), "{text}");
        }
    }
}
