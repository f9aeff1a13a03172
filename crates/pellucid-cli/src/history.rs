//! `history`: what the instance knows of backups and restores.

mod points;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pellucid::media::{Description, MediaHeader};
use pellucid::shown::Shown;
use pellucid_backup::history::{
    files_of, is_lost, look_at, History, KnownRestore, KnownSet, Link, Plan, Pruning, SetRecord,
};
use pellucid_backup::job::{open_family, refuse_looked_at};
use pellucid_backup::restore::{same_manifest, verify_checksums, Family, FamilySet, Media};
use pellucid_host::DatabaseError;
use pellucid_keyring::Keyring;
use pellucid_vfs::seal_request::{Credentials, Request};

use crate::backup::{about_media, rate};
use crate::exit;
use crate::keys::OpenWith;
use crate::output::{bytes, table, Failure, Id, Output, Unit};

/// What `history` takes.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  pellucid history --database app\n  pellucid history prune --older-than 90 --files"
)]
pub struct HistoryArgs {
    #[command(subcommand)]
    command: Option<HistoryCommand>,
    /// Show only this database, by its name in the backups
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// List restores instead of backups
    #[arg(long)]
    restores: bool,
    /// Show to which points in time `restore --at` leads: out of the known backups of a database, or of these media
    #[arg(long, num_args = 1.., value_name = "DB|MEDIA", conflicts_with_all = ["database", "restores"])]
    points: Vec<PathBuf>,
    /// Draw the backups of a database along time, or those of media, directories and stores: what each has, gaps, forks
    #[arg(long, num_args = 1.., value_name = "DB|MEDIA", conflicts_with_all = ["database", "restores", "points"])]
    timeline: Vec<PathBuf>,
    /// With --timeline: write it as a page, too, which needs nothing else
    #[arg(long, value_name = "FILE", requires = "timeline")]
    html: Option<PathBuf>,
    /// With --timeline: mark the sets that `archive --keep` of so long removes: `30d`
    #[arg(long, value_name = "TIME", requires = "timeline", value_parser = crate::archive::duration)]
    keep: Option<std::time::Duration>,
    #[command(flatten)]
    with: OpenWith,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    /// Add the backup sets on media to the history; it may have lost them or never known them
    Rebuild(RebuildArgs),
    /// Remove old backups from the history; without --apply only say which
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
struct RebuildArgs {
    /// Files or object URLs of backups, of any number of media sets; `-` is standard input
    #[arg(required = true, value_name = "MEDIA")]
    media: Vec<PathBuf>,
    #[command(flatten)]
    with: OpenWith,
}

#[derive(Debug, Args)]
struct PruneArgs {
    /// Age in days: removes the backups that were finished so many days ago or earlier, chain by chain
    #[arg(long, value_name = "DAYS")]
    older_than: u64,
    /// Also remove the files of media on which no backup is left. A backup whose files stay keeps its place in the history.
    /// Exit status 1 if a file cannot be removed
    #[arg(long)]
    files: bool,
    /// With --files: take a file that is missing from an existing directory as removed. Without this option its backup stays
    /// in the history, because its disk may not be mounted
    #[arg(long, requires = "files")]
    missing: bool,
    /// Also remove the last backups from which this database can be restored; otherwise they stay at any age. May be given
    /// several times
    #[arg(long, value_name = "NAME")]
    last: Vec<String>,
    /// Remove the backups instead of only saying which
    #[arg(long)]
    apply: bool,
}

/// Does it.
pub fn run(args: &HistoryArgs, output: &Output) -> Result<ExitCode, Failure> {
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    match &args.command {
        Some(HistoryCommand::Rebuild(args)) => rebuild(args, output)?,
        Some(HistoryCommand::Prune(args)) => return prune(args, output),
        None if !args.points.is_empty() => points::show(&args.points, &args.with, output)?,
        None if !args.timeline.is_empty() => return timeline::show(args, output),
        None => list(args, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn open() -> Result<Option<History>, Failure> {
    History::open().map_err(|error| {
        let lost = is_lost(&error);
        let failure = Failure::from(error);
        let hint = "`pellucid history rebuild MEDIA...` begins another one; backups need none";
        match lost && failure.number.is_none() {
            true => Failure { hint: Some(hint.into()), ..failure },
            false => failure,
        }
    })
}

fn list(args: &HistoryArgs, output: &Output) -> Result<(), Failure> {
    let history = open()?;
    let database = args.database.as_deref();
    if args.restores {
        let restores = history.map_or(Ok(Vec::new()), |history| history.restores(database))?;
        show_restores(&restores, output);
        return Ok(());
    }
    let sets = history.map_or(Ok(Vec::new()), |history| history.sets(database))?;
    if sets.is_empty() {
        output.line("No backup is known.");
    } else {
        let mut shown = table([
            "begun (UTC)",
            "type",
            "database",
            "set",
            "size",
            "stored",
            "took",
            "rate",
            "",
            "encryption",
            "under",
            "file",
        ]);
        let fastest = sets.iter().map(speed).fold(0.0, f64::max);
        let names = told_apart(&sets);
        shown.add_rows(sets.iter().zip(&names).map(|(set, name)| row(set, name, fastest)));
        output.line(shown);
    }
    output.facts(&serde_json::json!({ "backups": sets.iter().map(facts).collect::<Vec<_>>() }));
    Ok(())
}

/// Bytes a second.
fn speed(set: &KnownSet) -> f64 {
    set.content_bytes as f64 / set.seconds.max(1e-6)
}

/// The database of each set by its name; where there are several of that name, by as much of its path's end as tells them
/// apart.
fn told_apart(sets: &[KnownSet]) -> Vec<String> {
    let mut paths: BTreeMap<&str, BTreeSet<&Path>> = BTreeMap::new();
    for set in sets {
        paths.entry(&set.database).or_default().insert(Path::new(&set.path));
    }
    let name = |set: &KnownSet| {
        let of_this_name = &paths[set.database.as_str()];
        match of_this_name.len() > 1 && !set.path.is_empty() {
            true => end_that_differs(Path::new(&set.path), of_this_name),
            false => set.database.clone(),
        }
    };
    sets.iter().map(name).collect()
}

/// The shortest end of `path`, of two components or more, that no other one of `paths` has, marked as an end: `…/one/data.db`.
fn end_that_differs(path: &Path, paths: &BTreeSet<&Path>) -> String {
    let parts: Vec<_> = path.components().collect();
    let ends =
        (2..parts.len()).map(|count| parts[parts.len() - count..].iter().collect::<PathBuf>());
    let mut telling =
        ends.filter(|end| paths.iter().filter(|other| other.ends_with(end)).count() == 1);
    match telling.next() {
        Some(end) => format!("…/{}", end.display()),
        None => path.display().to_string(),
    }
}

fn row(set: &KnownSet, name: &str, fastest: f64) -> Vec<String> {
    let part = speed(set) / fastest.max(1.0);
    vec![
        time(&set.begun),
        kind(set).to_owned(),
        name.shown().to_string(),
        set.position.to_string(),
        bytes(set.content_bytes),
        bytes(set.stored_bytes),
        format!("{:.3} s", set.seconds),
        rate(set.content_bytes, set.seconds),
        "#".repeat((part * 10.0).round().max(1.0) as usize),
        if set.algorithm.is_empty() { "none" } else { &set.algorithm }.to_owned(),
        set.under.shown().to_string(),
        match (set.files.first(), set.gone.is_empty()) {
            (Some(file), false) => format!("{} (overwritten {})", file.shown(), time(&set.gone)),
            (Some(file), true) => file.shown().to_string(),
            (None, _) => String::new(),
        },
    ]
}

/// Without what is less than a second.
fn time(at: &str) -> String {
    at.chars().take(19).collect()
}

fn kind(set: &KnownSet) -> &'static str {
    match (set.kind.as_str(), set.copy_only) {
        ("D", true) => "copy-only",
        ("D", false) => "full",
        ("L", _) => "log",
        _ => "differential",
    }
}

fn facts(set: &KnownSet) -> serde_json::Value {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    serde_json::json!({
        "backup_set_uuid": set.set, "database_name": set.database, "physical_name": known(&set.path), "name": set.name, "type": kind(set),
        "position": set.position, "backup_start_date": set.begun, "backup_finish_date": set.finished,
        "expiration_date": known(&set.expires), "seconds": set.seconds,
        "backup_size": set.content_bytes, "compressed_backup_size": set.stored_bytes,
        "bytes_per_second": speed(set), "key_algorithm": known(&set.algorithm), "under": known(&set.under),
        "is_damaged": set.damaged, "differential_base_guid": known(&set.base), "files": set.files,
        "overwritten_date": known(&set.gone), "overwritten_by": known(&set.gone_for),
    })
}

fn show_restores(restores: &[KnownRestore], output: &Output) {
    if restores.is_empty() {
        output.line("No restore is known.");
    } else {
        let mut shown =
            table(["restored (UTC)", "database", "from", "size", "took", "replaced", "file"]);
        shown.add_rows(restores.iter().map(|restore| {
            vec![
                time(&restore.at),
                restore.database.shown().to_string(),
                match restore.kind.as_str() {
                    "D" => "full",
                    "L" => "log",
                    _ => "differential",
                }
                .to_owned(),
                bytes(restore.bytes),
                format!("{:.3} s", restore.seconds),
                if restore.replaced { "yes" } else { "no" }.to_owned(),
                restore.path.shown().to_string(),
            ]
        }));
        output.line(shown);
    }
    let facts = restores.iter().map(|restore| {
        serde_json::json!({
            "restore_date": restore.at, "destination_database_name": restore.database,
            "destination": restore.path, "restore_type": restore.kind, "replace": restore.replaced,
            "backup_set_uuid": restore.set, "user_name": restore.user, "seconds": restore.seconds,
            "bytes": restore.bytes,
        })
    });
    output.facts(&serde_json::json!({ "restores": facts.collect::<Vec<_>>() }));
}

fn rebuild(args: &RebuildArgs, output: &Output) -> Result<(), Failure> {
    args.with.offer()?;
    // What is there is touched only when all that is to be in the new one is at hand.
    let home = Keyring::locate()?;
    if !Keyring::is_at(&home) {
        return Err(Failure::new(
            Id::NoInstance,
            "there is no instance to keep a history",
            "`pellucid init` makes an instance",
        ));
    }
    Keyring::open(&home)?;
    let credentials = Credentials::gather(&Request::default())?.for_many();
    let found = read(&args.media, &credentials, output)?;
    let seen = History::seen()?;
    let begun = History::open_or_begin();
    let written = match begun.and_then(|history| write_down(history.as_ref(), &found, output)) {
        Err(error) if is_lost(&error) => {
            let (history, kept) = History::begin_anew(&seen)?;
            output.warning(format!("the history could not be read: {error}"));
            if let Some(kept) = kept {
                output.warning(format!("the unreadable history is kept as `{}`", kept.shown()));
            }
            write_down(Some(&history), &found, output)
        }
        written => written,
    }?;
    output.line(format!("written down: {written} backup sets"));
    output.facts(&serde_json::json!({ "backup_sets": written }));
    Ok(())
}

/// Media, and what is written down of each of their sets; none for one that is not to be believed.
type Found = Vec<(Media, Vec<Option<(Description, Link)>>)>;

fn read(paths: &[PathBuf], credentials: &Credentials, output: &Output) -> Result<Found, Failure> {
    let mut found = Found::new();
    for (_, files) in by_media(paths)? {
        let first = files[0].source.name();
        let media = Media::assemble(files).map_err(|error| about_media(error, &first))?;
        let mut sets = Vec::new();
        for position in 1..=media.sets() {
            let set = look(&media, position, &first, credentials, output);
            if let Err(failure) = &set {
                output.warning(format!("{}; it is not written down", failure.message));
            }
            sets.push(set.ok());
        }
        found.push((media, sets));
    }
    Ok(found)
}

/// Looks at a set as far as it can be known here: one that is not what was written is refused, and so is one that would pass
/// for one that was made here.
fn look(
    media: &Media,
    position: u32,
    first: &Path,
    credentials: &Credentials,
    output: &Output,
) -> Result<(Description, Link), Failure> {
    let about = |error| about_media(error, first);
    refuse_looked_at(media, position, &paths_of(media))?;
    let families = media.set(position).map_err(about)?;
    same_manifest(&families).map_err(about)?;
    let bar = output.progress("reading checksums", Unit::Bytes);
    for copies in &families {
        let whole = |(family, set): &(&Family, &FamilySet)| {
            verify_checksums(family, set, &mut |more| bar.inc(more))
        };
        let mut checked: Vec<_> = copies.iter().map(whole).collect();
        if let (true, Some(error)) = (checked.iter().all(Result::is_err), checked.pop()) {
            error.map_err(about)?;
        }
    }
    bar.finish_and_clear();
    let (description, link) = look_at(media, position, credentials).map_err(about)?;
    if description.is_none() {
        output.warning(format!(
            "`{}`: set {position} has no name without its key, and nothing shows who made it",
            first.shown()
        ));
    }
    Ok((description.unwrap_or_default(), link))
}

fn paths_of(media: &Media) -> Vec<PathBuf> {
    media.families().iter().flatten().map(|family| family.source.name()).collect()
}

/// How many sets there were.
fn write_down(
    history: Option<&History>,
    found: &Found,
    output: &Output,
) -> Result<u32, DatabaseError> {
    let mut written = 0;
    let Some(history) = history else { return Ok(written) };
    for (media, sets) in found {
        for (position, found) in (1..).zip(sets) {
            let families = media.set(position)?;
            let set = families.first().and_then(|copies| copies.first());
            let (Some((family, set)), Some((description, link))) = (set, found) else { continue };
            let is_written = history.record_set(&SetRecord {
                media: media.header(),
                set: &set.header,
                manifest: &set.manifest,
                description,
                files: &files_of(media),
                replaced: &[],
                link: link.clone(),
            })?;
            if is_written {
                written += 1;
            } else {
                output.warning(format!(
                    "`{}`: set {position} is not written down: the history knows one of its identity, which it believes \
                     more",
                    family.source.name().shown()
                ));
            }
        }
    }
    Ok(written)
}

/// The files of each media set.
fn by_media(paths: &[PathBuf]) -> Result<BTreeMap<[u8; 16], Vec<Family>>, Failure> {
    let mut media: BTreeMap<[u8; 16], Vec<Family>> = BTreeMap::new();
    for path in paths {
        let family = open_family(path).map_err(|error| about_media(error, path))?;
        let MediaHeader { media_set, .. } = family.header;
        media.entry(media_set).or_default().push(family);
    }
    Ok(media)
}

fn prune(args: &PruneArgs, output: &Output) -> Result<ExitCode, Failure> {
    let Some(history) = open()? else {
        output.line("No backup is known.");
        return Ok(ExitCode::SUCCESS);
    };
    let age = args.older_than.saturating_mul(86_400_000_000);
    let limit = pellucid::clock::now_micros().saturating_sub(age);
    let (files, missing, last) = (args.files, args.missing, args.last.clone());
    let what = Pruning { limit, files, missing, last };
    let mut plan = history.plan(&what)?;
    if args.apply {
        if !plan.files.is_empty() {
            let going = [forgotten(&plan, false), removed(&plan, false)].concat().join("\n");
            let question = format!("Remove {} files of backups?", plan.files.len());
            output.confirm(&format!("this would go:\n{going}\n{question}"))?;
        }
        let done = history.prune(&plan, &what)?;
        plan.kept.extend(done.kept);
        plan.stuck.extend(done.stuck);
        (plan.sets, plan.files) = (done.sets, done.files);
    }
    forgotten(&plan, args.apply).iter().for_each(|line| output.line(line));
    for (set, why) in &plan.kept {
        output.line(format!("stays: {} {} {}: {why}", set.begun, kind(set), set.database.shown()));
    }
    removed(&plan, args.apply).iter().for_each(|line| output.line(line));
    for (path, why) in &plan.stuck {
        output.warning(format!(
            "`{}`: {why}: the files of its media stay, and so do its backups in the history; without `--files` \
             only the history forgets them",
            path.shown()
        ));
    }
    if !args.apply {
        output.line("Nothing was changed; `--apply` does it.");
    }
    output.facts(&serde_json::json!({
        "applied": args.apply,
        "sets": plan.sets.iter().map(|set| &set.set).collect::<Vec<_>>(),
        "kept": plan.kept.iter().map(|(set, why)| serde_json::json!({
            "backup_set_uuid": set.set, "why": why })).collect::<Vec<_>>(),
        "files": crate::output::names(&plan.files),
        "stuck": plan.stuck.iter().map(|(path, why)| serde_json::json!({
            "file": crate::output::name(path), "why": why })).collect::<Vec<_>>(),
    }));
    Ok(match plan.stuck.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(exit::FAILED),
    })
}

/// The sets that go, a line for each.
fn forgotten(plan: &Plan, applied: bool) -> Vec<String> {
    let word = if applied { "forgotten" } else { "would be forgotten" };
    let line =
        |set: &KnownSet| format!("{word}: {} {} {}", set.begun, kind(set), set.database.shown());
    plan.sets.iter().map(line).collect()
}

/// The files that go, likewise.
fn removed(plan: &Plan, applied: bool) -> Vec<String> {
    let word = if applied { "removed" } else { "would be removed" };
    plan.files.iter().map(|path| format!("{word}: {}", path.shown())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_of_one_name_are_told_apart_by_as_little_of_their_paths_as_does_it() {
        let end = |path: &str, all: &[&str]| {
            end_that_differs(Path::new(path), &all.iter().map(Path::new).collect())
        };
        let services = ["/srv/one/data.db", "/srv/two/data.db"];
        assert_eq!(services.map(|path| end(path, &services)), ["…/one/data.db", "…/two/data.db"]);
        let deeper = ["/a/x/db/data.db", "/b/x/db/data.db", "/c/data.db"];
        let told = ["…/a/x/db/data.db", "…/b/x/db/data.db", "…/c/data.db"];
        assert_eq!(deeper.map(|path| end(path, &deeper)), told);
        let within = ["/data.db", "/srv/data.db"];
        assert_eq!(within.map(|path| end(path, &within)), ["/data.db", "…/srv/data.db"]);
        let names = ["/srv/data.db", "/srv/data.sqlite"];
        assert_eq!(names.map(|path| end(path, &names)), ["…/srv/data.db", "…/srv/data.sqlite"]);
    }
}
