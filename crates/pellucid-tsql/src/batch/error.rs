//! What is wrong with a script, apart from its statements.

use std::io;

/// Why a script cannot be read on.
#[derive(Debug, thiserror::Error)]
#[error("Sqlcmd: Error: {kind} at line {line} of `{file}`")]
pub struct ScriptError {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: u64,
    /// What is wrong.
    #[source]
    pub kind: ScriptErrorKind,
}

/// What is wrong with a script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptErrorKind {
    /// The system refused to read.
    #[error("cannot read the script: {0}")]
    Read(io::Error),
    /// `:r` of a file that does not open.
    #[error("cannot open `{name}`: {source}")]
    Include { name: String, source: io::Error },
    /// Files within files, too deep.
    #[error("more than {most} files within one another")]
    TooManyIncludes { most: usize },
    /// Neither UTF-8 nor, with a byte order mark, UTF-16.
    #[error("the text is neither UTF-8 nor UTF-16 (`-f 1252` reads it in another code page)")]
    Encoding,
    /// A batch longer than is read.
    #[error("a batch of more than {most} bytes")]
    BatchTooLong { most: usize },
    /// A command that does not read so.
    #[error("syntax error near command '{command}'")]
    Syntax { command: &'static str },
    /// `!!` and `:ed`.
    #[error("command '{command}' is not supported (a script starts no program)")]
    Program { command: &'static str },
    /// `:connect` of another machine.
    #[error("command ':CONNECT' is not supported for another machine (`{server}`)")]
    Elsewhere { server: String },
    /// `:out` and its like of a file that cannot be made.
    #[error("cannot make `{name}`: {source}")]
    Redirect { name: String, source: io::Error },
    /// `:setvar` of a variable that only an option sets.
    #[error("the scripting variable '{name}' is read-only")]
    ReadOnly { name: &'static str },
    /// A value that a variable of sqlcmd's own cannot have.
    #[error("the scripting variable '{name}' has an invalid value")]
    Value { name: &'static str },
    /// A command that sqlcmd does not have either.
    #[error("there is no command '{command}'")]
    Unknown { command: String },
    /// `$(` that is not a variable.
    #[error("syntax error in a variable reference")]
    Reference,
    /// A variable without a value.
    #[error("'{name}' scripting variable not defined")]
    Undefined { name: String },
}
