//! Scripts as sqlcmd reads them: batches between `GO` lines, commands, variables.
//!
//! ```
//! use pellucid_tsql::batch::{Item, NoFiles, Script, Variables};
//!
//! let text = ":setvar path 'C:\\temp'\nPRINT $(path)\nGO 2 -- twice\nPRINT 'end'\n";
//! let mut script = Script::new("example.sql", text.as_bytes(), NoFiles, Variables::new());
//! let Some(Item::Batch(first)) = script.next().transpose()? else { panic!() };
//! assert_eq!((first.text(), first.repeat, first.line), ("PRINT 'C:\\temp'\n", 2, 2));
//! let Some(Item::Batch(second)) = script.next().transpose()? else { panic!() };
//! assert_eq!((second.text(), second.repeat, second.line), ("PRINT 'end'\n", 1, 4));
//! assert!(script.next().is_none());
//! # Ok::<(), pellucid_tsql::batch::ScriptError>(())
//! ```
//!
//! Reads a line at a time and gives a batch as soon as its `GO` is read: memory for one batch, whatever the script's
//! length. Knows strings, brackets and comments, so that a `GO` in one of them is text; knows no statements.

mod command;
mod error;
mod lines;
mod scan;
mod variables;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead};

use zeroize::Zeroizing;

use crate::lexer::TEXT_BYTES_MOST;
use command::Command;
use lines::Lines;
use scan::Scan;

pub use error::{ScriptError, ScriptErrorKind};
pub use variables::Variables;

/// Files within files at most: who reads deeper reads itself.
pub const MAX_INCLUDES: usize = 32;

/// One batch. Its text may hold secrets: it is wiped when dropped, and `Debug` does not show it.
pub struct Batch {
    text: Zeroizing<String>,
    /// Times it is executed: `GO n`.
    pub repeat: u64,
    /// The line of its file that its first line is, from 1.
    pub line: u64,
    /// The file that line is in.
    pub file: String,
}

impl Batch {
    /// Its statements, variables replaced.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, repeat, line, file } = self;
        let bytes = text.len();
        write!(f, "Batch {{ {bytes} bytes, repeat: {repeat}, line: {line}, file: {file:?} }}")
    }
}

/// What a script holds, in order.
#[derive(Debug)]
pub enum Item {
    /// A batch to execute.
    Batch(Batch),
    /// `:on error {exit | ignore}`: whether an error ends the script from here on.
    OnError { exit: bool },
    /// `:exit` or `:quit`: end without executing what is pending. Nothing follows.
    Quit,
}

/// Opens what `:r` names.
pub trait Files {
    /// The file of that name, from its beginning.
    ///
    /// # Errors
    /// Whatever the system says.
    fn open(&mut self, name: &str) -> io::Result<Box<dyn BufRead>>;
}

/// For scripts that may not read files.
#[derive(Debug, Clone, Copy)]
pub struct NoFiles;

impl Files for NoFiles {
    fn open(&mut self, _: &str) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "files are not read here"))
    }
}

/// A script being read; an iterator over its items. Ends at the first error.
pub struct Script<F> {
    /// The script, and the files that are being read into it.
    sources: Vec<Lines>,
    files: F,
    /// Scripting variables; may be changed between items.
    pub variables: Variables,
    scan: Scan,
    text: Zeroizing<String>,
    /// Where the pending batch began.
    began: Option<(String, u64)>,
    ready: VecDeque<Item>,
    ended: bool,
}

impl<F> fmt::Debug for Script<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<_> = self.sources.iter().map(Lines::file).collect();
        f.debug_struct("Script").field("files", &files).field("ended", &self.ended).finish()
    }
}

