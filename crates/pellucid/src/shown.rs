//! Names and other people's text as a terminal and a log get them: without a control character.
//!
//! Whoever names a file, a certificate or a backup chooses its characters. An escape sequence in it
//! would move the cursor of a terminal, a line end would forge a line of a log, and an override of
//! the writing direction would show another name. JSON and SQL results have names as they are.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Shows names by [`printable`].
pub trait Shown {
    /// Returns what is shown: control characters as `\n`, `\x1b` or `\u{9b}`, bytes that are not
    /// UTF-8 as `\xff`.
    fn shown(&self) -> Name<'_>;
}

impl Shown for [u8] {
    fn shown(&self) -> Name<'_> {
        Name(self)
    }
}

impl Shown for str {
    fn shown(&self) -> Name<'_> {
        Name(self.as_bytes())
    }
}

impl Shown for OsStr {
    fn shown(&self) -> Name<'_> {
        Name(self.as_bytes())
    }
}

impl Shown for Path {
    fn shown(&self) -> Name<'_> {
        Name(self.as_os_str().as_bytes())
    }
}

/// A name that is shown without its control characters.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a>(&'a [u8]);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) => f.pad(&printable(&without_secret(text))),
            Err(_) => {
                let mut shown = String::new();
                for chunk in self.0.utf8_chunks() {
                    shown.push_str(&printable(chunk.valid()));
                    chunk.invalid().iter().try_for_each(|byte| write!(shown, "\\x{byte:02x}"))?;
                }
                f.pad(&shown)
            }
        }
    }
}

/// Returns a store's URL without what may be a secret in it: whoever stands before `@`, and a query. Such a URL is refused, and
/// the line that says so goes to logs. Any other text is returned as it is.
fn without_secret(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return Cow::Borrowed(text) };
    let of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if scheme.is_empty() || !scheme.bytes().all(of_scheme) || scheme.eq_ignore_ascii_case("file") {
        return Cow::Borrowed(text);
    }
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map(|(_, host)| host);
    let path = tail.split_once('?').filter(|(_, query)| !query.is_empty()).map(|(path, _)| path);
    if host.is_none() && path.is_none() {
        return Cow::Borrowed(text);
    }
    let before = host.map_or_else(|| authority.to_owned(), |host| format!("..@{host}"));
    let behind = path.map_or_else(|| tail.to_owned(), |path| format!("{path}?.."));
    Cow::Owned(format!("{scheme}://{before}{behind}"))
}

/// Returns `text` in one line without control characters. A second call changes nothing more.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_control)
}

/// Returns `text` without control characters but its line ends and tabulators, for text that has
/// lines of its own.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |one| is_control(one) && !matches!(one, '\n' | '\t'))
}

/// Returns JSON of the same values without a control character: JSON lets a writer leave those from
/// U+007F on as they are, and a terminal would execute them.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let is_left = |one: char| is_control(one) && one >= '\u{7f}';
    if !json.contains(is_left) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for one in json.chars() {
        match is_left(one) {
            // All of them are below U+10000: one unit each.
            true => drop(write!(shown, "\\u{:04x}", u32::from(one))),
            false => shown.push(one),
        }
    }
    Cow::Owned(shown)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        match one {
            one if !is_escaped(one) => shown.push(one),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            // Writing to a string does not fail.
            '\0'..='\u{7f}' => drop(write!(shown, "\\x{:02x}", u32::from(one))),
            _ => drop(write!(shown, "\\u{{{:x}}}", u32::from(one))),
        }
    }
    Cow::Owned(shown)
}

/// C0, DEL and C1; line and paragraph separators; embeddings, overrides and isolates of the writing
/// direction.
fn is_control(one: char) -> bool {
    one.is_control() || matches!(one, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        for (url, shown) in [
            ("s3://key:hunter2@bucket/a.bak", "s3://..@bucket/a.bak"),
            ("s3://hunter2@bucket", "s3://..@bucket"),
            ("https://host/a.bak?sig=hunter2&x", "https://host/a.bak?.."),
            ("https://me:hunter2@host?hunter2#x", "https://..@host?.."),
            ("s3://bucket/a@b", "s3://bucket/a@b"),
            ("s3://bucket/what?", "s3://bucket/what?"),
            ("file:///srv/a?b@c", "file:///srv/a?b@c"),
            ("dir/a://b@c/?d", "dir/a://b@c/?d"),
            ("me@host", "me@host"),
        ] {
            assert_eq!(url.shown().to_string(), shown);
        }
    }

    #[test]
    fn no_control_character_is_left_and_everything_else_is() {
        for (name, shown) in [
            (&b"plain name.db"[..], "plain name.db"),
            (
                "\u{e9}t\u{e9} \u{65e5}\u{672c} \\n.db".as_bytes(),
                "\u{e9}t\u{e9} \u{65e5}\u{672c} \\n.db",
            ),
            (b"a\x1b]0;t\x07\x1b[2J\r\n\tb\x7f\0", "a\\x1b]0;t\\x07\\x1b[2J\\r\\n\\tb\\x7f\\x00"),
            ("a\u{9b}31m\u{85}".as_bytes(), "a\\u{9b}31m\\u{85}"),
            (
                "\u{202e}bd.\u{2066}\u{2069}\u{2028}\u{2029}".as_bytes(),
                "\\u{202e}bd.\\u{2066}\\u{2069}\\u{2028}\\u{2029}",
            ),
            (b"caf\xe9\x1b.db", "caf\\xe9\\x1b.db"),
            (b"\xff\xfe", "\\xff\\xfe"),
        ] {
            assert_eq!(name.shown().to_string(), shown);
            assert_eq!(printable(shown), shown, "a second call changes nothing");
        }
        assert_eq!(format!("[{:<6}]", "a\n".shown()), "[a\\n   ]");
    }

    #[test]
    fn every_character_that_a_terminal_executes_is_escaped() {
        for number in
            (0..0x20).chain(0x7f..0xa0).chain([0x61c]).chain(0x2028..0x202f).chain(0x2066..0x206a)
        {
            let one = char::from_u32(number).unwrap();
            let shown = printable(one.encode_utf8(&mut [0; 4])).into_owned();
            assert!(shown.is_ascii() && shown.starts_with('\\'), "U+{number:04x}: {shown}");
        }
    }

    #[test]
    fn text_keeps_its_lines_and_json_its_values() {
        assert_eq!(printable_lines("a\n\tb\r\x1b\u{2028}"), "a\n\tb\\r\\x1b\\u{2028}");
        assert_eq!(
            printable_json("{\"a\":\"\\n\u{7f}\u{9b}\u{e9}\u{202e}\"}"),
            "{\"a\":\"\\n\\u007f\\u009b\u{e9}\\u202e\"}"
        );
    }
}
