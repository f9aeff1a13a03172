//! `protector`: what opens a database; several at once.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pellucid::facts::KeyFacts;
use pellucid_engine::protectors;
use pellucid_keyring::Keyring;
use pellucid_vfs::seal_request::Protection;

use crate::container::{begin, sealed};
use crate::key_change::{locked, ready_for_protector};
use crate::keys::{certificate, only_new, OpenWith};
use crate::output::{table, Failure, Output};

/// What `protector` does.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid protector list app.db\n  pellucid protector add app.db \
                  --new-passphrase-file -\n  pellucid protector drop app.db --number 2"
)]
pub struct ProtectorArgs {
    #[command(subcommand)]
    command: ProtectorCommand,
}

#[derive(Debug, Subcommand)]
enum ProtectorCommand {
    /// List the protectors of a database; needs no key
    List(DatabaseArgs),
    /// Add a protector: one more certificate, key file or passphrase opens the database
    Add(AddArgs),
    /// Drop a protector; the last one cannot be dropped
    Drop(DropArgs),
}

#[derive(Debug, Args)]
struct DatabaseArgs {
    /// Encrypted database
    database: PathBuf,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Encrypted database
    database: PathBuf,
    #[command(flatten)]
    new: NewProtector,
    #[command(flatten)]
    with: OpenWith,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct NewProtector {
    /// Certificate of the keyring to add
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,
    /// Certificate of the keyring that opens the database only with `--online`; its private key may be elsewhere
    #[arg(long, value_name = "NAME")]
    recovery_certificate: Option<String>,
    /// File with the raw key to add: 32 bytes or 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
    /// File with the passphrase to add; its last line end is not part of it. `-` reads standard input, or asks at a terminal
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct DropArgs {
    /// Encrypted database
    database: PathBuf,
    /// Number of the protector in `protector list`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    number: u16,
    #[command(flatten)]
    with: OpenWith,
}

/// Does it.
pub fn run(args: &ProtectorArgs, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        ProtectorCommand::List(args) => list(&args.database, output)?,
        ProtectorCommand::Add(args) => {
            ready_for_protector(&args.database)?;
            args.with.offer()?;
            let protection = args.new.protection()?;
            begin()?;
            protectors::add(&args.database, &protection)
                .map_err(|error| locked(error.into(), &args.database).about(&args.database))?;
            list(&args.database, output)?;
        }
        ProtectorCommand::Drop(args) => {
            ready_for_protector(&args.database)?;
            args.with.offer()?;
            begin()?;
            protectors::drop(&args.database, usize::from(args.number) - 1)
                .map_err(|error| locked(error.into(), &args.database).about(&args.database))?;
            output.warning(
                "copies and backups made before still open with what was dropped: their data \
                 encryption key is the same",
            );
            list(&args.database, output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl NewProtector {
    fn protection(&self) -> Result<Protection, Failure> {
        if let Some(name) = &self.certificate {
            return certificate(name);
        }
        if let Some(name) = &self.recovery_certificate {
            let stored = Keyring::open(&Keyring::locate()?)?.stored_certificate(name)?;
            return Ok(Protection::Recovery(Box::new(stored.public().clone())));
        }
        only_new(self.new_key_file.as_deref(), self.new_passphrase_file.as_deref())
    }
}

fn list(database: &Path, output: &Output) -> Result<(), Failure> {
    let found = sealed(database)?;
    let mut table = table(["number", "opened by"]);
    let mut facts = Vec::new();
    for (index, opener) in KeyFacts::of(&found.header, None).openers.iter().enumerate() {
        let told = opener.describe();
        table.add_row([(index + 1).to_string(), told.clone()]);
        facts.push(serde_json::json!({"number": index + 1, "opened_by": told}));
    }
    output.line(table);
    output.facts(
        &serde_json::json!({"database": crate::output::name(database), "protectors": facts}),
    );
    Ok(())
}