impl<F: Files> Script<F> {
    /// A script called `file` in messages.
    pub fn new(file: &str, reader: impl BufRead + 'static, files: F, variables: Variables) -> Self {
        Self {
            sources: vec![Lines::new(file, Box::new(reader))],
            files,
            variables,
            scan: Scan::default(),
            text: Zeroizing::default(),
            began: None,
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// Takes lines until an item is ready or the script is over.
    fn advance(&mut self) -> Result<(), ScriptError> {
        while self.ready.is_empty() && !self.ended {
            let Some(source) = self.sources.last_mut() else {
                self.finish_batch(1);
                self.ended = true;
                break;
            };
            match source.next_line()? {
                None => {
                    self.sources.pop();
                }
                Some(line) => self.take(&line)?,
            }
        }
        Ok(())
    }

    /// Takes one line, with its end.
    fn take(&mut self, line: &str) -> Result<(), ScriptError> {
        if self.scan.is_outside() {
            match Command::parse(line) {
                Ok(None) => {}
                Ok(Some(command)) => return self.obey(command),
                Err(kind) => return Err(self.error(kind)),
            }
        }
        let (file, number) = self.place();
        if self.text.len() + line.len() > TEXT_BYTES_MOST {
            return Err(self.error(ScriptErrorKind::BatchTooLong { most: TEXT_BYTES_MOST }));
        }
        if self.began.is_none() {
            if line.trim().is_empty() {
                return Ok(()); // blank lines before a batch do not count
            }
            self.began = Some((file, number));
        }
        match self.scan.line(line, &self.variables, &mut self.text) {
            Ok(()) if self.text.len() > TEXT_BYTES_MOST => {
                Err(self.error(ScriptErrorKind::BatchTooLong { most: TEXT_BYTES_MOST }))
            }
            Ok(()) => Ok(()),
            Err(kind) => Err(self.error(kind)),
        }
    }

    fn obey(&mut self, command: Command<'_>) -> Result<(), ScriptError> {
        let replaced = |text: &str, variables: &Variables| {
            let mut out = Zeroizing::new(String::new());
            Scan::default().replace(text, variables, &mut out).map(|()| out)
        };
        match command {
            Command::Go { count } => {
                let count = replaced(count, &self.variables).map_err(|kind| self.error(kind))?;
                match command::count(&count) {
                    Some(repeat) => self.finish_batch(repeat),
                    None => return Err(self.error(ScriptErrorKind::Syntax { command: "GO" })),
                }
            }
            Command::Read { file } => {
                let file = replaced(file, &self.variables).map_err(|kind| self.error(kind))?;
                self.include(command::unquoted(&file))?;
            }
            Command::SetVariable { name, value } => {
                let value = value.map(|value| Zeroizing::new(command::unquoted(value).to_owned()));
                if !self.variables.set(name, value) {
                    return Err(self.error(ScriptErrorKind::Syntax { command: ":SETVAR" }));
                }
            }
            Command::OnError { exit } => self.ready.push_back(Item::OnError { exit }),
            Command::Quit => {
                self.ready.push_back(Item::Quit);
                self.ended = true;
            }
        }
        Ok(())
    }

    fn include(&mut self, name: &str) -> Result<(), ScriptError> {
        if self.sources.len() > MAX_INCLUDES {
            return Err(self.error(ScriptErrorKind::TooManyIncludes { most: MAX_INCLUDES }));
        }
        match self.files.open(name) {
            Ok(reader) => {
                self.sources.push(Lines::new(name, reader));
                Ok(())
            }
            Err(source) => {
                Err(self.error(ScriptErrorKind::Include { name: name.to_owned(), source }))
            }
        }
    }

    /// The pending batch is ready, if there is one.
    fn finish_batch(&mut self, repeat: u64) {
        self.scan = Scan::default();
        let text = std::mem::take(&mut self.text);
        if let Some((file, line)) = self.began.take() {
            self.ready.push_back(Item::Batch(Batch { text, repeat, line, file }));
        }
    }

    fn place(&self) -> (String, u64) {
        self.sources
            .last()
            .map_or_else(Default::default, |source| (source.file().to_owned(), source.number()))
    }

    fn error(&self, kind: ScriptErrorKind) -> ScriptError {
        let (file, line) = self.place();
        ScriptError { file, line, kind }
    }
}

impl<F: Files> Iterator for Script<F> {
    type Item = Result<Item, ScriptError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.advance() {
            self.ended = true;
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}

#[cfg(test)]
mod tests;
