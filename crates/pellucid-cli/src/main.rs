//! `pellucid`: encrypts SQLite databases, runs programs over them, checks them.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]
// Printing macros panic where nobody reads.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod accept;
mod agent;
mod archive;
mod archived;
mod backup;
mod broker;
mod cert;
mod check;
mod config_file;
mod container;
mod convert;
mod demo;
mod doctor;
mod event_log;
mod events;
mod extension;
mod help;
mod history;
mod index;
mod init;
mod instance;
mod interrupted;
mod key;
mod key_change;
mod key_place;
mod keys;
mod known;
mod lab;
mod manual;
mod named;
mod output;
mod owner;
mod pinned;
mod plugin;
mod policy;
mod protector;
mod recovery;
mod rekey;
mod run;
mod salvage;
mod scan;
mod seems;
mod sql;
mod standby;
mod status;
mod upgrade;

use std::process::ExitCode;

use pellucid::shown::Shown;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use rustix::process::DumpableBehavior;

use output::{Colour, Output};

/// Exit statuses; `run` returns the program's own.
mod exit {
    /// It could not be done.
    pub const FAILED: u8 = 1;
    /// It was asked for in a way that cannot be.
    pub const USAGE: u8 = 2;
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
                  --check, doctor, events); run returns the program's own."
)]
struct Cli {
    /// Write the facts as JSON to standard output
    #[arg(long, global = true, help_heading = help::GLOBAL)]
    json: bool,
    /// Print errors and warnings only
    #[arg(long, short, global = true, help_heading = help::GLOBAL)]
    quiet: bool,
    /// Answer every question with yes, without asking
    #[arg(long, short, global = true, help_heading = help::GLOBAL)]
    yes: bool,
    /// Open also what asks for a passphrase at a high cost, from files that you trust
    #[arg(long, global = true, help_heading = help::GLOBAL)]
    allow_cost: bool,
    /// When to show colours [default: auto]
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_default_value = true
    )]
    color: Colour,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Encrypt plain databases in place
    Encrypt(convert::EncryptArgs),
    /// Decrypt databases in place: they become plain SQLite files
    Decrypt(convert::DecryptArgs),
    /// Show databases, their keys and warnings; warnings first
    Status(status::StatusArgs),
    /// Authenticate every page, then check structure and foreign keys
    Check(check::CheckArgs),
    /// Back up a database in use: compressed, encrypted, striped, mirrored
    Backup(Box<backup::BackupArgs>),
    /// Ship commits to a directory or a store as they come
    Archive(archive::ArchiveArgs),
    /// Keep a copy that programs read up to date with what `archive` ships
    Standby(standby::StandbyArgs),
    /// Restore a database from a backup
    Restore(backup::RestoreArgs),
    /// Verify that backups are intact; a key is not needed, and helps
    Verify(backup::VerifyArgs),
    /// List the backup sets on media
    Header(backup::HeaderArgs),
    /// List the files of the database in a backup set
    Files(backup::FilesArgs),
    /// Show the name of media and the media set that they belong to
    Label(backup::LabelArgs),
    /// List backups and restores; rebuild the list; prune old backups
    History(history::HistoryArgs),
    /// Copy the intact content of a damaged database into a new one
    Salvage(salvage::SalvageArgs),
    /// Create an instance: the directory with your keys
    Init(init::InitArgs),
    /// Certificates: create, list, show, export, import, drop
    Cert(cert::CertArgs),
    /// Master keys: status, backup, restore, regenerate, bind, and more
    Key(key::KeyArgs),
    /// Programs that ask for keys elsewhere (tokens, TPMs): list, test
    Plugin(plugin::PluginArgs),
    /// Open databases for accounts that may not read the keyring
    Broker(broker::BrokerArgs),
    /// Move the keys of an instance to another machine: export, import
    Instance(instance::InstanceArgs),
    /// Protectors (the keys that open a database): list, add, drop
    Protector(protector::ProtectorArgs),
    /// Replace the data encryption key, while in use
    #[command(visible_alias = "rotate")]
    Rekey(rekey::RekeyArgs),
    /// Change certificate, key file or passphrase; no page is rewritten
    Rewrap(rekey::RewrapArgs),
    /// Change the format version of a database, and back
    Upgrade(upgrade::UpgradeArgs),
    /// Have the index of the write-ahead log in memory, or in its file
    Index(index::IndexArgs),
    /// Show or set the recovery model: with FULL, a chain of log backups
    Recovery(recovery::RecoveryArgs),
    /// The scan that rewrites pages after a rekey: suspend, resume, verify
    Scan(scan::ScanArgs),
    /// Take a file as it is, although the keyring expects another one
    Accept(accept::AcceptArgs),
    /// Rules for ages of keys and backups; `run` does what is due
    Policy(policy::PolicyArgs),
    /// Run SQL Server's statements, as sqlcmd does, or at a prompt
    Sql(Box<sql::SqlArgs>),
    /// Run the jobs of `msdb` that are due, under their owner's account
    Agent(agent::AgentArgs),
    /// Examine machine, keys and databases, and say what to do
    Doctor(doctor::DoctorArgs),
    /// Show the event log: who did what to which key and database
    Events(events::EventsArgs),
    Run(run::RunArgs),
    Extension(extension::ExtensionArgs),
    Demo(demo::DemoArgs),
    Lab(lab::LabArgs),
    /// Write man pages and shell completions
    #[command(hide = true)]
    Manual(manual::ManualArgs),
}

