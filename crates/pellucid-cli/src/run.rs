//! `pellucid run`: starts an unmodified program with the shim in front of its SQLite.
//!
//! The program is examined first ([`program`], [`binary`]): one that the preload cannot reach is refused, with what
//! to do instead, before it could write a database in clear. Not examined is what the program starts in turn: its
//! children inherit the preload, and those out of its reach go on without it.

mod binary;
mod environment;
mod plain;
mod program;
mod refusal;
mod supervise;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::extension;
use crate::output::Failure;
use program::Program;
use refusal::Refusal;

/// Run a program, unchanged, on encrypted databases
///
/// The shim goes in front of its SQLite. The program has to be dynamically linked and to use the system's SQLite; pellucid
/// refuses others and says what to do instead. The exit status is the program's (128 + n if signal n ended it). Children of the program inherit the shim.
///
/// Examples: `pellucid run -- sqlite3 app.db`, `pellucid run --encrypt-new -- python3 app.py`
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Seal the databases that the program creates; fails if a connection bypassed the shim or a plain database appeared
    #[arg(long)]
    encrypt_new: bool,
    /// Put the shim in place while the program is loaded, not when it first opens a database (the default for PHP)
    ///
    /// For programs that look up SQLite's functions themselves and bypass the preload. SQLite is then initialized before the
    /// program starts, and refuses the program's own `sqlite3_config` calls.
    #[arg(long)]
    eager: bool,
    /// Refuse to open or create a database that is not sealed
    #[arg(long)]
    require_sealed: bool,
    /// Leave databases plain that the program creates while it has a sealed one open
    ///
    /// SQLite copies a database into a new one (`VACUUM INTO`, `.backup`, `.clone`, an attached file). Without this option such
    /// a copy is sealed under the same protectors.
    #[arg(long, conflicts_with_all = ["encrypt_new", "require_sealed"])]
    plain_copies: bool,
    /// Program to run, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Runs the command; comes back only if the program was not started or had to be waited for.
///
/// # Errors
/// [`Failure`] if the program was not started: refused, or not there.
pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    start(args).map_err(|refusal| {
        let mut failure = Failure::new(refusal.id(), &refusal, "");
        failure.hint = refusal.hint();
        failure
    })
}

fn start(args: &RunArgs) -> Result<ExitCode, Refusal> {
    let (name, arguments) = args.command.split_first().ok_or(Refusal::Nothing)?;
    let program = Program::find(name, arguments)?;
    let library = extension::locate().map_err(Refusal::Extension)?;
    let preload = environment::preload(&library)?;
    for binary in &program.binaries {
        binary::examine(binary, &preload, &library)?;
    }

    let eager = args.eager || program.needs_eager();
    let mut command = Command::new(&program.path);
    command.arg0(name).args(arguments);
    environment::set(&mut command, preload, args, eager);
    if args.encrypt_new {
        return supervise::supervise(command, &program.path, &watched(arguments));
    }
    // Only an error comes back.
    let error = command.exec();
    Err(Refusal::NotStarted(program.path, error))
}

/// Where a new database of the program is looked for: the working directory, and files named as arguments.
fn watched(arguments: &[OsString]) -> Vec<&Path> {
    arguments.iter().map(Path::new).collect()
}
