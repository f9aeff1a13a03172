//! Lines that are not statements: `GO` and the commands with a colon.

use super::error::ScriptErrorKind;

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command<'l> {
    /// `GO [count]`; the count may be a variable yet.
    Go { count: &'l str },
    /// `:r file`
    Read { file: &'l str },
    /// `:setvar name [value]`
    SetVariable { name: &'l str, value: Option<&'l str> },
    /// `:on error {exit | ignore}`
    OnError { exit: bool },
    /// `:exit`, `:quit`, also without the colon
    Quit,
}

/// Commands of sqlcmd that need a server, a terminal or a shell.
const UNSUPPORTED: &[&str] = &[
    ":!!",
    ":CONNECT",
    ":ED",
    ":ERROR",
    ":HELP",
    ":LIST",
    ":LISTVAR",
    ":OUT",
    ":PERFTRACE",
    ":RESET",
    ":SERVERLIST",
    ":XML",
];

impl<'l> Command<'l> {
    /// The command that is on `line`, if one is.
    pub fn parse(line: &'l str) -> Result<Option<Self>, ScriptErrorKind> {
        let line = line.trim();
        let end = line.find(|c: char| c.is_whitespace() || c == '(').unwrap_or(line.len());
        let (word, rest) = (&line[..end], without_comment(line[end..].trim_start()));
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if is("GO") {
            // `GO (` and `GO /*` begin nothing else: GO is alone on its line or has a count.
            return Ok(Some(Command::Go { count: without_block_comments(rest)? }));
        }
        let leaves = is("EXIT") || is("QUIT") || is(":EXIT") || is(":QUIT");
        if leaves {
            return match rest.is_empty() {
                true => Ok(Some(Command::Quit)),
                false if rest.starts_with('(') => {
                    Err(ScriptErrorKind::Unsupported { command: "EXIT(..)" })
                }
                false => Err(ScriptErrorKind::Syntax { command: "EXIT" }),
            };
        }
        if !word.starts_with(':') || word.starts_with("::") {
            return Ok(None);
        }
        if is(":R") {
            return match rest.is_empty() {
                true => Err(ScriptErrorKind::Syntax { command: ":R" }),
                false => Ok(Some(Command::Read { file: rest })),
            };
        }
        if is(":SETVAR") {
            let (name, value) = match rest.split_once(char::is_whitespace) {
                Some((name, value)) => (name, Some(value.trim())),
                None => (rest, None),
            };
            return Ok(Some(Command::SetVariable { name, value }));
        }
        if is(":ON") {
            let mut words = rest.split_whitespace().map(str::to_ascii_uppercase);
            return match [words.next(), words.next(), words.next()] {
                [Some(error), Some(what), None] if error == "ERROR" && what == "EXIT" => {
                    Ok(Some(Command::OnError { exit: true }))
                }
                [Some(error), Some(what), None] if error == "ERROR" && what == "IGNORE" => {
                    Ok(Some(Command::OnError { exit: false }))
                }
                _ => Err(ScriptErrorKind::Syntax { command: ":ON ERROR" }),
            };
        }
        let known = UNSUPPORTED
            .iter()
            .find(|name| is(name) || (word.starts_with(":!!") && **name == ":!!"));
        match known {
            Some(command) => Err(ScriptErrorKind::Unsupported { command }),
            None => {
                Err(ScriptErrorKind::Unknown { command: crate::secret::redact(word).into_owned() })
            }
        }
    }
}

/// `text` without `-- ..`; two hyphens within double quotes or within a word are no comment.
fn without_comment(text: &str) -> &str {
    let (mut quoted, mut blank) = (false, true);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '-' if !quoted && blank && text[at..].starts_with("--") => {
                return text[..at].trim_end()
            }
            _ => {}
        }
        blank = c.is_whitespace();
    }
    text
}

/// `text` up to a comment; behind it, nothing but comments may follow.
fn without_block_comments(text: &str) -> Result<&str, ScriptErrorKind> {
    let Some(start) = text.find("/*") else { return Ok(text) };
    let mut rest = &text[start..];
    while let Some(comment) = rest.strip_prefix("/*") {
        match comment.split_once("*/") {
            Some((_, behind)) => rest = behind.trim_start(),
            None => return Err(ScriptErrorKind::Syntax { command: "GO" }),
        }
    }
    match rest.is_empty() {
        true => Ok(text[..start].trim_end()),
        false => Err(ScriptErrorKind::Syntax { command: "GO" }),
    }
}

/// How often `GO count` executes; none if that is no count.
pub(super) fn count(text: &str) -> Option<u64> {
    match text.trim() {
        "" => Some(1),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    }
}

/// A value without the double quotes around it.
pub(super) fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}
