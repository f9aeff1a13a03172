//! Where strings, names and comments begin and end over the lines of a batch, and variables between.

use super::error::ScriptErrorKind;
use super::variables::Variables;

/// What the scanner is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Statements.
    #[default]
    Outside,
    /// `'..'`, `".."`, `[..]`: until this byte.
    Quoted(u8),
    /// `/* .. */`, this deep.
    Comment(u32),
}

/// Reads lines one behind the other.
#[derive(Debug, Default)]
pub(super) struct Scan {
    state: State,
}

impl Scan {
    /// Whether a command may stand on the next line.
    pub fn is_outside(&self) -> bool {
        self.state == State::Outside
    }

    /// Takes a line and appends it to `out` with its variables replaced, as sqlcmd does: in strings, too, but not in
    /// comments. What a variable stands for opens and closes nothing.
    pub fn line(
        &mut self,
        line: &str,
        variables: &Variables,
        out: &mut String,
    ) -> Result<(), ScriptErrorKind> {
        let bytes = line.as_bytes();
        let (mut at, mut copied) = (0, 0);
        while let Some(&byte) = bytes.get(at) {
            let next = bytes.get(at + 1);
            match (self.state, byte, next) {
                (State::Outside, b'-', Some(b'-')) => break,
                (State::Outside, b'/', Some(b'*')) => {
                    self.state = State::Comment(1);
                    at += 1;
                }
                (State::Comment(depth), b'/', Some(b'*')) => {
                    self.state = State::Comment(depth + 1);
                    at += 1;
                }
                (State::Comment(depth), b'*', Some(b'/')) => {
                    self.state = match depth {
                        1 => State::Outside,
                        deeper => State::Comment(deeper - 1),
                    };
                    at += 1;
                }
                (State::Comment(_), ..) => {}
                (_, b'$', Some(b'(')) => {
                    out.push_str(&line[copied..at]);
                    at += reference(&line[at..], variables, out)?;
                    copied = at;
                    continue;
                }
                (State::Quoted(b']'), b']', Some(b']')) => at += 1,
                // A doubled quote closes and opens again.
                (State::Quoted(close), byte, _) if byte == close => self.state = State::Outside,
                (State::Outside, b'\'' | b'"', _) => self.state = State::Quoted(byte),
                (State::Outside, b'[', _) => self.state = State::Quoted(b']'),
                _ => {}
            }
            at += 1;
        }
        out.push_str(&line[copied..]);
        Ok(())
    }

    /// `text` with its variables replaced, whatever else it is.
    pub fn replace(
        &mut self,
        text: &str,
        variables: &Variables,
        out: &mut String,
    ) -> Result<(), ScriptErrorKind> {
        let mut rest = text;
        while let Some(at) = rest.find("$(") {
            out.push_str(&rest[..at]);
            let length = reference(&rest[at..], variables, out)?;
            rest = &rest[at + length..];
        }
        out.push_str(rest);
        Ok(())
    }
}

/// Appends what `$(name)`, with which `text` begins, stands for; gives its length.
fn reference(
    text: &str,
    variables: &Variables,
    out: &mut String,
) -> Result<usize, ScriptErrorKind> {
    let name = text[2..].split(')').next().unwrap_or_default();
    let length = 2 + name.len() + 1;
    if text.len() < length || !Variables::is_name(name) {
        return Err(ScriptErrorKind::Reference);
    }
    match variables.get(name) {
        Some(value) => {
            out.push_str(&value);
            Ok(length)
        }
        None => Err(ScriptErrorKind::Undefined { name: name.to_owned() }),
    }
}
