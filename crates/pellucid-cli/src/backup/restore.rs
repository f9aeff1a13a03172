//! `restore`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use pellucid::header::{Standing, REGION_BYTES};
use pellucid::shown::Shown;
use pellucid::{message, Algorithm};
use pellucid_backup::archive::{furthest, media_of};
use pellucid_backup::job::{mend, processors, restore, shown_moment, Mending, Point, Restoring};
use pellucid_engine::inspect::{inspect, Kind as Found};
use pellucid_engine::standing;
use pellucid_files::paths::look;
use pellucid_host::DatabaseError;

use super::{about_media, point, rate, signed_by};
use crate::exit;
use crate::keys::{certificate, OpenWith};
use crate::named;
use crate::output::{bytes, seconds, Failure, Id, Output, Unit};

/// What `restore` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid restore app.bak --to app.db\n  pellucid restore monday.bak \
                  --base sunday.bak --to app.db\n  pellucid restore app.bak --to app.db --replace\n  \
                  pellucid restore full.bak logs/*.bak --at '2026-11-25 14:02:59.9' --to new.db"
)]
pub struct RestoreArgs {
    /// Files of the backup, one for each stripe; `-` is standard input
    #[arg(required_unless_present = "online", value_name = "MEDIA")]
    media: Vec<PathBuf>,
    /// Database to create
    #[arg(long, value_name = "DB")]
    to: PathBuf,
    /// Number of the backup set on the media, from 1 [default: the last]
    #[arg(long, value_name = "N")]
    position: Option<u32>,
    /// Point to restore to: a time (`2026-11-25 03:12:07.5`, UTC, or with an offset), `lsn:N`, `mark:NAME` with the commit of
    /// that mark, `before-mark:NAME` without it, or `last`. The media are then those of a full backup, of differentials and of
    /// log backups, in any order; what is not needed is left out. A directory or a URL that `archive` ships to stands for what
    /// is there
    #[arg(long, value_name = "POINT", value_parser = point::parse, conflicts_with_all = ["position", "base", "page"])]
    at: Option<Point>,
    /// Files of the full backup that a differential is based on, if it is not on the same media
    #[arg(long, num_args = 1.., value_name = "FILE")]
    base: Vec<PathBuf>,
    /// Certificate that protects the restored database; may be given several times [default: what opens the backup]
    #[arg(long, value_name = "NAME")]
    certificate: Vec<String>,
    #[command(flatten)]
    with: OpenWith,
    /// Cipher
    #[arg(long, value_name = "NAME", default_value = "AES_256", ignore_case = true, value_parser = named::algorithm())]
    algorithm: Algorithm,
    /// Create a plain database from the backup of an encrypted one
    #[arg(long)]
    decrypted: bool,
    /// Accept an unencrypted differential of an encrypted full backup, as earlier versions made of plain databases. Anybody
    /// who can write to its media can have put it there
    #[arg(long)]
    allow_plain_differential: bool,
    /// Accept a backup that is not sealed although the others are, or although the database is known as encrypted. Anybody
    /// who can write to its media can have put it there
    #[arg(long)]
    allow_clear: bool,
    /// Accept a backup without a signature although signed ones are known of its database, or lie before it. Whoever has its
    /// key can have made it
    #[arg(long)]
    allow_unsigned: bool,
    /// Replace the content of an existing database, which programs may have open; its old content is lost
    #[arg(long)]
    replace: bool,
    /// Leave the database restoring: nobody reads or writes it before the next restore to it, or `--online`
    #[arg(long, conflicts_with_all = ["page", "decrypted"])]
    no_recovery: bool,
    /// Leave the database as a standby: programs read it, and only the next restore to it changes it, or `--online`
    #[arg(long, conflicts_with_all = ["page", "decrypted", "no_recovery"])]
    standby: bool,
    /// End a restore: the database that is restoring, or a standby, becomes one like any other. Takes no media
    #[arg(long, conflicts_with_all = ["media", "position", "at", "base", "certificate", "decrypted", "replace", "page", "no_recovery", "standby"])]
    online: bool,
    /// Seconds to wait for locks of programs that have the database open
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    timeout: u64,
    /// Restore only these damaged pages of an existing database: `--page 17,18`. No transaction may have been committed since the
    /// backup. Of a database with a chain of log backups name all of these, too: the pages are rolled forward
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with_all = ["replace", "decrypted", "certificate", "allow_plain_differential"])]
    page: Vec<u32>,
    /// With --page, in WAL mode: trust that these pages were not changed since the backup, which nothing can prove
    #[arg(long, requires = "page")]
    unproven: bool,
    /// Number of threads that decrypt and decompress [default: one for each processor]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
}

/// Restores a database.
pub fn run(args: &RestoreArgs, output: &Output) -> Result<ExitCode, Failure> {
    args.with.offer()?;
    if args.replace {
        crate::container::tell_of_mount(&args.to, output);
    }
    let algorithm = args.algorithm;
    let protections = args.certificate.iter().map(|name| certificate(name));
    let protections = protections.collect::<Result<_, _>>()?;
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    if !args.page.is_empty() {
        return mend_pages(args, output);
    }
    if args.online {
        return recover(args, output);
    }
    let media = match &args.at {
        Some(point) => media_of(&args.media, point)
            .map_err(|error| refused(DatabaseError::from(error), args))?,
        None => args.media.clone(),
    };
    let job = Restoring {
        media,
        base: (!args.base.is_empty()).then(|| args.base.clone()),
        position: args.position,
        point: args.at.clone(),
        only: Vec::new(),
        to: args.to.clone(),
        protections,
        algorithm,
        decrypted: args.decrypted,
        plain_differential: args.allow_plain_differential,
        allow_clear: args.allow_clear,
        allow_unsigned: args.allow_unsigned,
        replace: args.replace,
        leave: match (args.no_recovery, args.standby) {
            (true, _) => Standing::Restoring,
            (_, true) => Standing::Standby,
            _ => Standing::Online,
        },
        timeout: Duration::from_secs(args.timeout),
        workers: args.workers.unwrap_or_else(processors),
    };
    let started = Instant::now();
    let bar = output.progress("restoring", Unit::Pages);
    let done = restore(&job, &mut |pages, all| {
        bar.set_length(u64::from(all));
        bar.set_position(u64::from(pages));
    })
    .map_err(|error| refused(error, args))?;
    bar.finish_and_clear();
    let took = started.elapsed();
    let size = u64::from(done.pages) * u64::from(done.page_size);
    let sets: Vec<_> =
        done.sets.iter().map(|(position, kind)| format!("{} {position}", kind.name())).collect();
    let sets = in_words(&sets);
    let state = match done.sealed {
        true => format!("encrypted, {algorithm}"),
        false => "plain".to_owned(),
    };
    output.line(format!(
        "{}: restored from {}: {} pages, {} in {}, {}; {state}",
        args.to.shown(),
        sets,
        done.pages,
        bytes(size),
        seconds(took),
        rate(size, took.as_secs_f64()),
    ));
    match job.leave {
        Standing::Online => {}
        Standing::Restoring => output.line(
            "It is restoring: nobody reads or writes it before the next restore, or `--online`.",
        ),
        Standing::Standby => output
            .line("It is a standby: it is read, and the next restore or `--online` ends that."),
    }
    if let Some((lsn, time)) = done.reached {
        output.line(format!("Its last commit is LSN {lsn} of {}.", shown_moment(time)));
    }
    if let Some((fork, ends)) = done.ends.filter(|_| args.at == Some(Point::Last)) {
        match furthest(&args.media, &fork) {
            Ok(Some(known)) if known > ends => output.warning(format!(
                "the sets lead to LSN {ends}, and the witness of their place knows of backups up to LSN {known}: the last ones are not \
                 there"
            )),
            Ok(_) => {}
            Err(error) => output.warning(error),
        }
    }
    for (lsn, time) in &done.same_mark {
        output.warning(format!(
            "a later commit has the same mark: LSN {lsn} of {}; `--at lsn:{lsn}` restores it",
            shown_moment(*time)
        ));
    }
    if done.doubtful {
        output.warning("the backup is NOT sealed: anybody can have made it");
    }
    done.told.iter().for_each(|what| output.warning(what));
    if let Some(why) = &done.unrecorded {
        output.warning(why);
    }
    for path in &done.stale {
        output.warning(super::look::left_out(path));
    }
    for page in &done.missing {
        output.warning(format!("page {page} could not be read when it was backed up: it is zeros"));
    }
    output.facts(&serde_json::json!({
        "database": crate::output::name(&args.to), "pages": done.pages, "page_size": done.page_size, "bytes": size,
        "replaced": done.replaced,
        "state": if done.sealed { "encrypted" } else { "plain" },
        "sets": done.sets.iter().map(|(position, kind)| serde_json::json!({
            "position": position, "type": kind.name() })).collect::<Vec<_>>(),
        "last_lsn": done.reached.map(|(lsn, _)| lsn.to_string()),
        "last_commit": done.reached.map(|(_, time)| super::moment(time)),
        "later_marks": done.same_mark.iter().map(|(lsn, _)| lsn.to_string()).collect::<Vec<_>>(),
        "signed_by": signed_by(&done.signer), "chain": done.told, "standing": job.leave.name(),
        "damaged_pages": done.missing, "seconds": took.as_secs_f64(),
    }));
    Ok(match done.missing.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(exit::DAMAGE),
    })
}

/// The sets, of which there may be hundreds.
fn in_words(sets: &[String]) -> String {
    match sets {
        [first, .., last] if sets.len() > 4 => {
            format!("{first}, {} others and {last}", sets.len() - 2)
        }
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        sets => sets.join(""),
    }
}

/// Ends a restore.
fn recover(args: &RestoreArgs, output: &Output) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let failed = |error: DatabaseError| Failure::from(error).about(&args.to);
    let ended = standing::change(&args.to, Standing::Online, || Ok(())).map_err(failed)?;
    let found = inspect(&args.to).map_err(|error| failed(error.into()))?;
    let page_size = match &found.kind {
        Found::Sealed(sealed) => sealed.header.page_size,
        _ => 0,
    };
    let size = look(&args.to).map_or(0, |file| file.len()).saturating_sub(REGION_BYTES);
    let said = if ended { "recovered" } else { "it was neither restoring nor a standby" };
    output.line(format!("{}: {said}", args.to.shown()));
    output.facts(&serde_json::json!({
        "database": crate::output::name(&args.to), "recovered": ended, "standing": Standing::Online.name(),
        "state": "encrypted", "replaced": false, "sets": [], "damaged_pages": [],
        "page_size": page_size, "pages": size.checked_div(page_size.into()), "bytes": size,
        "seconds": started.elapsed().as_secs_f64(),
    }));
    Ok(ExitCode::SUCCESS)
}

/// Page restore.
fn mend_pages(args: &RestoreArgs, output: &Output) -> Result<ExitCode, Failure> {
    let job = Mending {
        media: args.media.clone(),
        base: (!args.base.is_empty()).then(|| args.base.clone()),
        position: args.position,
        to: args.to.clone(),
        pages: args.page.clone(),
        unproven: args.unproven,
        allow_clear: args.allow_clear,
        allow_unsigned: args.allow_unsigned,
        timeout: Duration::from_secs(args.timeout),
    };
    let done = mend(&job).map_err(|error| refused(error, args))?;
    let list: Vec<_> = done.pages.iter().map(u32::to_string).collect();
    output.line(format!(
        "{}: restored page {}; `pellucid check` looks at all of it",
        args.to.shown(),
        list.join(", ")
    ));
    done.told.iter().for_each(|what| output.warning(what));
    output.facts(&serde_json::json!({
        "database": crate::output::name(&args.to), "pages": done.pages, "chain": done.told,
    }));
    Ok(ExitCode::SUCCESS)
}

/// What is about the database that is there, and not about the media.
fn refused(error: DatabaseError, args: &RestoreArgs) -> Failure {
    if let DatabaseError::InUse { .. } = &error {
        let hint = format!("{error}; stop these programs, or wait longer with `--timeout`");
        return Failure::new(Id::InUse, message::IN_USE.text, hint)
            .number(message::IN_USE.number)
            .about(&args.to);
    }
    let failure = Failure::from(error);
    match failure.number {
        Some(3142 | 3154 | 3159) => {
            let hint = "`--replace` puts the restored database in its place, and what is there is \
                        lost; another name with `--to` keeps both";
            Failure { hint: Some(hint.into()), ..failure }.about(&args.to)
        }
        // Of several media none is meant more than another one.
        _ if failure.message.starts_with("`at`: ") => failure,
        _ => {
            let is_of =
                |path: &&PathBuf| failure.message.starts_with(&format!("`{}`", path.shown()));
            let media = args.media.iter().find(is_of).unwrap_or(&args.media[0]).clone();
            about_media(failure, &media)
        }
    }
}
