//! `scan`: what it is doing, suspended, resumed, verified; and the scan itself, here or in a process of its own.

mod background;
mod entry;
pub mod status;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use pellucid::message;
use pellucid::scan::ScanState;
use pellucid::shown::Shown;
use pellucid_backup::job::compare_with_last;
use pellucid_engine::checked::Begun;
use pellucid_engine::scan;
use pellucid_engine::scan::{Ended, Options};
use pellucid_host::DatabaseError;
use pellucid_keyring::CheckFound;

use crate::container::{begin, sealed};
use crate::exit;
use crate::interrupted;
use crate::key_change::ready;
use crate::keys::OpenWith;
use crate::output::{bytes, seconds, word, Failure, Id, Output, Unit};
use entry::Entry;

/// Milliseconds; as long as a busy writer notices least.
const HOLD_MS: u16 = 4;
/// Seconds to wait for others to give way.
const TIMEOUT: u64 = 60;
/// How often to look whether the scan of another process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(200);

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
    /// Show the state and progress of scans; needs no key
    Status(StatusArgs),
    /// Stop a scan after its present batch, until it is resumed
    Suspend(SuspendArgs),
    /// Resume a scan that was suspended, killed or aborted
    Resume(ResumeArgs),
    /// Run the scan for `--background`: goes on with a running scan; one that was suspended meanwhile stays suspended
    #[command(hide = true)]
    Run(ResumeArgs),
    /// List the pages that are still under an older key; exit status 3 if there are any and no scan is under way
    Verify(SuspendArgs),
}

#[derive(Debug, Args)]
struct StatusArgs {
    /// Encrypted databases whose scans are shown [default: those that the keyring knows]
    #[arg(value_name = "DB")]
    databases: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct SuspendArgs {
    /// Encrypted database
    database: PathBuf,
    #[command(flatten)]
    with: OpenWith,
}

#[derive(Debug, Args)]
struct ResumeArgs {
    /// Encrypted database
    database: PathBuf,
    #[command(flatten)]
    scan: ScanOptions,
    #[command(flatten)]
    with: OpenWith,
}

/// How a scan goes about it.
#[derive(Debug, Args)]
pub struct ScanOptions {
    /// Run the scan in the background; `pellucid scan status` shows how far it is
    #[arg(long)]
    background: bool,
    /// Lock other connections out until the scan is done
    #[arg(long)]
    exclusive: bool,
    /// Limit the scan to so many MB a second
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    throttle: Option<u32>,
    /// Milliseconds for which the scan holds the write lock at a time
    #[arg(long, value_name = "MS", default_value_t = HOLD_MS, value_parser = clap::value_parser!(u16).range(1..=1000))]
    hold: u16,
    /// Seconds to wait for locks of other connections
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT)]
    timeout: u64,
}

impl ScanOptions {
    /// Those of a command that leaves them alone.
    pub fn plain(background: bool, timeout: Option<u64>) -> Self {
        let timeout = timeout.unwrap_or(TIMEOUT);
        Self { background, exclusive: false, throttle: None, hold: HOLD_MS, timeout }
    }

    /// In the foreground, and nobody is kept out.
    pub fn here(throttle: Option<u32>, timeout: u64) -> Self {
        Self { throttle, ..Self::plain(false, Some(timeout)) }
    }

    /// A process of its own has no prompt and no descriptor of ours.
    pub fn check(&self, with: &OpenWith) -> Result<(), Failure> {
        let from_here = with.passphrase_file.iter().chain(&with.key_file);
        if self.background && from_here.into_iter().any(|path| path.as_os_str() == "-") {
            return Err(Failure::new(
                Id::BackgroundInput,
                "a scan in the background cannot read a key from standard input",
                "name a file, or put the key into the keyring",
            ));
        }
        Ok(())
    }

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

/// Shows, suspends or resumes a scan.
pub fn run(args: &ScanArgs, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        ScanCommand::Status(args) => status::run(&args.databases, output),
        ScanCommand::Suspend(args) => {
            ready(&args.database, &message::NO_KEY_SET)?;
            args.with.offer()?;
            begin()?;
            scan::change_state(&args.database, ScanState::Suspended)
                .map_err(|error| Failure::from(error).about(&args.database))?;
            output.line(format!("{}: the scan stops with its next batch", args.database.shown()));
            output.facts(&serde_json::json!({"database": crate::output::name(&args.database), "scan": "suspended"}));
            Ok(ExitCode::SUCCESS)
        }
        ScanCommand::Verify(args) => {
            sealed(&args.database)?;
            args.with.offer()?;
            begin()?;
            verify(&args.database, output)
        }
        ScanCommand::Run(args) => {
            let ready =
                sealed(&args.database).and_then(|_| args.with.offer()).and_then(|()| begin());
            ready.inspect_err(|failure| entry::leave(&args.database, failure))?;
            go_on(&args.database, &args.scan, &args.with, output)
        }
        ScanCommand::Resume(args) => {
            let found = ready(&args.database, &message::NO_KEY_SET)?;
            let running = found.header.scan.state == ScanState::Running;
            if running && found.is_scanned == Some(true) {
                let whose = entry::process(&args.database)
                    .map_or_else(String::new, |pid| format!(", in process {pid}"));
                return Err(Failure::new(
                    Id::Scanned,
                    format!("a scan of it is running already{whose}"),
                    "`pellucid scan status` shows how far it is",
                )
                .about(&args.database));
            }
            args.scan.check(&args.with)?;
            args.with.offer()?;
            begin()?;
            scan::change_state(&args.database, ScanState::Running)
                .map_err(|error| Failure::from(error).about(&args.database))?;
            go_on(&args.database, &args.scan, &args.with, output)
        }
    }
}

