//! `rekey`, `rewrap` and `scan`: new keys for databases that are in use.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use pellucid::keyring::Keyring;
use pellucid::message;
use pellucid::scan::ScanState;
use pellucid::Algorithm;
use pellucid_sqlite::inspect::{inspect, Kind, SealedHeader};
use pellucid_sqlite::protectors;
use pellucid_sqlite::scan::{self, Doing, Ended, Options, Target};
use pellucid_sqlite::seal_request::Protection;

use crate::exit;
use crate::keys::{key_file, passphrase, OpenWith};
use crate::output::{bytes, date, seconds, table, Failure, Output, Unit};
use crate::protector::{begin, sealed};

/// Milliseconds; as long as a busy writer notices least.
const HOLD_MS: u16 = 4;

/// What `rekey` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid rekey app.db\n  pellucid rekey app.db --algorithm AES_128 \
                  --background"
)]
pub struct RekeyArgs {
    /// An encrypted database; programs go on using it
    database: PathBuf,
    /// AES_128, AES_192, AES_256 or TRIPLE_DES_3KEY; default: the present one
    #[arg(long)]
    algorithm: Option<String>,
    #[command(flatten)]
    scan: ScanOptions,
    #[command(flatten)]
    with: OpenWith,
}

#[derive(Debug, Args)]
struct ScanOptions {
    /// Let the scan run on its own; `pellucid scan status` shows how far it is
    #[arg(long)]
    background: bool,
    /// Keep everybody else out until it is done
    #[arg(long)]
    exclusive: bool,
    /// At most so many MB a second
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    throttle: Option<u32>,
    /// Milliseconds that the write lock is held at a time
    #[arg(long, value_name = "MS", default_value_t = HOLD_MS, value_parser = clap::value_parser!(u16).range(1..=1000))]
    hold: u16,
    /// Seconds to wait for others to give way
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

impl ScanOptions {
    fn options(&self) -> Options {
        Options {
            hold: Duration::from_millis(self.hold.into()),
            throttle: self.throttle.map(|megabytes| u64::from(megabytes) * 1_000_000),
            exclusive: self.exclusive,
            patience: Duration::from_secs(self.timeout),
        }
    }

    /// The same for a process that goes on with it.
    fn arguments(&self) -> Vec<String> {
        let mut arguments =
            vec![format!("--hold={}", self.hold), format!("--timeout={}", self.timeout)];
        arguments.extend(self.exclusive.then(|| "--exclusive".to_owned()));
        arguments.extend(self.throttle.map(|megabytes| format!("--throttle={megabytes}")));
        arguments
    }
}

/// What `scan` does.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid scan status app.db\n  pellucid scan suspend app.db\n  pellucid \
                  scan resume app.db --background"
)]
pub struct ScanArgs {
    #[command(subcommand)]
    command: ScanCommand,
}

#[derive(Debug, Subcommand)]
enum ScanCommand {
    /// Show what a scan is doing and how far it is; needs no key
    Status(StatusArgs),
    /// Stop a scan with its next batch, until it is resumed
    Suspend(SuspendArgs),
    /// Go on with a scan that was suspended, killed or aborted
    Resume(ResumeArgs),
    /// Go on with a scan that is running, for `--background`: one that was suspended meanwhile stays so
    #[command(hide = true)]
    Run(ResumeArgs),
    /// Look at every page and say which are still under an older key; exit status 3 if there are and no scan is under way
    Verify(SuspendArgs),
}

