//! `backup`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use pellucid::header::Standing;
use pellucid::media::{Compression, Kind};
use pellucid::shown::Shown;
use pellucid::{message, Algorithm, Error, Subject};
use pellucid_backup::job::{
    back_up, Done, Existing, Files, Job, JobError, LogJob, Phase, Retention, Rules,
};
use pellucid_engine::inspect::{inspect, Kind as Found};
use pellucid_host::DatabaseError;
use pellucid_keyring::{Keyring, DEFAULT_CERTIFICATE};

use super::names::{expand, holds};
use super::rate;
use crate::exit;
use crate::interrupted;
use crate::keys::OpenWith;
use crate::named::{self, CompressionParser};
use crate::output::{bytes, seconds, Failure, Id, Output, Unit};

/// What `backup` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid backup app.db --to /backup/{db}-{utc}.bak\n  pellucid \
                  backup app.db --to one.bak two.bak --mirror /far/one.bak /far/two.bak\n  \
                  pellucid backup app.db --to monday.bak --differential --base sunday.bak\n  \
                  pellucid backup app.db --log --to app-{utc}.log.bak"
)]
pub struct BackupArgs {
    /// Database to back up; programs go on using it
    #[arg(value_name = "DB")]
    database: PathBuf,
    /// File id that the encrypted database has to have when it is opened: for the broker
    #[arg(long, hide = true, value_name = "ID", value_parser = file_id)]
    file_id: Option<[u8; 16]>,
    /// Files to write, one for each stripe. `{db}` stands for the database's name, `{path}` for its whole path with `-` in
    /// the place of `/`, `{utc}` for the time. `-` is standard output; the facts then go to standard error. NUL discards the backup
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    to: Vec<OsString>,
    /// Files for another copy of each stripe; may be given up to three times. If a mirror cannot be written, pellucid warns
    /// and goes on without it; the exit status is 0, because the backup is whole
    #[arg(long, num_args = 1.., value_name = "FILE")]
    mirror: Vec<OsString>,
    /// Append the backup set to media that have backup sets
    #[arg(long, conflicts_with_all = ["overwrite", "format"])]
    append: bool,
    /// Replace the backup sets on the media once the new one is whole; refused while one of them has not expired. The
    /// media keep their name, number of stripes and encryption. A file that is not a backup is left as it is (3241)
    #[arg(long, conflicts_with = "format")]
    overwrite: bool,
    /// Make new media in place of the existing files, once the new set is whole; a database, its logs and keys are never
    /// replaced
    #[arg(long)]
    format: bool,
    /// Overwrite or append without checking expiry and media name
    #[arg(long)]
    skip: bool,
    /// Certificate of the keyring to encrypt the backup with; may be given several times. Without it, the backup of an
    /// encrypted database opens with the protectors of the database
    #[arg(long, value_name = "NAME")]
    certificate: Vec<String>,
    /// Do not encrypt the backup of a plain database; refused for an encrypted database
    #[arg(long)]
    no_encryption: bool,
    #[command(flatten)]
    with: OpenWith,
    /// Cipher
    #[arg(long, value_name = "NAME", default_value = "AES_256", ignore_case = true, value_parser = named::algorithm_of_sets())]
    algorithm: Algorithm,
    /// Compression: zstd, zstd:LEVEL (1 to 22), lz4 or none
    #[arg(long, default_value = "zstd", value_name = "HOW", hide_possible_values = true, value_parser = CompressionParser)]
    compression: (Compression, i32),
    /// Number of threads that compress and encrypt [default: one for each processor]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Back up only the pages that differ from a full backup
    #[arg(long)]
    differential: bool,
    /// Files of the full backup for --differential [default: those of `--to`]
    #[arg(long, num_args = 1.., value_name = "FILE", requires = "differential")]
    base: Vec<PathBuf>,
    /// Back up the log: the commits since the last log backup, for databases of the recovery models FULL and BULK_LOGGED
    #[arg(long, conflicts_with_all = ["differential", "no_spool", "no_encryption"])]
    log: bool,
    /// Leave the log as it is, as --copy-only does, and make its tail even if the database file is gone or damaged: of
    /// `DB-wal` and `DB-log` alone
    #[arg(long, requires = "log")]
    no_truncate: bool,
    /// Take the tail: nobody opens or writes the database behind it, until a restore or `restore --online` ends that
    #[arg(long, requires = "log", conflicts_with = "copy_only")]
    no_recovery: bool,
    /// Make a full backup that no differential is based on; with --log, one after which the next log backup has the same
    /// commits
    #[arg(long)]
    copy_only: bool,
    /// Do not sign the backup with the certificate that protects it, so that 0.1.0 restores it
    #[arg(long)]
    unsigned: bool,
    /// Pad each file to a size class, so that its size alone says less about the rows
    #[arg(long)]
    padding: bool,
    /// Last day on which the backup set must not be overwritten, YYYY-MM-DD
    #[arg(long, value_name = "DATE", value_parser = crate::cert::day)]
    expires: Option<i64>,
    /// Days until the backup set expires, up to 99999; takes precedence over --expires
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(..=99_999))]
    retain_days: Option<u64>,
    /// Name of the backup set
    #[arg(long, default_value = "", hide_default_value = true)]
    name: String,
    /// Description of the backup set
    #[arg(long, default_value = "", hide_default_value = true)]
    description: String,
    /// Name of the media, if they are new
    #[arg(long, default_value = "", hide_default_value = true)]
    media_name: String,
    /// Description of the media, if they are new
    #[arg(long, default_value = "", hide_default_value = true)]
    media_description: String,
    /// Do not spool the pages of a database that is not in WAL mode: read them in one transaction instead
    #[arg(long)]
    no_spool: bool,
    /// Go on after pages that cannot be read; the set has zeros in their place and is marked as damaged. With --no-truncate:
    /// leave out commits behind a damaged place of the log
    #[arg(long)]
    continue_after_error: bool,
    /// Seconds to wait for locks of other connections
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    timeout: u64,
}

