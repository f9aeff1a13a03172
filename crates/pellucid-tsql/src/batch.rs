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
mod exit;
mod lines;
mod scan;
pub mod settings;
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

/// A query in `EXIT(..)` has so many bytes at most: its end is looked for anew with each line.
const EXIT_BYTES_MOST: usize = 1 << 16;

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
    /// `EXIT(..)`: execute what is pending with the query, if there is any, and end; with the query's first value, if there
    /// is a query. Nothing follows.
    Exit { batch: Option<Batch>, returns: bool },
    /// `:out`, `:error`, `:perftrace`: where something goes from here on.
    Redirect(Redirect),
    /// `:xml {on | off}`
    Xml { on: bool },
    /// `:connect` of this machine: a new session.
    Connect,
    /// `:list`: what is pending, without secrets.
    List(String),
    /// `:help`, `:listvar`, `:serverlist`
    Show(Shown),
    /// `!!` or `:ed` where they are passed over.
    PassedOver { command: &'static str },
}

/// What a command shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The commands.
    Help,
    /// The variables that are set.
    Variables,
    /// The servers.
    Servers,
}

/// What goes somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Results and messages.
    Out,
    /// Errors.
    Error,
    /// Times of batches.
    Statistics,
}

/// Where it goes from a line on.
#[derive(Debug)]
pub struct Redirect {
    /// What goes there.
    pub stream: Stream,
    /// `stdout`, `stderr`, or a file's name.
    pub to: String,
    /// The file and the line of the command.
    place: (String, u64),
}

impl Redirect {
    /// The error of a file that cannot be made.
    pub fn error(self, source: io::Error) -> ScriptError {
        let (file, line) = self.place;
        ScriptError { file, line, kind: ScriptErrorKind::Redirect { name: self.to, source } }
    }
}

/// How a script is read.
#[derive(Debug, Clone)]
pub struct Dialect {
    /// What ends a batch: -c.
    pub terminator: String,
    /// Whether commands that would start a program are passed over (-X); otherwise they are errors.
    pub passes_over_programs: bool,
    /// Whether a server's name is one of this machine.
    pub is_here: fn(&str) -> bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { terminator: "GO".to_owned(), passes_over_programs: false, is_here: |_| false }
    }
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
    dialect: Dialect,
    scan: Scan,
    text: Zeroizing<String>,
    /// The query of an `EXIT(` whose end is still to come.
    exit: Option<Zeroizing<String>>,
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
            dialect: Dialect::default(),
            scan: Scan::default(),
            text: Zeroizing::default(),
            exit: None,
            began: None,
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// The same script, read so.
    pub fn with(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Takes lines until an item is ready or the script is over.
    fn advance(&mut self) -> Result<(), ScriptError> {
        while self.ready.is_empty() && !self.ended {
            let Some(source) = self.sources.last_mut() else {
                if self.exit.is_some() {
                    return Err(self.error(ScriptErrorKind::Syntax { command: "EXIT" }));
                }
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
        if let Some(mut query) = self.exit.take() {
            query.push_str(line);
            return self.exit(query);
        }
        if self.scan.is_outside() {
            match Command::parse(line, &self.dialect.terminator) {
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
                let value = value.map(command::value);
                let value = settings::set(name, value.as_ref().map(|value| value.as_str()))
                    .map(|value| value.map(|value| Zeroizing::new(value.to_owned())))
                    .map_err(|kind| self.error(kind))?;
                if !self.variables.set(name, value) {
                    return Err(self.error(ScriptErrorKind::Syntax { command: ":SETVAR" }));
                }
            }
            Command::OnError { exit } => self.ready.push_back(Item::OnError { exit }),
            Command::Quit => {
                self.ready.push_back(Item::Quit);
                self.ended = true;
            }
            Command::Exit { rest } => return self.exit(Zeroizing::new(rest.to_owned())),
            Command::Redirect { stream, to } => {
                let to = replaced(to, &self.variables).map_err(|kind| self.error(kind))?;
                let to = command::unquoted(&to).to_owned();
                self.ready.push_back(Item::Redirect(Redirect { stream, to, place: self.place() }));
            }
            Command::Xml { on } => self.ready.push_back(Item::Xml { on }),
            Command::Connect { server } => {
                let server = replaced(server, &self.variables).map_err(|kind| self.error(kind))?;
                if !(self.dialect.is_here)(&server) {
                    let server = crate::secret::redact(&server).into_owned();
                    return Err(self.error(ScriptErrorKind::Elsewhere { server }));
                }
                self.ready.push_back(Item::Connect);
            }
            Command::Reset => {
                self.scan = Scan::default();
                self.text = Zeroizing::default();
                self.began = None;
            }
            Command::List => {
                let text = crate::secret::redact(&self.text).into_owned();
                self.ready.push_back(Item::List(text));
            }
            Command::Show(shown) => self.ready.push_back(Item::Show(shown)),
            Command::Program { command } => match self.dialect.passes_over_programs {
                true => self.ready.push_back(Item::PassedOver { command }),
                false => return Err(self.error(ScriptErrorKind::Program { command })),
            },
        }
        Ok(())
    }

    /// Takes what stands behind `EXIT(`, as far as it is read.
    fn exit(&mut self, query: Zeroizing<String>) -> Result<(), ScriptError> {
        if query.len() > EXIT_BYTES_MOST {
            return Err(self.error(ScriptErrorKind::BatchTooLong { most: EXIT_BYTES_MOST }));
        }
        let Some(end) = exit::end(&query) else {
            self.exit = Some(query);
            return Ok(());
        };
        if !exit::is_all(&query[end + 1..]) {
            return Err(self.error(ScriptErrorKind::Syntax { command: "EXIT" }));
        }
        let query = &query[..end];
        let returns = !query.trim().is_empty();
        if returns {
            self.began.get_or_insert_with(|| {
                self.sources.last().map_or_else(Default::default, |source| {
                    (source.file().to_owned(), source.number())
                })
            });
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            let scanned = self.scan.line(query, &self.variables, &mut self.text);
            scanned.map_err(|kind| self.error(kind))?;
        }
        self.finish_batch(1);
        let batch = match self.ready.pop_back() {
            Some(Item::Batch(batch)) => Some(batch),
            _ => None,
        };
        self.ready.push_back(Item::Exit { batch, returns });
        self.ended = true;
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