impl Command {
    /// Whether no open of a database by this process is news for the event log: the command records itself what it does
    /// with a database, or opens the history alone, which is the instance's own.
    fn opens_nothing_new(&self) -> bool {
        use Command::*;
        matches!(
            self,
            Encrypt(_)
                | Decrypt(_)
                | Check(_)
                | Backup(_)
                | Archive(_)
                | Standby(_)
                | Restore(_)
                | Verify(_)
                | Salvage(_)
                | Protector(_)
                | Rekey(_)
                | Rewrap(_)
                | Upgrade(_)
                | Index(_)
                | Recovery(_)
                | Header(_)
                | Files(_)
                | Label(_)
                | History(_)
        )
    }
}

#[global_allocator]
static MEMORY: pellucid_vfs::memory::Guarded = pellucid_vfs::memory::Guarded;

fn main() -> ExitCode {
    pellucid::certificate::enable_hybrid();
    if let Some(arguments) = lab::arguments(std::env::args_os().skip(1)) {
        return failed(
            &Output::new(false, false, false, Colour::Auto),
            &lab::hand_over(&arguments),
        );
    }
    pellucid_vfs::memory::guard();
    let no_dumps = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let arguments = sql::as_sqlcmd_reads(std::env::args_os());
    let matches = match help::in_groups(Cli::command()).try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(answer) => return say(&answer),
    };
    if keys::inputs(&matches) > 1 {
        let text = "`-` is named more than once, and standard input gives one thing only";
        Cli::command().error(ErrorKind::ArgumentConflict, text).exit();
    }
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // The first and only one.
    #[cfg(feature = "objects")]
    let _ = pellucid_backup::job::use_store(Box::new(pellucid_backup::objects::ObjectStores));
    if cli.allow_cost {
        pellucid_keyring::allow_cost();
    }
    let output = Output::new(cli.json, cli.quiet, cli.yes, cli.color);
    let output = match &cli.command {
        Command::Backup(args) if args.is_piped() => output.beside(),
        _ => output,
    };
    if let Err(error) = no_dumps {
        output.warning(format_args!("core dumps of this process stay on: {error}"));
    }
    if let Some((instead, refused)) = pellucid_keyring::Keyring::passed_over() {
        output.warning(format_args!(
            "the keyring in `{}` is used, not the one that `HOME` or `XDG_DATA_HOME` leads to: {refused}; use `sudo -H` \
             or `PELLUCID_HOME` to name another one",
            instead.shown()
        ));
    }
    if cli.command.opens_nothing_new() {
        pellucid_vfs::seal_request::leave_opens_unnoted();
    }
    let done = match &cli.command {
        Command::Encrypt(args) => convert::encrypt(args, &output),
        Command::Decrypt(args) => convert::decrypt(args, &output),
        Command::Status(args) => status::run(args, &output),
        Command::Check(args) => check::run(args, &output),
        Command::Backup(args) => backup::back_up(args, &output),
        Command::Archive(args) => archive::run(args, &output),
        Command::Standby(args) => standby::run(args, &output),
        Command::Restore(args) => backup::restore(args, &output),
        Command::Verify(args) => backup::verify(args, &output),
        Command::Header(args) => backup::header(args, &output),
        Command::Files(args) => backup::files(args, &output),
        Command::Label(args) => backup::label(args, &output),
        Command::History(args) => history::run(args, &output),
        Command::Salvage(args) => salvage::run(args, &output),
        Command::Init(args) => init::run(args, &output),
        Command::Cert(args) => cert::run(args, &output),
        Command::Key(args) => key::run(args, &output),
        Command::Plugin(args) => plugin::run(args, &output),
        Command::Broker(args) => broker::run(args, &output),
        Command::Instance(args) => instance::run(args, &output),
        Command::Protector(args) => protector::run(args, &output),
        Command::Rekey(args) => rekey::rekey(args, &output),
        Command::Rewrap(args) => rekey::rewrap(args, &output),
        Command::Upgrade(args) => upgrade::run(args, &output),
        Command::Index(args) => index::run(args, &output),
        Command::Recovery(args) => recovery::run(args, &output),
        Command::Scan(args) => scan::run(args, &output),
        Command::Accept(args) => accept::run(args, &output),
        Command::Policy(args) => policy::run(args, &output),
        Command::Sql(args) => sql::large_stack::run(args, &output),
        Command::Agent(args) => agent::run(args, &output),
        Command::Doctor(args) => doctor::run(args, &output),
        Command::Events(args) => events::run(args, &output),
        Command::Run(args) => run::run(args),
        Command::Extension(_) => extension::run(&output),
        Command::Manual(args) => manual::run(args, &output),
        Command::Demo(args) => demo::run(args, &output),
        Command::Lab(args) => Err(lab::refuse(args)),
    };
    for told in pellucid_host::code::take_notices() {
        output.warning(told);
    }
    match (done, output.written()) {
        (Ok(code), Ok(())) => code,
        (Ok(code), Err(failure)) => {
            let unwritten = failed(&output, &failure);
            // What was found weighs more.
            if code == ExitCode::SUCCESS {
                unwritten
            } else {
                code
            }
        }
        (Err(failure), _) => failed(&output, &failure),
    }
}

/// Prints what the reading of the arguments ends with: a help text, the version, or what is wrong with them.
fn say(answer: &clap::Error) -> ExitCode {
    let code = ExitCode::from(answer.exit_code().try_into().unwrap_or(exit::USAGE));
    let is_lost = !answer.use_stderr() && pellucid_vfs::streams::was_output_closed();
    let written = match is_lost {
        true => Err(rustix::io::Errno::BADF.into()),
        false => answer.print().and_then(|()| std::io::Write::flush(&mut std::io::stdout())),
    };
    match written {
        Err(error) if !answer.use_stderr() => {
            failed(&Output::new(false, false, false, Colour::Auto), &output::unwritten(&error))
        }
        _ => code,
    }
}

fn failed(output: &Output, failure: &output::Failure) -> ExitCode {
    output.failure(failure);
    ExitCode::from(failure.exit)
}