#[derive(Debug, Args)]
struct StatusArgs {
    /// Encrypted databases
    #[arg(required = true, value_name = "DB")]
    databases: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct SuspendArgs {
    /// An encrypted database
    database: PathBuf,
    #[command(flatten)]
    with: OpenWith,
}

#[derive(Debug, Args)]
struct ResumeArgs {
    /// An encrypted database
    database: PathBuf,
    #[command(flatten)]
    scan: ScanOptions,
    #[command(flatten)]
    with: OpenWith,
}

/// What `rewrap` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid rewrap app.db --certificate C2027\n  pellucid rewrap \
                  --all-under C2026 --certificate C2027"
)]
pub struct RewrapArgs {
    /// Encrypted databases
    #[arg(value_name = "DB", required_unless_present = "all_under")]
    databases: Vec<PathBuf>,
    /// Every database that the keyring knows under this certificate
    #[arg(long, value_name = "CERTIFICATE", conflicts_with = "databases")]
    all_under: Option<String>,
    #[command(flatten)]
    new: NewProtection,
    #[command(flatten)]
    with: OpenWith,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct NewProtection {
    /// A certificate of the keyring
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,
    /// A file with a raw key
    #[arg(long, value_name = "FILE")]
    new_key_file: Option<PathBuf>,
    /// A file with the new passphrase, without its last line end; `-` reads standard input, or asks at a terminal
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,
}

impl NewProtection {
    fn protection(&self) -> Result<Protection, Failure> {
        match (&self.certificate, &self.new_key_file, &self.new_passphrase_file) {
            (Some(name), ..) => {
                Keyring::open(&Keyring::locate()?)?.certificate(name)?;
                Ok(Protection::Certificate(Some(name.clone())))
            }
            (_, Some(path), _) => Ok(Protection::KeyFile(key_file(path)?)),
            (.., Some(path)) => Ok(Protection::Passphrase(passphrase(path, true)?)),
            _ => Err(Failure::new("nothing is named", "see `pellucid rewrap --help`")),
        }
    }
}

/// Gives a database a new key and scans it.
pub fn rekey(args: &RekeyArgs, output: &Output) -> Result<ExitCode, Failure> {
    let algorithm = args.algorithm.as_deref().map(str::parse::<Algorithm>).transpose()?;
    if algorithm.is_some_and(Algorithm::is_deprecated) {
        output.warning("TRIPLE_DES_3KEY is deprecated and slow; AES_256 is the default");
    }
    sealed(&args.database)?;
    refuse_background(&args.scan, &args.with)?;
    args.with.offer()?;
    begin()?;
    let header = scan::rekey(&args.database, algorithm)
        .map_err(|error| Failure::from(error).about(&args.database))?;
    output.line(format!(
        "{}: a new data encryption key, {}; programs go on, their next commits are under it",
        args.database.display(),
        header.algorithm()?,
    ));
    go_on(&args.database, &args.scan, &args.with, output)
}

/// Switches the encryption of a container on or off, and scans it.
pub fn set(
    database: &Path,
    target: Target,
    timeout: u64,
    with: &OpenWith,
    output: &Output,
) -> Result<(), Failure> {
    begin()?;
    scan::set(database, target).map_err(|error| Failure::from(error).about(database))?;
    let off = target == Target::Off;
    output.line(format!(
        "{}: {}; programs go on",
        database.display(),
        if off {
            "what is written from now on is in clear"
        } else {
            "what is written from now on is sealed"
        },
    ));
    let options =
        ScanOptions { background: false, exclusive: false, throttle: None, hold: HOLD_MS, timeout };
    go_on(database, &options, with, output).map(|_| ())
}

/// A process of its own has no prompt and no descriptor of ours.
fn refuse_background(scan: &ScanOptions, with: &OpenWith) -> Result<(), Failure> {
    let from_here = with.passphrase_file.iter().chain(&with.key_file);
    if scan.background && from_here.into_iter().any(|path| path.as_os_str() == "-") {
        return Err(Failure::new(
            "a scan in the background cannot read a key from standard input",
            "name a file, or put the key into the keyring",
        ));
    }
    Ok(())
}

/// Scans here, or in a process that outlives this one.
fn go_on(
    database: &Path,
    options: &ScanOptions,
    with: &OpenWith,
    output: &Output,
) -> Result<ExitCode, Failure> {
    if options.background {
        return start_background(database, options, with, output);
    }
    let name = database.display().to_string();
    output.line(message::SCAN_BEGINS.with(&name));
    let started = Instant::now();
    let bar = output.progress("rewriting", Unit::Pages);
    let mut most = 0;
    let ended = scan::run(database, &options.options(), &mut |doing, done, pages| {
        bar.set_message(match doing {
            Doing::Rewriting => "rewriting",
            Doing::WaitingForReaders => "waiting for readers",
            Doing::Proving => "proving",
        });
        if pages > 1 {
            most = pages;
            bar.set_length(pages.into());
            bar.set_position(done.into());
        }
    });
    bar.finish_and_clear();
    let ended = ended.map_err(|error| Failure::from(error).about(database))?;
    match ended {
        Ended::Complete => {
            let size = std::fs::metadata(database).map_or(0, |metadata| metadata.len());
            output.line(format!(
                "{} ({} in {})",
                message::SCAN_COMPLETE.with(&name),
                bytes(size),
                seconds(started.elapsed())
            ));
        }
        Ended::Suspended => output
            .line(format!("{name}: the scan is suspended; `pellucid scan resume` goes on with it")),
        Ended::NothingToDo => output.line(format!("{name}: there is nothing to scan")),
    }
    let word = match ended {
        Ended::Complete => "complete",
        Ended::Suspended => "suspended",
        Ended::NothingToDo => "none",
    };
    output.facts(&serde_json::json!({
        "database": database, "scan": word, "pages": most, "seconds": started.elapsed().as_secs_f64(),
    }));
    Ok(ExitCode::SUCCESS)
}

fn start_background(
    database: &Path,
    options: &ScanOptions,
    with: &OpenWith,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("the scan could not be started: {error}"), "leave out --background")
    };
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["--quiet", "scan", "run"]).args(options.arguments()).arg(database);
    // Names of files; their content goes no further than to whoever may read them.
    for (option, file) in
        [("--key-file", &with.key_file), ("--passphrase-file", &with.passphrase_file)]
    {
        if let Some(file) = file {
            command.arg(option).arg(file);
        }
    }
    if with.recovery {
        command.arg("--recovery");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Of its own process group, so that neither Ctrl-C nor the end of the terminal reaches it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.spawn().map_err(failed)?;
    output.line(format!(
        "{}: scanning in process {}; `pellucid scan status` shows how far it is",
        database.display(),
        child.id()
    ));
    output
        .facts(&serde_json::json!({"database": database, "scan": "background", "pid": child.id()}));
    Ok(ExitCode::SUCCESS)
}

