//! Lines that are not statements: `GO` and the commands with a colon.

use zeroize::Zeroizing;

use super::error::ScriptErrorKind;
use super::{Shown, Stream};

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
    /// `exit(`: what stands behind the parenthesis on this line.
    Exit { rest: &'l str },
    /// `:out`, `:error`, `:perftrace`
    Redirect { stream: Stream, to: &'l str },
    /// `:xml {on | off}`
    Xml { on: bool },
    /// `:connect server [options]`
    Connect { server: &'l str },
    /// `:reset`, also without the colon
    Reset,
    /// `:list`
    List,
    /// `:help`, `:listvar`, `:serverlist`
    Show(Shown),
    /// `!!`, `:ed`: what would start a program.
    Program { command: &'static str },
}

impl<'l> Command<'l> {
    /// The command that is on `line`, if one is.
    /// `terminator` ends a batch: `GO`, or what -c names.
    pub fn parse(line: &'l str, terminator: &str) -> Result<Option<Self>, ScriptErrorKind> {
        let untrimmed = line.trim_start();
        let line = line.trim();
        let end = line.find(|c: char| c.is_whitespace() || c == '(').unwrap_or(line.len());
        let (word, rest) = (&line[..end], without_comment(line[end..].trim_start()));
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if is(terminator) {
            // `GO (` and `GO /*` begin nothing else: GO is alone on its line or has a count.
            return Ok(Some(Command::Go { count: without_block_comments(rest)? }));
        }
        if is("EXIT") || is("QUIT") || is(":EXIT") || is(":QUIT") {
            // A string in the query may hold what looks like a comment.
            let behind = untrimmed[end..].trim_start();
            return match behind.strip_prefix('(') {
                Some(rest) if !is("QUIT") && !is(":QUIT") => Ok(Some(Command::Exit { rest })),
                _ if rest.is_empty() => Ok(Some(Command::Quit)),
                _ => Err(ScriptErrorKind::Syntax { command: "EXIT" }),
            };
        }
        let program = match word {
            _ if word.starts_with("!!") => Some("!!"),
            _ if word.starts_with(":!!") => Some(":!!"),
            _ if is(":ED") => Some(":ED"),
            _ if is("ED") && rest.is_empty() => Some("ED"),
            _ => None,
        };
        if let Some(command) = program {
            return Ok(Some(Command::Program { command }));
        }
        if is(":RESET") || (is("RESET") && rest.is_empty()) {
            return Ok(Some(Command::Reset));
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
        Self::of_output(word, rest)
    }

    /// The commands about where and how something is shown, and the one that connects.
    fn of_output(word: &str, rest: &'l str) -> Result<Option<Self>, ScriptErrorKind> {
        let redirect = |stream, command| match rest.is_empty() {
            true => Err(ScriptErrorKind::Syntax { command }),
            false => Ok(Command::Redirect { stream, to: rest }),
        };
        let alone = |this: Self, command| match rest.is_empty() {
            true => Ok(this),
            false => Err(ScriptErrorKind::Syntax { command }),
        };
        let command = match word.to_ascii_uppercase().as_str() {
            ":OUT" => redirect(Stream::Out, ":OUT")?,
            ":ERROR" => redirect(Stream::Error, ":ERROR")?,
            ":PERFTRACE" => redirect(Stream::Statistics, ":PERFTRACE")?,
            ":XML" if rest.eq_ignore_ascii_case("on") => Command::Xml { on: true },
            ":XML" if rest.eq_ignore_ascii_case("off") => Command::Xml { on: false },
            ":XML" => return Err(ScriptErrorKind::Syntax { command: ":XML" }),
            ":CONNECT" => match first_word(rest) {
                "" => return Err(ScriptErrorKind::Syntax { command: ":CONNECT" }),
                server => Command::Connect { server },
            },
            ":LIST" => alone(Command::List, ":LIST")?,
            ":HELP" => alone(Command::Show(Shown::Help), ":HELP")?,
            ":LISTVAR" => alone(Command::Show(Shown::Variables), ":LISTVAR")?,
            ":SERVERLIST" => alone(Command::Show(Shown::Servers), ":SERVERLIST")?,
            _ => {
                let command = crate::secret::redact(word).into_owned();
                return Err(ScriptErrorKind::Unknown { command });
            }
        };
        Ok(Some(command))
    }
}

/// The first word of `text`, or what stands between the double quotes that it begins with.
fn first_word(text: &str) -> &str {
    match text.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default(),
        None => text.split_whitespace().next().unwrap_or_default(),
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

/// The value that `:setvar` gives: without the double quotes around it, and with one for each two within.
pub(super) fn value(text: &str) -> Zeroizing<String> {
    let inner = unquoted(text);
    match inner.len() == text.len() {
        true => Zeroizing::new(text.to_owned()),
        false => Zeroizing::new(inner.replace("\"\"", "\"")),
    }
}