/// Makes a backup.
pub fn run(args: &BackupArgs, output: &Output) -> Result<ExitCode, Failure> {
    if args.is_piped() && std::io::stdout().is_terminal() {
        return Err(Failure::new(
            Id::BackupToTerminal,
            "a backup is not for a terminal",
            "pipe it into something: `pellucid backup app.db --to - | ssh far 'cat > app.bak'`",
        ));
    }
    if args.log && args.continue_after_error && !args.no_truncate {
        return Err(Failure::new(
            Id::Misuse,
            "`--continue-after-error` of a log backup goes with `--no-truncate` alone",
            "a log backup reads no page of the database",
        ));
    }
    let job = job(args, output)?;
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    let name = job.database.shown();
    interrupted::answer_with(format_args!(
        "`{name}` is as it was, and so are the backups that were there; the next backup there removes what this one left"
    ));
    let started = Instant::now();
    let bar = output.progress("", Unit::Bytes);
    // The database is held meanwhile: to open and close it here would drop the locks of this process.
    let done = back_up(&job, &mut |now| {
        bar.set_message(match now.phase {
            Phase::Spooling => "setting pages aside".to_owned(),
            Phase::Writing => format!("writing, {} so far", bytes(now.stored)),
        });
        bar.set_length(u64::from(now.all) * u64::from(now.page_size));
        bar.set_position(u64::from(now.pages) * u64::from(now.page_size));
    })
    .map_err(|error| refused(error, args))?;
    bar.finish_and_clear();
    tell(&job, &done, started.elapsed(), output);
    Ok(match done.manifest.damaged || !done.older.is_empty() {
        true => ExitCode::from(exit::DAMAGE),
        false => ExitCode::SUCCESS,
    })
}

impl BackupArgs {
    /// Whether standard output is the backup.
    pub fn is_piped(&self) -> bool {
        self.to.iter().any(|name| name == "-")
    }
}

fn refused(error: JobError, args: &BackupArgs) -> Failure {
    let names_a_file = error.names_a_file();
    let hint = match &error {
        JobError::Exists(_) => Some(
            match args.to.iter().any(|name| holds(name, "{utc}")) {
                true => "two databases may have the same name: `{path}` in the file's name tells them apart, or wait a second",
                false => "`--append` adds a backup set to it, `--overwrite` replaces those in it, `{utc}` in the name makes \
                    another one each time",
            },
        ),
        JobError::FullBackupLocked(_) => Some(
            "bring the certificate with `pellucid cert import`, or take a full backup: that needs what opens the database \
             now",
        ),
        _ => None,
    };
    let exists = matches!(error, JobError::Exists(_));
    let is_chain = is_of_chain(&error);
    let mut failure = Failure::from(DatabaseError::from(error));
    failure.hint = hint.map(str::to_owned).or(failure.hint);
    if exists {
        failure = failure.called(Id::Exists);
    }
    if is_chain {
        failure = broken_chain(failure);
    }
    match names_a_file {
        true => failure,
        false => failure.about(&args.database),
    }
}

