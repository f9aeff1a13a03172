//! The prompt: lines from the terminal, with history and completion, as sqlcmd's.
//!
//! A script whose reader asks for the next line, so that batches, variables and `:r` are as everywhere.

mod complete;
mod history;

use std::cell::RefCell;
use std::io::{self, BufRead, Cursor, Read};
use std::path::PathBuf;
use std::rc::Rc;

use pellucid_tsql::batch::Variables;
use pellucid_tsql::lexer::{Lexer, Token, TokenKind};
use pellucid_tsql::secret::redact;
use pellucid_tsql::ErrorKind;
use rustyline::config::{Config, Configurer};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Editor};
use zeroize::Zeroizing;

use super::commands::HELP;
use super::files::Disk;
use super::runner::{End, Runner};
use crate::output::{tell, Failure, Id};
use complete::Completion;

/// Asks until somebody leaves.
///
/// # Errors
/// [`Failure`] if the terminal cannot be used.
pub fn run(runner: &mut Runner, disk: &Disk, variables: Variables) -> Result<End, Failure> {
    let editor = editor(runner, disk).map_err(|error| {
        Failure::new(
            Id::NoTerminal,
            format!("the terminal: {error}"),
            "give a script by `-i` or standard input",
        )
    })?;
    let keyboard = Rc::new(RefCell::new(editor));
    let mut variables = disk.with_dollar(variables);
    loop {
        let reader = disk.read(Typed { keyboard: Rc::clone(&keyboard), line: Cursor::default() });
        let reader = reader.map_err(|error| {
            Failure::new(Id::Defect, error, "this is a defect of pellucid: report it")
        })?;
        let mut script = disk.script("stdin", reader, std::mem::take(&mut variables));
        loop {
            let item = script.next();
            let mut typed = keyboard.borrow_mut();
            typed.forget();
            let is_dropped = std::mem::take(&mut typed.is_dropped);
            // What is pending at Ctrl-D is not executed.
            if typed.is_over {
                return Ok(End::Over);
            }
            drop(typed);
            match runner.step(item, &script.variables) {
                None | Some(End::Cancelled) => {}
                Some(End::Wrong(error)) => {
                    if !is_dropped {
                        runner.tell_wrong(&error);
                    }
                    break;
                }
                Some(end) => return Ok(end),
            }
        }
        // A script ends at its first error; the next one goes on with its variables.
        variables = std::mem::take(&mut script.variables);
    }
}

fn editor(runner: &Runner, disk: &Disk) -> rustyline::Result<Keyboard> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Completion::new(Rc::clone(&runner.session))));
    editor.set_max_history_size(history::LINES_MOST)?;
    let file = history::file();
    if let Some(file) = &file {
        // There is none yet, or it cannot be read: this one begins anew.
        let _ = editor.load_history(file);
    }
    let pending = Zeroizing::default();
    let terminator = disk.dialect.terminator.clone();
    Ok(Keyboard { editor, file, terminator, pending, lines: 0, is_dropped: false, is_over: false })
}

/// The terminal, and what was typed since the last batch.
struct Keyboard {
    editor: Editor<Completion, FileHistory>,
    /// The history's.
    file: Option<PathBuf>,
    /// `GO`, or what -c names.
    terminator: String,
    pending: Zeroizing<String>,
    lines: usize,
    /// Ctrl-C
    is_dropped: bool,
    /// Ctrl-D
    is_over: bool,
}

impl Keyboard {
    /// The next line with its end; nothing at the end.
    fn line(&mut self) -> io::Result<Zeroizing<String>> {
        loop {
            let asked = self.editor.readline(&format!("{}> ", self.lines + 1));
            let mut line = match asked {
                Ok(line) => Zeroizing::new(line),
                Err(ReadlineError::Eof) => {
                    self.is_over = true;
                    return Ok(Zeroizing::default());
                }
                Err(ReadlineError::Interrupted) => return Err(self.drop_pending()),
                Err(ReadlineError::Io(error)) => return Err(self.end(error)),
                Err(error) => return Err(self.end(io::Error::other(error))),
            };
            self.remember(&line);
            let is_within = is_within(&self.pending);
            if !is_within {
                match line.trim().to_ascii_lowercase().as_str() {
                    "" if self.pending.is_empty() => continue,
                    ":help" => {
                        tell(HELP);
                        continue;
                    }
                    ":list" => {
                        tell(redact(&self.pending));
                        continue;
                    }
                    ":reset" | "reset" => return Err(self.drop_pending()),
                    _ => {}
                }
            }
            line.push('\n');
            let word = line.split_whitespace().next().unwrap_or_default();
            match () {
                () if !is_within && word.eq_ignore_ascii_case(&self.terminator) => self.forget(),
                // Commands are no lines of the batch.
                () if !is_within && (word.starts_with(':') || word.starts_with("!!")) => {}
                () => {
                    self.pending.push_str(&line);
                    self.lines += line.lines().count();
                }
            }
            return Ok(line);
        }
    }

    fn forget(&mut self) {
        self.pending = Zeroizing::default();
        self.lines = 0;
    }

    /// What was typed is forgotten: the script that reads it ends by an error.
    fn drop_pending(&mut self) -> io::Error {
        self.is_dropped = true;
        io::Error::other("what was typed is dropped")
    }

    /// The terminal is gone: there is nothing to ask any more.
    fn end(&mut self, error: io::Error) -> io::Error {
        self.is_over = true;
        error
    }

    fn remember(&mut self, line: &str) {
        if !history::may_keep(&self.pending, line) {
            return;
        }
        // What cannot be kept is no reason to stop.
        if let (Ok(true), Some(file)) = (self.editor.add_history_entry(line), &self.file) {
            let _ = self.editor.append_history(file);
        }
    }
}

/// Whether a string, a name in quotes or a comment has begun and not ended.
fn is_within(text: &str) -> bool {
    let Ok(mut lexer) = Lexer::new(text) else { return false };
    loop {
        match lexer.token() {
            Ok(Token { kind: TokenKind::End, .. }) => return false,
            Ok(_) => {}
            Err(error) => {
                let kind = error.kind;
                return matches!(
                    kind,
                    ErrorKind::UnclosedQuote { .. } | ErrorKind::UnclosedComment
                );
            }
        }
    }
}

/// The keyboard as a script.
struct Typed {
    keyboard: Rc<RefCell<Keyboard>>,
    line: Cursor<Zeroizing<String>>,
}

impl Read for Typed {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(to)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Typed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.line.position() == self.line.get_ref().len() as u64 {
            self.line = Cursor::new(self.keyboard.borrow_mut().line()?);
        }
        self.line.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.line.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_text_within_strings_names_and_comments() {
        for open in ["PRINT 'a\n", "SELECT [a\n", "SELECT \"a\n", "/* a\n", "PRINT 'it''s\n"] {
            assert!(is_within(open), "{open}");
        }
        for closed in ["", "PRINT 'a'\n", "-- it's\n", "/* a */ SELECT\n", "SELECT [a]\n"] {
            assert!(!is_within(closed), "{closed}");
        }
    }
}
