//! A scan in a process of its own, which survives the terminal and whoever started it.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use pellucid::shown::Shown;

use super::{entry, ScanOptions};
use crate::keys::OpenWith;
use crate::output::{Failure, Id, Output};

/// How long to wait for the scan to have begun: a passphrase takes its time, and so does a busy machine. Who looks after it
/// right afterwards finds it.
const BEGUN_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long a scan has its turn before it has begun, though it leaves no word: in somebody else's entry it cannot. One that
/// cannot read the database gives the turn back sooner.
const SILENT_FOR: Duration = Duration::from_secs(1);

/// Starts it, and returns once it has begun, or has told why it cannot.
pub fn start(
    database: &Path,
    options: &ScanOptions,
    with: &OpenWith,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(
            Id::BackgroundNotStarted,
            format!("the scan could not be started in the background: {error}"),
            "run it in the foreground: leave out `--background`",
        )
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
    if pellucid_keyring::is_cost_allowed() {
        command.arg("--allow-cost");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Of its own process group, so that neither Ctrl-C nor the end of the terminal reaches it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(failed)?;
    wait_for_begin(&mut child, database)?;
    output.line(format!(
        "{}: scanning in process {}; `pellucid scan status` shows how far it is",
        database.shown(),
        child.id()
    ));
    output
        .facts(&serde_json::json!({"database": crate::output::name(database), "scan": "background", "pid": child.id()}));
    Ok(ExitCode::SUCCESS)
}

fn wait_for_begin(child: &mut Child, database: &Path) -> Result<(), Failure> {
    let started = Instant::now();
    let mut seen = None;
    while started.elapsed() < BEGUN_WITHIN {
        // It may be this one, or another that it waits for.
        match entry::running(database) {
            Some(Some(_)) => return Ok(()),
            Some(None) if seen.get_or_insert_with(Instant::now).elapsed() >= SILENT_FOR => {
                return Ok(());
            }
            Some(None) => {}
            None => seen = None,
        }
        let ended = child.try_wait();
        if let Ok(Some(status)) = ended {
            return match (status.success(), entry::stopped(database)) {
                (true, _) => Ok(()),
                (false, Some(stopped)) => {
                    Err(Failure::new(Id::BackgroundFailed, stopped.error, stopped.hint))
                }
                (false, None) => Err(Failure::new(
                    Id::BackgroundFailed,
                    "the scan ended at once",
                    "leave out `--background` to see its error",
                )
                .about(database)),
            };
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