/// Shows, suspends or resumes a scan.
pub fn run_scan(args: &ScanArgs, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        ScanCommand::Status(args) => status(&args.databases, output),
        ScanCommand::Suspend(args) => {
            sealed(&args.database)?;
            args.with.offer()?;
            begin()?;
            scan::change_state(&args.database, ScanState::Suspended)
                .map_err(|error| Failure::from(error).about(&args.database))?;
            output.line(format!("{}: the scan stops with its next batch", args.database.display()));
            output.facts(&serde_json::json!({"database": args.database, "scan": "suspended"}));
            Ok(ExitCode::SUCCESS)
        }
        ScanCommand::Verify(args) => {
            sealed(&args.database)?;
            args.with.offer()?;
            begin()?;
            verify(&args.database, output)
        }
        ScanCommand::Run(args) => {
            sealed(&args.database)?;
            args.with.offer()?;
            begin()?;
            go_on(&args.database, &args.scan, &args.with, output)
        }
        ScanCommand::Resume(args) => {
            sealed(&args.database)?;
            refuse_background(&args.scan, &args.with)?;
            args.with.offer()?;
            begin()?;
            scan::change_state(&args.database, ScanState::Running)
                .map_err(|error| Failure::from(error).about(&args.database))?;
            go_on(&args.database, &args.scan, &args.with, output)
        }
    }
}

