//! `index`: where a database has its wal-index, in the file `-shm` or in the machine's memory.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pellucid::shown::Shown;
use pellucid_engine::index_place::{change, is_in_memory, of_version_1};
use pellucid_host::DatabaseError;

use crate::container::{begin, sealed};
use crate::key_change::writable;
use crate::keys::OpenWith;
use crate::output::{name, Failure, Id, Output};

/// What `index` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid index app.db memory\n  pellucid index app.db file")]
pub struct IndexArgs {
    /// Encrypted database of format version 2, which no other program has open
    database: PathBuf,
    /// Where the wal-index is from now on: `memory`, in `/dev/shm`, or `file`, beside the database
    place: Place,
    /// Seconds to wait for other connections to close
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    #[command(flatten)]
    with: OpenWith,
}

/// Where a wal-index can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Place {
    Memory,
    File,
}

impl Place {
    /// Where a database whose header says so has it.
    pub fn of(header: &pellucid::header::Header) -> Self {
        match is_in_memory(header) {
            true => Place::Memory,
            false => Place::File,
        }
    }

    /// The word of the argument.
    pub fn word(self) -> &'static str {
        match self {
            Place::Memory => "memory",
            Place::File => "file",
        }
    }
}

/// Moves the wal-index.
pub fn run(args: &IndexArgs, output: &Output) -> Result<ExitCode, Failure> {
    let database = &args.database;
    let failed = |failure: Failure| failure.about(database);
    let found = sealed(database)?.header;
    if found.second.is_none() {
        return Err(failed(Failure::from(of_version_1(database)).called(Id::NeedsVersion2)));
    }
    writable(database)?;
    args.with.offer()?;
    begin()?;
    let patience = Duration::from_secs(args.timeout);
    let in_memory = args.place == Place::Memory;
    let moved = change(database, in_memory, patience).map_err(|error| failed(told(error)))?;
    let place = args.place.word();
    output.line(match moved {
        true => format!("{}: wal-index in {place}, from the next opening on", database.shown()),
        false => format!("{}: has its wal-index in {place} already", database.shown()),
    });
    output.facts(&serde_json::json!({"database": name(database), "index": place, "moved": moved}));
    Ok(ExitCode::SUCCESS)
}

fn told(error: DatabaseError) -> Failure {
    match error {
        error @ DatabaseError::InUse { .. } => {
            let mut failure = Failure::from(error);
            failure.hint =
                Some("close every other connection, or wait longer with `--timeout`".to_owned());
            failure
        }
        error => Failure::from(error),
    }
}