/// The error of a broken chain, with what to do.
pub fn broken_chain(failure: Failure) -> Failure {
    let hint = "a full backup lets it go on, unless the folder with `-log` at its end is gone or damaged: put that back, else `pellucid \
                recovery DB simple`, then `full`, and a full backup begin another chain";
    Failure { hint: Some(hint.to_owned()), ..failure.called(Id::ChainBroken) }
}

/// Whether something is wrong with the database's archive of logs.
pub fn is_of_chain(error: &JobError) -> bool {
    matches!(
        error,
        JobError::Database(DatabaseError::Typed(
            Error::Corrupt { subject: Subject::LogArchive, .. }
                | Error::Unauthentic { subject: Subject::LogArchive, .. }
        ))
    )
}

fn job(args: &BackupArgs, output: &Output) -> Result<Job, Failure> {
    let algorithm = args.algorithm;
    let expand =
        |names: &[OsString]| names.iter().map(|name| expand(name, &args.database)).collect();
    let files = Files {
        families: expand(&args.to),
        // A last one that is too short is refused with the others.
        mirrors: args.mirror.chunks(args.to.len()).map(expand).collect(),
    };
    let differential = args.differential.then(|| match args.base.is_empty() {
        true => files.families.clone(),
        false => args.base.clone(),
    });
    let mut job = Job::new(args.database.clone(), files);
    protect(&mut job, args, output)?;
    let encrypted = !job.protections.is_empty() || is_sealed(args)?;
    if encrypted && algorithm.is_deprecated() {
        output.warning(format!("{algorithm} is deprecated and slow; AES_256 is the default"));
    }
    let (compression, level) = args.compression;
    job.keep(retention(args));
    Ok(Job {
        rules: Rules {
            existing: match (args.append, args.overwrite, args.format) {
                (true, ..) => Existing::Append,
                (_, true, _) => Existing::Initialize,
                (.., true) => Existing::Format,
                _ => Existing::Refuse,
            },
            skip: args.skip,
            parity: false,
        },
        algorithm,
        compression,
        level,
        differential,
        file_id: args.file_id,
        log: args.log.then_some(LogJob {
            no_truncate: args.no_truncate,
            leave: if args.no_recovery { Standing::Restoring } else { Standing::Online },
            ..LogJob::default()
        }),
        copy_only: args.copy_only,
        unsigned: args.unsigned,
        padded: args.padding,
        name: args.name.clone(),
        description: args.description.clone(),
        media_name: args.media_name.clone(),
        media_description: args.media_description.clone(),
        no_spool: args.no_spool,
        continue_after_error: args.continue_after_error,
        workers: args.workers.unwrap_or(job.workers),
        timeout: Duration::from_secs(args.timeout),
        ..job
    })
}

fn file_id(text: &str) -> Result<[u8; 16], String> {
    pellucid_vfs::pins::parse_id(text).ok_or_else(|| "has 32 hexadecimal digits".to_owned())
}

fn retention(args: &BackupArgs) -> Retention {
    match (args.retain_days, args.expires) {
        (Some(days), _) => Retention::Days(days),
        (None, Some(day)) => Retention::ThroughDay(day),
        (None, None) => Retention::None,
    }
}

fn is_sealed(args: &BackupArgs) -> Result<bool, Failure> {
    // Only an encrypted database has a chain of log backups.
    if args.no_truncate {
        return Ok(true);
    }
    let found =
        inspect(&args.database).map_err(|error| Failure::from(error).about(&args.database))?;
    Ok(matches!(found.kind, Found::Sealed(_)))
}

