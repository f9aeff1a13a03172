//! `check`, as DBCC CHECKDB: every page of the database, its WAL and a hot journal, then SQLite's own checks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use pellucid::shown::Shown;
use pellucid_backup::archive::{look_at, media_of};
use pellucid_backup::history::History;
use pellucid_backup::job::{compare, Compared, Comparing, Point};
use pellucid_engine::audit::{audit_with, Audit, Doing, Options};
use pellucid_engine::checked::{self, Begun};
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_files::paths::{beside, full_name};
use pellucid_host::DatabaseError;
use pellucid_keyring::{Action, CheckFound, Event};
use pellucid_vfs::seal_request::adopt;

use crate::container::{not_a_database, refuse_unexpected};
use crate::exit;
use crate::keys::OpenWith;
use crate::output::{bytes, seconds, word, Failure, Id, Output, Unit};

/// What `check` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid check app.db\n  pellucid check app.db --physical-only\n  \
                  pellucid check app.db --against full.bak log-1.bak log-2.bak"
)]
pub struct CheckArgs {
    /// Encrypted databases to check
    #[arg(required = true, value_name = "DB")]
    databases: Vec<PathBuf>,
    /// Authenticate the pages only, without SQLite's checks of structure and foreign keys
    #[arg(long)]
    physical_only: bool,
    /// Number of processor cores that authenticate pages
    #[arg(long, value_name = "N", default_value_t = CORES, value_parser = clap::value_parser!(u16).range(1..=64))]
    cores: u16,
    /// SQLite extension with the collations and functions that the schema needs
    #[arg(long, value_name = "FILE")]
    load: Vec<PathBuf>,
    /// A full backup and the log backups behind it, or the place of `archive` that
    /// has them: they say of each page whether it is the newest
    #[arg(long, value_name = "MEDIA", num_args = 1..)]
    against: Vec<PathBuf>,
    #[command(flatten)]
    with: OpenWith,
}

/// As many as leave the others of a small machine alone.
const CORES: u16 = 2;

/// At most so many damaged pages are listed one by one.
const LISTED: usize = 50;

/// Checks each database.
pub fn run(args: &CheckArgs, output: &Output) -> Result<ExitCode, Failure> {
    args.with.offer()?;
    if !args.against.is_empty() && args.databases.len() > 1 {
        let hint = "call it once for each database";
        return Err(Failure::new(
            Id::Misuse,
            "the backups of `--against` are of one database",
            hint,
        ));
    }
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    let mut worst = 0;
    for database in &args.databases {
        let status = match check(database, args, output) {
            Ok((found, compared)) if !found.is_clean() || is_older(&compared) => exit::DAMAGE,
            Ok((found, _)) if !found.unchecked.is_empty() => exit::ATTENTION,
            Ok(_) => tell_notices(output),
            // It says nothing of the others.
            Err(failure) => {
                let failure = failure.about(database);
                output.failure(&failure);
                failure.exit
            }
        };
        worst = std::cmp::max_by_key(worst, status, |status| gravity(*status));
    }
    Ok(ExitCode::from(worst))
}

/// What the opening told needs attention, although what is there is whole: another database than the expected one, commits of
/// a damaged log that are kept aside.
fn tell_notices(output: &Output) -> u8 {
    let told = pellucid_host::code::take_notices();
    told.iter().for_each(|told| output.warning(told));
    if told.is_empty() {
        0
    } else {
        exit::ATTENTION
    }
}

/// Damage is told whatever else there is; what was left out comes behind what failed.
fn gravity(status: u8) -> u8 {
    match status {
        0 => 0,
        exit::ATTENTION => 1,
        exit::DAMAGE => 3,
        _ => 2,
    }
}

