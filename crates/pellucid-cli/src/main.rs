//! `pellucid`: encrypts SQLite databases, runs programs over them, checks them.
#![forbid(unsafe_code)]

mod cert;
mod check;
mod convert;
mod demo;
mod doctor;
mod events;
mod extension;
mod init;
mod key;
mod keys;
mod manual;
mod output;
mod owner;
mod protector;
mod rekey;
mod run;
mod status;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Output;
use rustix::process::DumpableBehavior;

/// Exit statuses; `run` returns the program's own.
mod exit {
    /// It could not be done.
    pub const FAILED: u8 = 1;
    /// Damage was found.
    pub const DAMAGE: u8 = 3;
    /// Something needs attention (`status --check`).
    pub const ATTENTION: u8 = 4;
}

/// Transparent encryption for SQLite databases.
#[derive(Debug, Parser)]
#[command(
    name = "pellucid",
    version,
    propagate_version = true,
    after_help = "Example:\n  pellucid encrypt app.db\n  pellucid run -- python3 app.py\n\nExit \
                  status: 0 done, 1 failed, 2 usage, 3 damage found, 4 attention needed (status \
                  --check); run returns the program's own."
)]
struct Cli {
    /// Facts as JSON on standard output
    #[arg(long, global = true)]
    json: bool,
    /// Nothing but errors and warnings
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Ask nothing: yes to every question
    #[arg(long, short, global = true)]
    yes: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Encrypt plain databases in place
    Encrypt(convert::EncryptArgs),
    /// Turn encrypted databases back into plain ones, in place
    Decrypt(convert::DecryptArgs),
    /// Show what is encrypted, under which keys, and what needs attention
    Status(status::StatusArgs),
    /// Authenticate every page and run SQLite's own check
    Check(check::CheckArgs),
    /// Make an instance: the directory with your keys
    Init(init::InitArgs),
    /// Certificates: make, list, show, export, import, drop
    Cert(cert::CertArgs),
    /// Master keys: status, backup, restore, regenerate, passwords
    Key(key::KeyArgs),
    /// What opens a database: add, drop, list
    Protector(protector::ProtectorArgs),
    /// Give a database a new data encryption key, while programs use it
    Rekey(rekey::RekeyArgs),
    /// Protect databases by another certificate, key file or passphrase; their pages stay
    Rewrap(rekey::RewrapArgs),
    /// The scan after a rekey: status, suspend, resume
    Scan(rekey::ScanArgs),
    /// Look at this machine, its keys and their databases, and say what to do
    Doctor(doctor::DoctorArgs),
    /// Who did what to which key and database: the event log of the instance
    Events(events::EventsArgs),
    Run(run::RunArgs),
    Extension(extension::ExtensionArgs),
    Demo(demo::DemoArgs),
    /// Write man pages and shell completions
    #[command(hide = true)]
    Manual(manual::ManualArgs),
}

#[global_allocator]
static MEMORY: pellucid_sqlite::memory::Guarded = pellucid_sqlite::memory::Guarded;

fn main() -> ExitCode {
    pellucid_sqlite::memory::guard();
    if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        eprintln!("pellucid: warning: core dumps of this process stay on: {error}");
    }
    let cli = Cli::parse();
    let output = Output::new(cli.json, cli.quiet, cli.yes);
    let done = match &cli.command {
        Command::Encrypt(args) => convert::encrypt(args, &output),
        Command::Decrypt(args) => convert::decrypt(args, &output),
        Command::Status(args) => status::run(args, &output),
        Command::Check(args) => check::run(args, &output),
        Command::Init(args) => init::run(args, &output),
        Command::Cert(args) => cert::run(args, &output),
        Command::Key(args) => key::run(args, &output),
        Command::Protector(args) => protector::run(args, &output),
        Command::Rekey(args) => rekey::rekey(args, &output),
        Command::Rewrap(args) => rekey::rewrap(args, &output),
        Command::Scan(args) => rekey::run_scan(args, &output),
        Command::Doctor(_) => doctor::run(&output),
        Command::Events(args) => events::run(args, &output),
        Command::Run(args) => run::run(args),
        Command::Extension(_) => extension::run(&output),
        Command::Manual(args) => manual::run(args, &output),
        Command::Demo(args) => demo::run(args, &output),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            output.failure(&failure);
            ExitCode::from(failure.exit)
        }
    }
}
