//! `check`: every page of the database and its WAL, then SQLite's own check.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use pellucid_sqlite::audit::{audit, Audit};
use pellucid_sqlite::inspect::{inspect, Kind};
use pellucid_sqlite::seal_request::adopt;

use crate::convert::not_a_database;
use crate::exit;
use crate::keys::OpenWith;
use crate::output::{seconds, Failure, Output, Unit};

/// What `check` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid check app.db\n  pellucid check app.db --physical-only"
)]
pub struct CheckArgs {
    /// Encrypted databases
    #[arg(required = true, value_name = "DB")]
    databases: Vec<PathBuf>,
    /// Authenticate the pages only; leave SQLite's own check out
    #[arg(long)]
    physical_only: bool,
    #[command(flatten)]
    with: OpenWith,
}

/// At most so many damaged pages are listed one by one.
const LISTED: usize = 50;

/// Checks each database.
pub fn run(args: &CheckArgs, output: &Output) -> Result<ExitCode, Failure> {
    args.with.offer()?;
    pellucid_bundled::register()
        .map_err(|error| Failure::new(error, "the bundled SQLite could not start"))?;
    let mut clean = true;
    for database in &args.databases {
        inspect(database)
            .map_err(Failure::from)
            .and_then(|found| authenticable(&found.kind))
            .map_err(|failure| failure.about(database))?;
        let started = Instant::now();
        let bar = output.progress("authenticating pages", Unit::Pages);
        let found = audit(database, args.physical_only, &mut |done, all| {
            bar.set_length(all);
            bar.set_position(done);
        })
        .map_err(|error| Failure::from(error).about(database))?;
        bar.finish_and_clear();
        if let (Ok(found), Ok(path)) = (inspect(database), std::path::absolute(database)) {
            if let Kind::Sealed(sealed) = found.kind {
                adopt(&sealed.header, &path);
            }
        }
        clean &= found.is_clean();
        show(database, &found, started, args.physical_only, output);
    }
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::from(exit::DAMAGE) })
}

/// Only a container has something to authenticate; one that cannot be read is for the audit to name.
fn authenticable(kind: &Kind) -> Result<(), Failure> {
    match kind {
        Kind::Plain => Err(Failure::new(
            "not encrypted: there is nothing to authenticate",
            "`PRAGMA integrity_check` checks a plain database",
        )
        .kind("plain")),
        Kind::Empty => {
            Err(Failure::new("it is empty: there is nothing to authenticate", "look at the path")
                .kind("empty"))
        }
        Kind::NotADatabase => Err(not_a_database()),
        _ => Ok(()),
    }
}

fn show(
    database: &std::path::Path,
    found: &Audit,
    started: Instant,
    physical_only: bool,
    output: &Output,
) {
    let verdict = if found.is_clean() { "clean" } else { "DAMAGED" };
    output.line(format!(
        "{}: {verdict}: {} pages and {} WAL frames authenticated{} in {}",
        database.display(),
        found.pages - found.damaged_pages.len() as u64,
        found.frames - found.damaged_frames.len() as u64,
        if physical_only { "" } else { ", SQLite's check run" },
        seconds(started.elapsed()),
    ));
    for (_, cause, owner) in found.damaged_pages.iter().take(LISTED) {
        let owner = owner.as_deref().unwrap_or("nothing that could be reached");
        output.line(format!("  {cause} (belongs to {owner})"));
    }
    for (_, cause) in found.damaged_frames.iter().take(LISTED) {
        output.line(format!("  {cause}"));
    }
    for line in found.integrity.iter().take(LISTED) {
        output.line(format!("  SQLite: {line}"));
    }
    let listed = found.damaged_pages.len().max(found.damaged_frames.len());
    if listed > LISTED {
        output.line(format!("  and {} more; `--json` lists all", listed - LISTED));
    }
    let pages: Vec<_> = found
        .damaged_pages
        .iter()
        .map(|(page, cause, owner)| {
            serde_json::json!({"page": page, "cause": cause, "owner": owner})
        })
        .collect();
    output.facts(&serde_json::json!({
        "database": database, "clean": found.is_clean(), "pages": found.pages,
        "frames": found.frames, "damaged_pages": pages, "damaged_frames": found.damaged_frames,
        "integrity_check": found.integrity, "seconds": started.elapsed().as_secs_f64(),
    }));
}
