//! `upgrade`: another format version for a database, and back.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use pellucid::header::NEWEST_VERSION;
use pellucid::shown::Shown;
use pellucid_engine::version::{self, Refused, Unchanged};
use pellucid_vfs::lost_log;

use crate::container::{begin, sealed};
use crate::key_change::writable;
use crate::keys::OpenWith;
use crate::output::{name, word, Failure, Id, Output};

/// What `upgrade` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid upgrade app.db\n  pellucid upgrade --to 1 app.db")]
pub struct UpgradeArgs {
    /// Encrypted database, which no other program has open
    database: PathBuf,
    /// Format version that it gets; 1 goes back
    #[arg(long, value_name = "VERSION", default_value_t = NEWEST_VERSION, value_parser = clap::value_parser!(u32).range(1..=i64::from(NEWEST_VERSION)))]
    to: u32,
    /// Seconds to wait for other connections to close
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    #[command(flatten)]
    with: OpenWith,
}

/// Gives the database the version that is asked for.
pub fn run(args: &UpgradeArgs, output: &Output) -> Result<ExitCode, Failure> {
    let database = &args.database;
    let failed = |failure: Failure| failure.about(database);
    let found = sealed(database)?.header;
    if found.version() == args.to {
        tell(database, args.to, args.to, output);
        return Ok(ExitCode::SUCCESS);
    }
    writable(database)?;
    let told = |unchanged| failed(told(unchanged, database));
    version::check(database, &found, args.to).map_err(told)?;
    args.with.offer()?;
    begin()?;
    let patience = Duration::from_secs(args.timeout);
    version::change(database, args.to, patience).map_err(told)?;
    tell(database, found.version(), args.to, output);
    Ok(ExitCode::SUCCESS)
}

fn tell(database: &Path, from: u32, to: u32, output: &Output) {
    output.line(match from == to {
        true => format!("{}: is of format version {to} already", database.shown()),
        false => format!("{}: format version {to}, {from} before", database.shown()),
    });
    output.facts(
        &serde_json::json!({"database": name(database), "format_version": to, "before": from}),
    );
}

/// What is in the way, and what to do about it.
fn told(unchanged: Unchanged, database: &Path) -> Failure {
    let refused = match unchanged {
        Unchanged::Failed(error) => return Failure::from(error),
        Unchanged::Refused(refused) => refused,
    };
    let (id, hint) = match &refused {
        Refused::Scan => (
            Id::ScanUnfinished,
            format!(
                "`pellucid scan status {0}` shows how far it is; `pellucid scan resume {0}` ends it",
                word(database)
            ),
        ),
        Refused::LostLog(_) => (
            Id::LostLog,
            format!("{}; then remove that one, or move it away", lost_log::TO_DO),
        ),
        Refused::Archive(_) => (
            Id::LogArchive,
            "a newer version of pellucid made it, or another program: move it away".to_owned(),
        ),
        Refused::HotJournal(_) => (
            Id::HotJournal,
            format!("`pellucid check {}` says what is wrong with it", word(database)),
        ),
        Refused::Uses(_) => (
            Id::NeedsNewerFormat,
            "switch that off first, or keep the version that the database has".to_owned(),
        ),
    };
    Failure::new(id, &refused, hint)
}
