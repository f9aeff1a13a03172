//! `recovery`: the recovery model of a database, which decides whether its commits go into a chain of log backups.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use pellucid::header::{Header, RecoveryModel, Standing};
use pellucid::shown::Shown;
use pellucid_engine::log_chain::{chain_of, model_of, of_version_1, set_model};
use pellucid_files::paths::{beside, look_at_name};
use pellucid_vfs::{log_archive, witness};

use crate::container::{begin, sealed};
use crate::key_change::writable;
use crate::keys::OpenWith;
use crate::output::{bytes, name, Failure, Id, Output};

/// What `recovery` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid recovery app.db full\n  pellucid recovery app.db")]
pub struct RecoveryArgs {
    /// Encrypted database of format version 2; programs go on using it
    database: PathBuf,
    /// Its recovery model from now on [default: shows the one that it has]
    model: Option<Model>,
    #[command(flatten)]
    with: OpenWith,
}

/// The recovery models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// Each commit is kept until a log backup has it
    Full,
    /// The same; pellucid makes no difference
    BulkLogged,
    /// The log is used anew; there are no log backups, and a chain of them ends
    Simple,
}

/// Shows or sets the recovery model.
pub fn run(args: &RecoveryArgs, output: &Output) -> Result<ExitCode, Failure> {
    let database = &args.database;
    let failed = |failure: Failure| failure.about(database);
    let found = sealed(database)?.header;
    let Some(asked) = args.model else {
        tell(args, &found, None, output);
        return Ok(ExitCode::SUCCESS);
    };
    if found.second.is_none() {
        return Err(failed(Failure::from(of_version_1(database)).called(Id::NeedsVersion2)));
    }
    writable(database)?;
    args.with.offer()?;
    begin()?;
    let model = match asked {
        Model::Full => RecoveryModel::Full,
        Model::BulkLogged => RecoveryModel::BulkLogged,
        Model::Simple => RecoveryModel::Simple,
    };
    let changed = set_model(database, model).map_err(|error| failed(Failure::from(error)))?;
    let header = sealed(database)?.header;
    tell(args, &header, Some(changed), output);
    Ok(ExitCode::SUCCESS)
}

fn tell(args: &RecoveryArgs, header: &Header, changed: Option<bool>, output: &Output) {
    let (database, model) = (args.database.shown(), model_of(header));
    let has_chain = header.second.as_ref().is_some_and(|second| second.has_chain);
    let already = if changed == Some(false) { " already" } else { "" };
    output.line(format!("{database}: recovery model {}{already}", model.name()));
    if model != RecoveryModel::Simple && !has_chain {
        output.line("A full backup begins its chain of log backups.");
    }
    output.facts(&serde_json::json!({
        "database": name(&args.database), "recovery_model": model.name(), "chain": has_chain,
        "changed": changed.unwrap_or(false),
    }));
}

/// A log that has grown so far is not begun anew: twice the size up to which it is the active log by default.
const LARGE_LOG_BYTES: u64 = 128 << 20;

/// What is wrong with the chain of log backups of a database, and what to do. It is seen without a key.
pub fn trouble(found: &Path, header: &Header) -> Option<(String, &'static str)> {
    if header.standing() == Standing::Restoring {
        let told = format!("`{}`: it is restoring: nobody reads or writes it", found.shown());
        return Some((told, "finish the restore, or `pellucid restore --online --to DB`"));
    }
    chain_of(header)?;
    let (shown, archive) = (found.shown(), log_archive::path_of(found));
    let unreadable = |why: &dyn std::fmt::Display| {
        let told = format!(
            "`{shown}`: its chain of log backups is broken: `{}` cannot be read: {why}",
            archive.shown()
        );
        let todo = "put the folder back; else `pellucid recovery DB simple`, then `full`, and a full backup begin another chain";
        Some((told, todo))
    };
    if let Err(error) = look_at_name(&archive.join("state")) {
        return unreadable(&error);
    }
    let look = log_archive::Archive::open(found).and_then(|archive| archive.look());
    if matches!(look, Ok(None)) {
        return unreadable(&"its `state` is damaged");
    }
    if let Ok(Some(state)) = look {
        if let Ok(Some(witness)) = witness::ahead(found, &state) {
            let told = format!(
                "`{shown}`: `{}`, and perhaps the database with it, was put back: the keyring knows of a later backup, with \
                 commits up to LSN {}",
                archive.shown(),
                witness.in_backups()
            );
            let todo = "restore from the backups what is missing; a full backup accepts it as it is, and begins the chain anew";
            return Some((told, todo));
        }
        if !state.broken_at.is_none() {
            let told = format!(
                "`{shown}`: its chain of log backups is broken: commits behind LSN {} are missing",
                state.broken_at
            );
            return Some((told, "a full backup lets it go on"));
        }
    }
    let log = beside(found, "-wal");
    let size = look_at_name(&log).map_or(0, |log| log.len());
    (size > LARGE_LOG_BYTES).then(|| {
        let told = format!(
            "`{shown}`: its log has {} and is not begun anew, because `{}` cannot have its commits",
            bytes(size),
            archive.shown()
        );
        (told, "see what keeps it from being written: room, rights, the disk; `pellucid backup DB --log` says it")
    })
}