/// Who is to open the set besides, or instead of, what opens the database.
fn protect(job: &mut Job, args: &BackupArgs, output: &Output) -> Result<(), Failure> {
    let sealed = is_sealed(args)?;
    if args.no_encryption {
        if sealed || !args.certificate.is_empty() {
            let text = message::OPTION_CONFLICTS.with_all(&["NO_ENCRYPTION", "ENCRYPTION"]);
            return Err(Failure::new(Id::ClearBackup,
                text,
                "an encrypted database is never backed up in clear; `pellucid restore --decrypted` \
                 makes a plain database of the backup",
            )
            .number(message::OPTION_CONFLICTS.number)
            .about(&args.database));
        }
        return Ok(());
    }
    for name in &args.certificate {
        if !job.seal_under(&Keyring::open(&Keyring::locate()?)?, name)? {
            output.message(&message::NOT_BACKED_UP);
        }
    }
    // They open a sealed database; a plain one has no other use for them.
    let keys = args.with.read(!sealed)?;
    keys.offer();
    if !sealed {
        job.protections.extend(keys.protections());
    }
    Ok(())
}

fn tell(job: &Job, done: &Done, took: Duration, output: &Output) {
    let (header, manifest) = (&done.header, &done.manifest);
    for (path, error) in &done.fenced {
        output.warning(format!("`{}`: {error}: this mirror was given up", path.shown()));
    }
    for path in &done.cleared {
        output.line(format!("Removed `{}`, which a stopped backup had left.", path.shown()));
    }
    done.told.iter().for_each(|what| output.warning(what));
    if let Some(why) = &done.unrecorded {
        output.warning(why);
    }
    for (_, error) in &done.missing {
        output.warning(format!("{error}: zeros in the backup"));
    }
    let kind = match header.kind {
        Kind::Full if header.copy_only => "copy-only",
        kind => kind.name(),
    };
    let sealed = match (header.algorithm, who(header)) {
        (Some(algorithm), who) if done.signer.is_some() => {
            format!("{algorithm} under {who}, signed")
        }
        (Some(algorithm), who) => format!("{algorithm} under {who}"),
        (None, _) => "not encrypted".to_owned(),
    };
    let part = match manifest.content_bytes {
        0 => String::new(),
        all => format!(" ({:.1} %)", manifest.stored_bytes as f64 * 100.0 / all as f64),
    };
    let files: Vec<_> = job.files.families.iter().map(|path| path.shown().to_string()).collect();
    output.line(format!(
        "{}: {kind} backup, position {} of {}: {} pages, {} to {}{part} in {}, {}; {sealed}",
        job.database.shown(),
        header.position,
        files.join(" "),
        manifest.pages,
        bytes(manifest.content_bytes),
        bytes(manifest.stored_bytes),
        seconds(took),
        rate(manifest.content_bytes, took.as_secs_f64()),
    ));
    if done.could_be_signed {
        output.line(
            "It is not signed, because these media are of version 1: new media (`--format`, or another name) have \
             signatures, and 0.1.0 does not read them.",
        );
    }
    if header.version2.and_then(|own| own.log).is_some_and(|log| log.tail) {
        output.line(
            "Behind it the database is restoring: nobody opens or writes it before `pellucid restore --online` or another \
             restore.",
        );
    }
    if let Some(held) = done.held {
        output.line(format!("No commit was possible for {}.", seconds(held)));
    }
    output.facts(&serde_json::json!({
        "database": crate::output::name(&job.database), "files": crate::output::names(&job.files.families),
        "mirrors": job.files.mirrors.iter().map(crate::output::names).collect::<Vec<_>>(),
        "backup_set": pellucid::hash::hex(&header.set), "position": header.position,
        "type": kind, "pages": manifest.pages, "page_size": header.page_size,
        "backup_size": manifest.content_bytes, "compressed_backup_size": manifest.stored_bytes,
        "key_algorithm": header.algorithm.map(Algorithm::name), "compression": header.compression.name(),
        "signed_by": done.signer, "chain": done.told,
        "damaged_pages": done.missing.iter().map(|(page, _)| page).collect::<Vec<_>>(),
        "older_pages": done.older, "failed_mirrors": crate::output::names(done.fenced.iter().map(|(path, _)| path)),
        "held_seconds": done.held.map(|held| held.as_secs_f64()),
        "seconds": took.as_secs_f64(),
    }));
}

/// Who opens the set.
pub fn who(header: &pellucid::media::SetHeader) -> String {
    let protectors = header.protectors().unwrap_or_default();
    let names: Vec<_> = protectors
        .iter()
        .map(|protector| match protector {
            pellucid::protector::Protector::Certificate(own) => {
                let name = if own.name().is_empty() { DEFAULT_CERTIFICATE } else { own.name() };
                format!("{} `{name}`", own.kind_name())
            }
            other => format!("a {}", other.kind_name()),
        })
        .collect();
    names.join(" and ")
}
