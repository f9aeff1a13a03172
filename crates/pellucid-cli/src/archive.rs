//! `archive`: ships the commits of databases to a directory or a store as they come.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use pellucid::shown::Shown;
use pellucid_backup::archive::{run as archive, Happened, News, Options, Place, Shipped, Shipper};
use pellucid_backup::job::JobError;
use pellucid_host::DatabaseError;
use serde_json::{json, Value};

use crate::exit;
use crate::interrupted;
use crate::keys::OpenWith;
use crate::output::{name, seconds, Failure, Id, Output};

/// What `archive` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid archive app.db --to s3://bucket/app\n  pellucid archive \
                  /srv/*.db --to /backup --full-every 1d --keep 30d\n  pellucid archive app.db \
                  --to /backup --once\n  pellucid restore /backup --at last --to new.db"
)]
pub struct ArchiveArgs {
    /// Databases of the recovery model FULL; programs go on using them
    #[arg(required = true, value_name = "DB")]
    database: Vec<PathBuf>,
    /// Directory, or URL in a store (`s3://bucket/name`), that gets a folder for each database
    #[arg(long, value_name = "PLACE")]
    to: PathBuf,
    /// How long a commit waits for others that go with it: `1s`, `500ms`, `5m`
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    every: Duration,
    /// Ship what there is and end, for a timer
    #[arg(long)]
    once: bool,
    /// How often small log sets become one; with --once: now, if it is given [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    merge_every: Option<Duration>,
    /// Make a full backup there, too: the first one, and another when the last one is so old
    #[arg(long, value_name = "TIME", value_parser = duration)]
    full_every: Option<Duration>,
    /// Remove what no point within so long before now needs; it counts on full backups of --full-every [default: keeps all]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    keep: Option<Duration>,
    #[command(flatten)]
    with: OpenWith,
    /// Seconds to wait for locks of other connections
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    timeout: u64,
}

/// How often small sets are merged.
const MERGE_EVERY: Duration = Duration::from_secs(3600);

/// A length of time: a number and its unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("a number and `ms`, `s`, `m`, `h` or `d`: `1s`, `30d`".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| format!("`{text}` is no length of time"))?;
    match number.checked_mul(millis).filter(|millis| (1..=MOST_MILLIS).contains(millis)) {
        Some(millis) => Ok(Duration::from_millis(millis)),
        None => Err(format!("`{text}` is not between 1 ms and 100 years")),
    }
}

/// A hundred years.
const MOST_MILLIS: u64 = 36_525 * 86_400_000;

/// Archives databases.
pub fn run(args: &ArchiveArgs, output: &Output) -> Result<ExitCode, Failure> {
    args.with.offer()?;
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    let place = Place::of(&args.to).map_err(|error| Failure::from(error).about(&args.to))?;
    let options = Options {
        every: args.every,
        once: args.once,
        merge: match args.once {
            true => args.merge_every,
            false => Some(args.merge_every.unwrap_or(MERGE_EVERY)),
        },
        keep: args.keep,
        full: args.full_every,
        timeout: Duration::from_secs(args.timeout),
    };
    let mut shippers: Vec<Shipper> = Vec::new();
    for database in &args.database {
        let shipper = Shipper::new(database, place.clone(), options.clone())
            .map_err(|error| refused(error, database))?;
        if !shippers.iter().any(|other| other.database == shipper.database) {
            shippers.push(shipper);
        }
    }
    for shipper in shippers.iter().filter(|_| !args.once) {
        output.line(format!(
            "{}: each commit goes to {} within {}.",
            shipper.database.shown(),
            place.path_of(shipper.folder()).shown(),
            seconds(args.every)
        ));
    }
    interrupted::answer_with(format_args!(
        "what is not in {} yet is kept beside the databases, and goes with the next run",
        args.to.shown()
    ));
    let mut facts: Vec<Value> = Vec::new();
    let mut first_failure = None;
    let well = archive(shippers, &options, &mut |happened| {
        let Happened { database, news } = happened;
        let shown = database.shown().to_string();
        match news {
            News::Shipped(shipped) => {
                output.line(format!("{shown}: {}", shipped_in_words(&shipped)));
                facts.push(json!({
                    "database": name(&database), "sets": shipped.sets, "commits": shipped.commits,
                    "last_lsn": shipped.last.map(|lsn| lsn.to_string()), "error": Value::Null,
                }));
            }
            News::Failed { error, again } => {
                let failure = refused(error, &database);
                facts.push(json!({
                    "database": name(&database), "sets": 0, "commits": 0, "last_lsn": Value::Null,
                    "error": failure.message,
                }));
                match again {
                    Some(again) => output.warning(format!(
                        "{}; nothing is lost, and the next try is in {}",
                        failure.message,
                        seconds(again)
                    )),
                    None if first_failure.is_none() => first_failure = Some(failure),
                    None => output.failure(&failure),
                }
            }
            News::GoesOn { after } => {
                output.warning(format!("`{shown}`: it goes on, after {}", seconds(after)));
            }
            News::Gap { from, to } => output.warning(format!(
                "`{shown}`: commits behind LSN {from} up to LSN {to} are not in {}: another log backup has them, and a restore \
                 needs that, too; if none was made, sets were taken away there",
                args.to.shown()
            )),
            News::Full { path } => output.line(format!("{shown}: full backup {}", path.shown())),
            News::Merged { path, sets } => {
                output.line(format!("{shown}: {sets} log sets became {}", path.shown()));
            }
            News::Removed { sets } => output.line(format!("{shown}: {sets} sets removed")),
            News::Left { why } | News::Unrecorded { why } => {
                output.warning(format!("`{shown}`: {why}"));
            }
        }
    });
    if args.once {
        output.facts(&json!({ "to": name(&args.to), "databases": facts }));
    }
    match first_failure {
        Some(failure) if args.database.len() == 1 => Err(failure),
        Some(failure) => {
            output.failure(&failure);
            Ok(ExitCode::from(exit::FAILED))
        }
        None if well => Ok(ExitCode::SUCCESS),
        None => Ok(ExitCode::from(exit::FAILED)),
    }
}

fn shipped_in_words(shipped: &Shipped) -> String {
    let last = shipped.last.map_or(String::new(), |lsn| format!(", up to LSN {lsn}"));
    match (shipped.sets, shipped.commits) {
        (0, _) => format!("nothing new{last}"),
        (_, 1) => format!("1 commit shipped{last}"),
        (_, commits) => format!("{commits} commits shipped{last}"),
    }
}

fn refused(error: JobError, database: &std::path::Path) -> Failure {
    let names_a_file = error.names_a_file();
    let is_chain = crate::backup::is_of_chain(&error);
    let failure = Failure::from(DatabaseError::from(error));
    let failure = if is_chain { crate::backup::broken_chain(failure) } else { failure };
    match names_a_file {
        true => failure,
        false => failure.about(database),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_a_unit() {
        for (text, millis) in
            [("1s", 1000), ("500ms", 500), ("5m", 300_000), ("30d", 2_592_000_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "1", "s", "0s", "-1s", "1 s", "1.5s", "1w", "99999999999999999999d", "40000d"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
