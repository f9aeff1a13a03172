//! `manual`: man pages and completions, from the same definitions the program reads its arguments by.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use pellucid::shown::Shown;

use crate::output::{Failure, Output};

/// What `manual` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid manual share")]
pub struct ManualArgs {
    /// Directory for man/man1, bash-completion, zsh and fish, laid out as under /usr/share
    directory: PathBuf,
}

/// Completions by shell, in the places where distributions look for them.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/pellucid"),
    (Shell::Zsh, "zsh/site-functions/_pellucid"),
    (Shell::Fish, "fish/vendor_completions.d/pellucid.fish"),
];

/// Writes them.
pub fn run(args: &ManualArgs, output: &Output) -> Result<ExitCode, Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(format!("`{}`: {error}", path.shown()), "name a directory that can be written")
    };
    let mut command = without_help_pages(crate::Cli::command());
    command.build();
    let pages = args.directory.join("man/man1");
    std::fs::create_dir_all(&pages).map_err(|error| failed(&pages, error))?;
    clap_mangen::generate_to(command.clone(), &pages).map_err(|error| failed(&pages, error))?;
    for (shell, name) in COMPLETIONS {
        let path = args.directory.join(name);
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "pellucid", &mut text);
        let directory = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| failed(&path, error))?;
    }
    output.line(format!("wrote  {}", args.directory.shown()));
    Ok(ExitCode::SUCCESS)
}

/// `help` is a word for the terminal, not a page for each command.
fn without_help_pages(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help_pages)
}
