//! STAND-IN for the program's `main`, until the merge: only `run` and `extension`.
#![forbid(unsafe_code)]

mod extension;
mod run;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "pellucid")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Extension(extension::ExtensionArgs),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run(args) => run::run(args),
        Command::Extension(args) => extension::run(args),
    }
}
