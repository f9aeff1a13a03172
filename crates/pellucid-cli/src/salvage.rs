//! `salvage`: what authenticates of a damaged database, in a new one.

mod layout;
mod lost_and_found;
mod report;
mod rows;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use pellucid::shown::Shown;
use pellucid::sqlite::{kinds, Map, Source};
use pellucid_engine::page_source::Pages;
use pellucid_keyring::{Action, Event};
use pellucid_vfs::lost_log;

use crate::container::{begin, sealed};
use crate::exit;
use crate::keys::OpenWith;
use crate::output::{Failure, Output, Unit};
use report::Report;
use rows::Copier;
use target::Target;

/// What `salvage` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid salvage app.db --to saved.db\n\nExit status 3 if anything is lost: the \
                  pages are listed, with table and rowids."
)]
pub struct SalvageArgs {
    /// Damaged encrypted database; it is not changed
    database: PathBuf,
    /// Database to create; no file of that name may exist
    #[arg(long, value_name = "NEW")]
    to: PathBuf,
    /// Take the commits in this rest of a damaged log (`app.db-wal-lost-1`), too: pages as they were at its end. What was
    /// committed to the same pages since is not in the new database
    #[arg(long, value_name = "FILE")]
    lost_log: Option<PathBuf>,
    /// Create a plain database instead of an encrypted one
    #[arg(long)]
    decrypted: bool,
    #[command(flatten)]
    with: OpenWith,
}

/// Salvages it.
pub fn run(args: &SalvageArgs, output: &Output) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    sealed(&args.database)?;
    Target::refuse_existing(&args.to)?;
    args.with.offer()?;
    begin()?;
    let about = |failure: Failure| failure.about(&args.database);
    let pages = Pages::open_with(&args.database, args.lost_log.as_deref());
    let pages = pages.map_err(|error| about(error.into()))?;
    if let (None, Some(log)) = (&args.lost_log, lost_log::kept(&args.database).first()) {
        output.warning(format!(
            "`{0}` has commits that the database does not: `--lost-log {0}` takes them, into another new database",
            log.shown()
        ));
    }

    let bar = output.progress("reading pages", Unit::Bytes);
    let page_bytes = pages.page_bytes() as u64;
    bar.set_length(u64::from(pages.pages()) * page_bytes);
    let kinds = kinds(&pages, &mut |number| {
        if number % 256 == 0 {
            bar.set_position(u64::from(number) * page_bytes);
        }
    });
    let mut map = Map::build(&pages, Some(&kinds));
    let damaged: Vec<u32> = pages.damage().into_keys().collect();
    map.place(&pages, &damaged);
    bar.finish_and_clear();

    let action = if args.decrypted { Action::Decrypted } else { Action::Salvaged };
    let name = args.database.display().to_string();
    let full = args.database.canonicalize().map_or(name, |path| path.display().to_string());
    Event::new(action, "database").of(full).record_here()?;
    let birth = match args.decrypted {
        true => None,
        false => Some(pages.birth().map_err(|error| about(error.into()))?),
    };
    if let Some((_, missing)) = &birth {
        for error in missing {
            output.warning(format!("{error}: `{}` is without it", args.to.shown()));
        }
    }
    let mut target = Target::create(&args.to, &args.database, birth.map(|(birth, _)| birth))?;
    let mut report = Report::default();
    // The file format's two version bytes (SQLite file format, 1.3.3).
    let wal = pages.page(1).is_some_and(|page| page[18] == 2);
    let saved = fill(&mut target, &pages, &mut map, &kinds, &mut report, output)
        .and_then(|()| target.finish(&args.to, wal))
        .map_err(|failure| failure.about(&args.to))?;
    report.lost_pages(&map, &pages.damage());
    report.remarks.extend(pages.remarks());
    report.taken = pages.taken();
    report.show(args, &saved, started.elapsed(), output);
    Ok(if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::from(exit::DAMAGE) })
}

fn fill(
    target: &mut Target,
    pages: &Pages,
    map: &mut Map,
    kinds: &[u8],
    report: &mut Report,
    output: &Output,
) -> Result<(), Failure> {
    target.prepare(pages, map)?;
    let layouts = target.make_tables(map, report)?;
    map.adopt(pages, kinds, &|object, by_rowid, values| {
        layout::is_possible(&layouts, object, by_rowid, values)
    });
    let bar = output.progress("writing rows", Unit::Pages);
    bar.set_length(map.content.iter().map(|pages| pages.len() as u64).sum());
    Copier::new(target, pages, map, &layouts, report).copy(&bar)?;
    bar.finish_and_clear();
    target.make_the_rest(map, report)
}
