//! Words on the screen: command lines as a shell takes them, text that cannot steer a terminal, URLs.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use crate::output::quoted;

/// Words as a shell takes them.
pub fn typed(words: &[&str]) -> String {
    words.iter().copied().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Control characters shown as dots.
pub fn visible(text: &str) -> String {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.chars().map(|c| if steers(c) { '·' } else { c }).collect()
}

/// The URL of a file, with everything escaped that is not plain.
pub fn file_url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                url.push(char::from(*byte));
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_from_a_shell() {
        assert_eq!(typed(&["sqlite3", "app.db", "it's \"x\""]), r#"sqlite3 app.db 'it'\''s "x"'"#);
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn urls_hold_only_plain_characters() {
        assert_eq!(file_url(Path::new("/a b/ü#?.html")), "file:///a%20b/%C3%BC%23%3F.html");
    }
}
