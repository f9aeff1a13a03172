//! `demo`: a database, what a thief sees, one command, the same programs, a flipped bit, a picture.
//!
//! Checks what it shows, and fails when something is not as it says. The programs are real child processes; what a
//! thief sees is read here, byte by byte, without a key.

mod commands;
mod dump;
mod image;
mod pages;
pub mod picture;
mod place;
mod source;
mod svg;
mod walk;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pellucid::shown::Shown;

use crate::output::{Failure, Id, Output};
use commands::{Commands, Program};
use image::io;
use walk::Walk;

/// Demonstrate encryption on a sample or on a copy of your database
///
/// The demo works in one directory and keeps its keys there. It ends with a picture of the database before and after
/// encryption.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid demo\n  pellucid demo app.db --directory /tmp/shown")]
pub struct DemoArgs {
    /// Plain database; the demo works on a copy of it [default: Northwind]
    #[arg(value_name = "DB")]
    database: Option<PathBuf>,
    /// Directory to work in: a new one, or the one of an earlier demo, which is emptied
    #[arg(long, value_name = "DIR", default_value = "pellucid-demo")]
    directory: PathBuf,
    /// SQLite extension with the collations and functions that the schema needs
    #[arg(long, value_name = "FILE")]
    load: Vec<PathBuf>,
}

/// Shows it all.
///
/// # Errors
/// [`Failure`] if something is missing, or is not as shown.
pub fn run(args: &DemoArgs, output: &Output) -> Result<ExitCode, Failure> {
    let original = args.database.as_deref();
    let mut keep = None;
    if let Some(original) = original {
        source::require_plain(original)?;
        keep = Some(original.canonicalize().map_err(|error| io(original, error))?);
    }
    let directory = place::prepare(&args.directory, keep.as_deref())?;
    let commands = Commands::new(directory.clone(), output)?;
    let load = whole_paths(&args.load)?;
    let walk = Walk {
        programs: programs(&commands, !load.is_empty(), output)?,
        load,
        commands,
        directory,
        output,
    };
    walk.go(original)
}

/// The extensions by the names that they have from the demo's directory, too.
fn whole_paths(load: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let whole = |path: &PathBuf| {
        let path = std::path::absolute(path).map_err(|error| io(path, error))?;
        path.to_str().map(str::to_owned).ok_or_else(|| {
            let told = format!("`{}`: its path is no text in UTF-8", path.shown());
            Failure::new(Id::ExtensionNotLoaded, told, "copy it to another place")
        })
    };
    load.iter().map(whole).collect()
}

/// Those of the two programs that are there. Only the first one loads extensions by its options.
fn programs(commands: &Commands, loads: bool, output: &Output) -> Result<Vec<Program>, Failure> {
    let fits = |program: &Program| !loads || *program == Program::Sqlite3;
    let (there, missing): (Vec<_>, Vec<_>) =
        Program::ALL.into_iter().filter(fits).partition(|program| commands.has(*program));
    let install = |programs: &[Program]| {
        let names: Vec<_> = programs.iter().map(|program| program.name()).collect();
        format!("`apt install {}` brings", names.join(" "))
    };
    if there.is_empty() {
        let message = "neither `sqlite3` nor `python3` is there, so no program can be shown";
        return Err(Failure::new(
            Id::ProgramsMissing,
            message,
            format!("on Debian, {} them", install(&missing)),
        ));
    }
    for program in &missing {
        output.warning(format!(
            "`{}` is not there; going on without it (on Debian, {} it)",
            program.name(),
            install(&missing)
        ));
    }
    Ok(there)
}