/// Scans here, or in a process that outlives this one.
pub fn go_on(
    database: &Path,
    options: &ScanOptions,
    with: &OpenWith,
    output: &Output,
) -> Result<ExitCode, Failure> {
    if options.background {
        return background::start(database, options, with, output);
    }
    let name = database.shown().to_string();
    output.line(message::SCAN_BEGINS.with(&name));
    let started = Instant::now();
    let (ended, pages) = match scan_here(database, options, output) {
        Ok(ended) => ended,
        Err(failure) => {
            entry::leave(database, &failure);
            if sealed(database).is_ok_and(|found| found.header.scan.state == ScanState::Aborted) {
                output.message_about(&message::SCAN_ABORTED, &name);
            }
            return Err(failure);
        }
    };
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
        "database": crate::output::name(database), "scan": word, "pages": pages, "seconds": started.elapsed().as_secs_f64(),
    }));
    if ended == Ended::Complete {
        compare(database, options, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares what was scanned with the last full backup. A scan rewrites a page that was put back like any other one, and the key that
/// gave it away is gone then.
fn compare(database: &Path, options: &ScanOptions, output: &Output) -> Result<(), Failure> {
    let begun = Begun::now(database);
    let bar = output.progress("comparing with the last full backup", Unit::Pages);
    let timeout = Duration::from_secs(options.timeout);
    let compared = compare_with_last(database, timeout, &mut |done, pages| {
        bar.set_length(pages.into());
        bar.set_position(done.into());
    });
    bar.finish_and_clear();
    let told = compared.map_err(|error| {
        let failure = Failure::from(error);
        // In the background nobody sees it: `status` tells of it.
        if let (exit::DAMAGE, Ok(found)) = (failure.exit, sealed(database)) {
            let put_back = CheckFound { findings: 1, pages_only: true, ..CheckFound::default() };
            let _ = begun.remember(database, &found.header.file_id, &put_back);
        }
        failure.about(database)
    })?;
    told.iter().for_each(|told| output.warning(told));
    Ok(())
}

/// How it ended, and how many pages there were. While another process scans, waits for that: whatever was asked for,
/// it does it, or leaves it to be gone on with.
fn scan_here(
    database: &Path,
    options: &ScanOptions,
    output: &Output,
) -> Result<(Ended, u32), Failure> {
    let name = database.shown();
    interrupted::answer_with(format_args!(
        "`{name}` is whole and in use as before; `pellucid scan resume {}` goes on with the scan",
        word(database)
    ));
    let bar = output.progress("rewriting", Unit::Pages);
    let mut most = 0;
    let mut waited = false;
    loop {
        let mut entry = Entry::new(database);
        let ended = scan::run(database, &options.options(), &mut |doing, done, pages| {
            entry.told(doing, done, pages);
            bar.set_message(entry::name(doing));
            if pages > 1 {
                most = pages;
                bar.set_length(pages.into());
                bar.set_position(done.into());
            }
        });
        match ended {
            Err(DatabaseError::Scanned { .. }) => {
                if !waited {
                    let whose =
                        entry::process(database).map_or_else(String::new, |pid| format!(" {pid}"));
                    output.line(format!(
                        "{}: waiting for process{whose}, which scans it already",
                        database.shown()
                    ));
                }
                waited = true;
                bar.set_message("waiting for the other scan");
                std::thread::sleep(LOOK_EVERY);
            }
            Err(error) => return Err(Failure::from(error).about(database)),
            Ok(ended) => {
                bar.finish_and_clear();
                entry.remove();
                let by_another = waited && ended == Ended::NothingToDo;
                return Ok((if by_another { Ended::Complete } else { ended }, most));
            }
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
    let name = database.shown();
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
        "database": crate::output::name(database), "pages": survey.pages, "older_pages": survey.older,
        "first_older": survey.first, "older_logs": survey.beside, "scan": found.header.scan.state.name(),
    }));
    match survey.is_current() || under_way {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::from(exit::DAMAGE)),
    }
}