/// What is found.
fn check(
    database: &Path,
    args: &CheckArgs,
    output: &Output,
) -> Result<(Audit, Option<Compared>), Failure> {
    let kind = inspect(database)?.kind;
    refuse_unexpected(database, &kind)?;
    // The instance's own files are under a key of the keyring. One that has none has nothing of them either.
    let _ = History::offer_key_of(database);
    authenticable(database, &kind)?;
    let begun = Begun::now(database);
    let started = Instant::now();
    let bar = output.progress("authenticating pages", Unit::Bytes);
    let options = Options { physical_only: args.physical_only, cores: usize::from(args.cores) };
    let mut last = Doing::Authenticating;
    let found = audit_with(database, options, &args.load, &mut |doing, done, all| {
        if doing != last {
            last = doing;
            bar.set_message(match doing {
                Doing::Authenticating => "authenticating pages",
                Doing::Structure => "checking the structure",
                Doing::ForeignKeys => "checking foreign keys",
            });
            bar.reset();
        }
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let found = match found.map_err(Failure::from) {
        Ok(found) => found,
        // It did not come to an end for the damage that it met.
        Err(failure) => {
            if failure.exit == exit::DAMAGE {
                let pages_only = args.physical_only;
                let found = CheckFound { findings: 1, pages_only, ..CheckFound::default() };
                let remembered = match checked::identity(&kind) {
                    Some(identity) => begun.remember(database, &identity, &found),
                    None => Ok(false),
                };
                told_if_not(&remembered, output);
            }
            return Err(failure);
        }
    };
    Event::new(Action::Checked, "database").of(full_name(database)).note_here();
    if let (Ok(found), Ok(path)) = (inspect(database), std::path::absolute(database)) {
        if let Kind::Sealed(sealed) = found.kind {
            adopt(&sealed.header, &path);
        }
    }
    let remembered =
        begun.remember(database, &found.file_id, &checked::found(&found, args.physical_only));
    let compared = match args.against.is_empty() || found.is_damaged() {
        true => None,
        false => Some(compare_pages(database, args, output)?),
    };
    show(database, (&found, compared.as_ref()), started, args, &remembered, output);
    Ok((found, compared))
}

/// Compares the pages with what the chain of log backups says of them.
fn compare_pages(database: &Path, args: &CheckArgs, output: &Output) -> Result<Compared, Failure> {
    let bar = output.progress("comparing pages", Unit::Pages);
    let timeout = Duration::from_secs(60);
    // A place that the database is archived to knows how far it had come, whatever else was put back.
    look_at(database, &args.against).map_err(DatabaseError::from)?;
    let media = media_of(&args.against, &Point::Last)?;
    let job = Comparing { database: database.to_owned(), media, timeout };
    let compared = compare(&job, &mut |done, all| {
        bar.set_length(u64::from(all));
        bar.set_position(u64::from(done));
    });
    bar.finish_and_clear();
    Ok(compared?)
}

fn is_older(compared: &Option<Compared>) -> bool {
    compared.as_ref().is_some_and(|compared| !compared.older.is_empty())
}

/// Whether the keyring remembers it, for `status` and `doctor`.
type Remembered = Result<bool, pellucid::Error>;

/// A keyring that cannot be written is no reason to fail: a group may only read the machine's.
fn told_if_not(remembered: &Remembered, output: &Output) {
    if let Err(error) = remembered {
        output.line(format!("  not remembered, so `status` will not know of it: {error}"));
    }
}

/// Only a container has something to authenticate; one that cannot be read is for the audit to name.
fn authenticable(database: &Path, kind: &Kind) -> Result<(), Failure> {
    match kind {
        Kind::Plain => Err(Failure::new(
            Id::Plain,
            "the database is not encrypted: it has no pages to authenticate",
            "`PRAGMA integrity_check` checks a plain database",
        )),
        Kind::Empty => Err(Failure::new(
            Id::Empty,
            "it is empty: there is nothing to authenticate",
            "look at the path",
        )),
        Kind::NotADatabase => Err(not_a_database(database)),
        _ => Ok(()),
    }
}

fn show(
    database: &Path,
    (found, compared): (&Audit, Option<&Compared>),
    started: Instant,
    args: &CheckArgs,
    remembered: &Remembered,
    output: &Output,
) {
    let verdict = if found.is_clean() { "clean" } else { "DAMAGED" };
    let read = found.pages * found.page_bytes;
    let rate = read as f64 / 1e6 / found.took.as_secs_f64().max(1e-9);
    let journal = match found.records {
        0 => String::new(),
        records => format!(" and {records} journal records"),
    };
    output.line(format!(
        "{}: {verdict}: {} pages and {} WAL frames{journal} authenticated ({} at {rate:.0} MB/s){} in {}",
        database.shown(),
        found.pages - found.damaged_pages.len() as u64,
        found.frames - of_these(found),
        bytes(read),
        match (args.physical_only, found.unchecked.is_empty()) {
            (true, _) => "",
            (false, true) => ", SQLite's checks run",
            (false, false) => ", SQLite's checks run in part",
        },
        seconds(started.elapsed()),
    ));
    let lines = lines(found);
    for line in lines.iter().take(LISTED) {
        output.line(format!("  {}", line.shown()));
    }
    if lines.len() > LISTED {
        output.line(format!("  and {} more; `--json` lists all", lines.len() - LISTED));
    }
    if found.is_damaged() {
        output.line(format!(
            "to do: stop what uses it, then restore a backup, or `pellucid salvage {} --to NEW` writes what is \
             whole into a new database (docs/guide/damage.md)",
            word(database)
        ));
    }
    if let Some(compared) = compared {
        show_compared(database, compared, output);
    }
    if found.journal_in_clear {
        output.line(format!("  {}", journal_in_clear(database)));
    }
    if !found.unchecked.is_empty() {
        output.line(format!(
            "to do: nothing is wrong with that, SQLite's checks only need what the application has: `pellucid check {} \
             --load FILE`",
            word(database)
        ));
    }
    told_if_not(remembered, output);
    facts(database, (found, compared), rate, started, matches!(remembered, Ok(true)), output);
}

fn show_compared(database: &Path, compared: &Compared, output: &Output) {
    let verdict = if compared.older.is_empty() { "each is the newest" } else { "PUT BACK" };
    output.line(format!(
        "{}: {verdict}: {} pages compared with the backups up to LSN {} and with the log behind them",
        database.shown(),
        compared.pages,
        compared.covered
    ));
    for line in compared.lines().take(LISTED) {
        output.line(format!("  {line}"));
    }
    if compared.older.len() > LISTED {
        output.line(format!("  and {} more; `--json` lists all", compared.older.len() - LISTED));
    }
    if !compared.older.is_empty() {
        output.line(
            "to do: somebody wrote an earlier state of these pages into the file: find out who can write it; `pellucid restore MEDIA.. --at \
             last --to NEW` makes the database that the commits have made",
        );
    }
}

/// Damaged frames among those that were to be authenticated.
fn of_these(found: &Audit) -> u64 {
    let counted = 1..=found.frames;
    found.damaged_frames.iter().filter(|(frame, _)| counted.contains(&u64::from(*frame))).count()
        as u64
}

/// What is told of a journal with pages in clear beside an encrypted database, and what to do.
pub fn journal_in_clear(database: &Path) -> String {
    let journal = beside(database, "-journal");
    format!(
        "`{}` has pages in clear, of before the encryption; nothing reads it: remove it while no program has the database open",
        journal.shown()
    )
}

fn lines(found: &Audit) -> Vec<String> {
    let mut lines = Vec::new();
    for page in &found.damaged_pages {
        let owner = page.owner.as_ref().map_or_else(
            || "nothing that could be reached".to_owned(),
            |owner| match &owner.rowids {
                Some(rowids) => format!("{}, {rowids}", owner.name),
                None => owner.name.clone(),
            },
        );
        lines.push(format!("{} (belongs to {owner})", page.cause));
    }
    lines.extend(found.damaged_frames.iter().map(|(_, cause)| cause.clone()));
    let records = found.damaged_records.iter();
    lines.extend(records.map(|cause| format!("{cause}; it was not played back")));
    lines.extend(found.integrity.iter().map(|line| format!("SQLite: {}", line.replace('\n', " "))));
    lines.extend(found.unchecked.iter().map(|told| format!("not checked by SQLite: {told}")));
    for row in &found.orphans {
        let rowid = row.rowid.map_or_else(String::new, |rowid| format!(" {rowid}"));
        lines.push(format!(
            "foreign key: row{rowid} of `{}` has no parent in `{}`",
            row.table, row.parent
        ));
    }
    lines
}

fn facts(
    database: &Path,
    (found, compared): (&Audit, Option<&Compared>),
    rate: f64,
    started: Instant,
    is_remembered: bool,
    output: &Output,
) {
    let pages: Vec<_> = found
        .damaged_pages
        .iter()
        .map(|page| {
            let owner = page.owner.as_ref();
            serde_json::json!({
                "page": page.page, "cause": page.cause, "owner": owner.map(|owner| &owner.name),
                "role": owner.map(|owner| owner.role), "rowids_above": owner.and_then(|owner| owner.after),
                "rowids_up_to": owner.and_then(|owner| owner.upto),
            })
        })
        .collect();
    let orphans: Vec<_> = found
        .orphans
        .iter()
        .map(
            |row| serde_json::json!({"table": row.table, "rowid": row.rowid, "parent": row.parent}),
        )
        .collect();
    output.facts(&serde_json::json!({
        "database": crate::output::name(database), "clean": found.is_clean() && compared.is_none_or(|compared| compared.older.is_empty()), "pages": found.pages,
        "frames": found.frames, "journal_records": found.records, "damaged_pages": pages,
        "damaged_frames": found.damaged_frames, "damaged_journal": found.damaged_records, "journal_in_clear": found.journal_in_clear,
        "integrity_check": found.integrity, "unchecked": found.unchecked, "foreign_keys": orphans, "mb_per_second": rate,
        "remembered": is_remembered, "older_pages": compared.map(|compared| &compared.older),
        "seconds": started.elapsed().as_secs_f64(),
    }));
}