fn verify(database: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let found = sealed(database)?;
    let bar = output.progress("looking at every page", Unit::Pages);
    let survey = scan::survey(database, &mut |_, done, pages| {
        bar.set_length(pages.into());
        bar.set_position(done.into());
    });
    bar.finish_and_clear();
    let survey = survey.map_err(|error| Failure::from(error).about(database))?;
    let under_way = found.header.scan.state.is_under_way();
    let name = database.display();
    output.line(match (survey.is_current(), under_way) {
        (true, _) => format!("{name}: all of {} pages are under the current key", survey.pages),
        (false, true) => format!(
            "{name}: {} of {} pages are under an older key; the scan is {}",
            survey.older,
            survey.pages,
            found.header.scan.state.name()
        ),
        (false, false) => format!(
            "{name}: {} of {} pages are under a key that the header does not list, the first is page {}; \
             `pellucid check` says what they belong to",
            survey.older,
            survey.pages,
            survey.first.map_or_else(|| "none".to_owned(), |page| page.to_string()),
        ),
    });
    output.facts(&serde_json::json!({
        "database": database, "pages": survey.pages, "older_pages": survey.older,
        "first_older": survey.first, "older_logs": survey.beside, "scan": found.header.scan.state.name(),
    }));
    match survey.is_current() || under_way {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::from(exit::DAMAGE)),
    }
}

fn status(databases: &[PathBuf], output: &Output) -> Result<ExitCode, Failure> {
    let mut table = table(["database", "state", "scan", "done", "since"]);
    let mut facts = Vec::new();
    for database in databases {
        let found = sealed(database)?;
        let scan = &found.header.scan;
        let done =
            percent(&found).map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1} %"));
        let since = if scan.modified == 0 { "-".to_owned() } else { date(scan.modified as i64) };
        table.add_row([
            database.display().to_string(),
            found.header.state.name().to_owned(),
            scan.state.name().to_owned(),
            done,
            since,
        ]);
        facts.push(serde_json::json!({
            "database": database, "state": found.header.state.name(), "scan": scan.state.name(),
            "percent_complete": percent(&found), "modified": scan.modified,
        }));
    }
    output.line(table);
    output.facts(&serde_json::json!({"scans": facts}));
    Ok(ExitCode::SUCCESS)
}

/// How far the scan is, if one is under way and has said so.
pub fn percent(found: &SealedHeader) -> Option<f32> {
    let of_this_scan =
        found.progress.filter(|progress| progress.generation >= found.header.generation);
    found
        .header
        .scan
        .state
        .is_under_way()
        .then(|| of_this_scan.map_or(0.0, |progress| progress.percent()))
}

/// Protects databases by something else; their pages are not touched.
pub fn rewrap(args: &RewrapArgs, output: &Output) -> Result<ExitCode, Failure> {
    let protection = args.new.protection()?;
    args.with.offer()?;
    begin()?;
    let (databases, old) = match &args.all_under {
        Some(name) => {
            let keyring = Keyring::open(&Keyring::locate()?)?;
            let print = *keyring.stored_certificate(name)?.public().thumbprint();
            (keyring.databases_under(&print)?, Some(print))
        }
        None => (args.databases.clone(), None),
    };
    if databases.is_empty() {
        output.line("no database that the keyring knows is under this certificate");
    }
    for database in &databases {
        let started = Instant::now();
        if !matches!(
            inspect(database).map_err(|error| Failure::from(error).about(database))?.kind,
            Kind::Sealed(_)
        ) {
            return Err(Failure::new("it is not encrypted", "see `pellucid status`")
                .kind("plain")
                .about(database));
        }
        protectors::exchange(database, old.as_ref(), &protection)
            .map_err(|error| Failure::from(error).about(database))?;
        output.line(format!(
            "{}: protected anew in {}",
            database.display(),
            seconds(started.elapsed())
        ));
        output.facts(&serde_json::json!({
            "database": database, "state": "rewrapped", "seconds": started.elapsed().as_secs_f64(),
        }));
    }
    if !databases.is_empty() {
        output.warning(
            "copies and backups made before still open with what protected them: their data encryption \
             key is the same; `pellucid rekey` gives a new one",
        );
    }
    Ok(ExitCode::SUCCESS)
}
