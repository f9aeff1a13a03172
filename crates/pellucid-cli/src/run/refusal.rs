//! Why a program is not started: what, why, and what to do instead.

use std::fmt;
use std::io;
use std::path::PathBuf;

use pellucid::shown::Shown;

use crate::extension::Missing;
use crate::output::{word, Id};

/// Each reason has a message and a hint of its own; all of them end with exit status 1.
#[derive(Debug)]
pub enum Refusal {
    /// No program was named.
    Nothing,
    /// Nothing of that name can be executed.
    NotFound(PathBuf),
    /// Neither ELF nor a script with `#!`.
    NotAProgram(PathBuf),
    /// Scripts that interpret scripts, without an end.
    ScriptsTooDeep(PathBuf),
    /// It cannot be read, so nothing is known about it.
    Unreadable(PathBuf, io::Error),
    /// An ELF file that makes no sense.
    Malformed(PathBuf, String),
    /// For another processor than this library's.
    Architecture(PathBuf),
    /// No dynamic linker, so no preload.
    Static(PathBuf),
    /// musl's dynamic linker and libc do not go with a library made for glibc.
    Musl(PathBuf, String),
    /// Some other dynamic linker.
    Loader(PathBuf, String),
    /// setuid, setgid or file capabilities: the dynamic linker ignores preloads there.
    Privileged(PathBuf, &'static str),
    /// A SQLite inside the program itself.
    OwnSqlite(PathBuf, PathBuf),
    /// The extension is not there.
    Extension(Missing),
    /// The extension's path cannot stand in `LD_PRELOAD`.
    Unpreloadable(PathBuf),
    /// The dynamic linker was asked, and does not take the library.
    NotTaken { program: PathBuf, linker: String },
    /// `exec` failed.
    NotStarted(PathBuf, io::Error),
    /// The place for the witness could not be made, or the child not be waited for.
    Supervision(io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Nothing => f.write_str("no program is named"),
            Refusal::NotFound(name) => {
                write!(f, "`{}` is not a program that can be executed", name.shown())
            }
            Refusal::NotAProgram(path) => {
                write!(f, "`{}` is neither an ELF program nor a script with `#!`", path.shown())
            }
            Refusal::ScriptsTooDeep(path) => {
                write!(f, "`{}` is a script interpreted by too many scripts", path.shown())
            }
            Refusal::Unreadable(path, error) => {
                write!(f, "`{}` cannot be examined: {error}", path.shown())
            }
            Refusal::Malformed(path, what) => {
                write!(f, "`{}` cannot be examined: {what}", path.shown())
            }
            Refusal::Architecture(path) => write!(
                f,
                "`{}` is made for another processor than this Pellucid ({}), so the shim cannot be loaded into it",
                path.shown(),
                std::env::consts::ARCH
            ),
            Refusal::Static(path) => write!(
                f,
                "`{}` is statically linked: there is no dynamic linker that could load the shim into it",
                path.shown()
            ),
            Refusal::Musl(path, loader) => write!(
                f,
                "`{}` runs on musl (`{loader}`), and the shim is made for glibc",
                path.shown()
            ),
            Refusal::Loader(path, loader) => write!(
                f,
                "`{}` is loaded by `{loader}`, which is not glibc's dynamic linker",
                path.shown()
            ),
            Refusal::Privileged(path, mark) => write!(
                f,
                "`{}` is {mark}: the dynamic linker ignores what is to be loaded into such programs",
                path.shown()
            ),
            Refusal::OwnSqlite(path, _) => write!(
                f,
                "`{}` carries a SQLite of its own, which the shim cannot be put in front of from outside",
                path.shown()
            ),
            Refusal::Extension(missing) => missing.fmt(f),
            Refusal::Unpreloadable(path) => write!(
                f,
                "the path `{}` has a space, a colon or a `$`, which the dynamic linker takes apart",
                path.shown()
            ),
            Refusal::NotTaken { program, linker } => {
                write!(f, "`{}` does not take the shim: {linker}", program.shown())
            }
            Refusal::NotStarted(path, error) => {
                write!(f, "`{}` was not started: {error}", path.shown())
            }
            Refusal::Supervision(error) => write!(f, "the program cannot be watched: {error}"),
        }
    }
}

/// What programs out of the preload's reach do themselves.
const LOAD_YOURSELF: &str = "load the extension in the program itself, by its \
    `load_extension` call or `SELECT load_extension('$(pellucid extension)')` on a first connection, \
    then open `file:app.db?vfs=pellucid`";

impl Refusal {
    /// Which error it is.
    pub fn id(&self) -> Id {
        match self {
            Refusal::Nothing => Id::NoProgram,
            Refusal::NotFound(_) => Id::ProgramNotFound,
            Refusal::NotAProgram(_)
            | Refusal::ScriptsTooDeep(_)
            | Refusal::Unreadable(..)
            | Refusal::Malformed(..) => Id::ProgramUnknown,
            Refusal::Architecture(_)
            | Refusal::Static(_)
            | Refusal::Musl(..)
            | Refusal::Loader(..) => Id::ProgramUnfit,
            Refusal::Privileged(..) => Id::ProgramPrivileged,
            Refusal::OwnSqlite(..) => Id::ProgramOwnSqlite,
            Refusal::Extension(_) => Id::LibraryMissing,
            Refusal::Unpreloadable(_) => Id::LibraryPath,
            Refusal::NotTaken { .. } => Id::ProgramRefusesShim,
            Refusal::NotStarted(..) => Id::ProgramNotStarted,
            Refusal::Supervision(_) => Id::ProgramUnwatched,
        }
    }

    /// What to do instead, if there is more to say.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Refusal::Nothing => "`pellucid run -- sqlite3 app.db`".to_owned(),
            Refusal::NotFound(_) => "give its path, or put its directory into `PATH`".to_owned(),
            Refusal::NotAProgram(path) => {
                format!("if it is a shell script: `pellucid run -- sh {}`", word(path))
            }
            Refusal::ScriptsTooDeep(_) => "name the interpreter itself as the program".to_owned(),
            Refusal::Unreadable(path, _) => {
                format!("make it readable (`chmod u+r {}`); what is not known is not started", word(path))
            }
            Refusal::Malformed(..) => "name another program; this one is damaged or packed".to_owned(),
            Refusal::Architecture(_) => {
                "build Pellucid for that processor, and run that one's `pellucid`".to_owned()
            }
            Refusal::Static(_) => {
                "use a dynamically linked build; the extension does not load into a static one either".to_owned()
            }
            Refusal::Musl(..) => {
                "use the program's glibc build, or one in a glibc system or container".to_owned()
            }
            Refusal::Loader(..) => "use a build of the program for glibc".to_owned(),
            Refusal::Privileged(path, _) => format!(
                "run a copy without the mark as the user who needs it (`cp {} ./` drops it), or {LOAD_YOURSELF}",
                path.shown()
            ),
            Refusal::OwnSqlite(_, library) => LOAD_YOURSELF
                .replace("$(pellucid extension)", &library.shown().to_string()),
            Refusal::Extension(missing) => missing.hint(),
            Refusal::Unpreloadable(_) => {
                "copy the library to a plain path and set `PELLUCID_EXTENSION` to it".to_owned()
            }
            Refusal::NotTaken { .. } => {
                "`ldd $(pellucid extension)` shows what is missing; build Pellucid on the oldest system it is to run on"
                    .to_owned()
            }
            Refusal::NotStarted(..) | Refusal::Supervision(_) => return None,
        })
    }
}
