//! Scans and first encryptions in processes of their own, which outlive the session.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pellucid_files::paths::copy_path;
use pellucid_keyring::{ProcessId, Run};

use super::Done;
use crate::message::{table, Message};
use crate::session::Session;

/// How long to wait for the work to have begun: a script that asks for the state right afterwards, and goes on when nothing
/// is under way any more, has to find it under way, on a busy machine too.
const BEGUN_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Bytes of what a process says before it ends.
const TOLD_BYTES_MOST: u64 = 4096;

/// What of the environment it needs: places, language, and the names of files with keys.
const KEPT: [&str; 17] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "CREDENTIALS_DIRECTORY",
    "PELLUCID_KEY_FILE",
    "PELLUCID_PASSPHRASE_FILE",
    "PELLUCID_RECOVERY",
    "PELLUCID_SERVICE_PASSPHRASE_FILE",
    "PELLUCID_PLUGINS",
    "PELLUCID_PLUGIN_PATH",
];

/// A process and when it began, in the kernel's ticks.
pub(crate) type Process = (u32, u64);

/// Whether that process is still running.
pub(crate) fn state_of_process((pid, began): Process) -> bool {
    ProcessId { pid, began, boot: ProcessId::own().boot }.is_alive()
}

impl Session {
    /// Scans a database in the background; returns once the scan has begun.
    pub(super) fn start_scan(&mut self, database: &Path) -> Done {
        let mut child = self.spawn(&["scan", "run"], database)?;
        let home = self.databases.instance.home().to_owned();
        let pid = child.id();
        let is_begun = || {
            Run::find(&home, database)
                .is_some_and(|run| run.stopped.is_none() && run.process.pid == pid)
        };
        wait(&mut child, is_begun)?;
        reap(child);
        Ok(())
    }

    /// Encrypts a plain database in the background; returns once its copy is begun. A small one is done by then.
    pub(super) fn start_encryption(
        &mut self,
        database: &Path,
        certificate: &str,
        algorithm: &str,
    ) -> Done<Option<Process>> {
        let certificate = format!("--certificate={certificate}");
        let arguments = ["encrypt", &certificate, "--algorithm", algorithm, "--timeout", "3600"];
        let mut child = self.spawn(&arguments, database)?;
        let copy = copy_path(database);
        wait(&mut child, || copy.exists())?;
        let process = began(child.id()).map(|began| (child.id(), began));
        reap(child);
        Ok(process)
    }

    fn spawn(&self, arguments: &[&str], database: &Path) -> Done<Child> {
        let Some(program) = &self.program else {
            return Err(Message::unsupported(
                "work in the background without the program `pellucid`",
            )
            .into());
        };
        let mut command = Command::new(program);
        command.arg("--quiet").args(arguments);
        if arguments.first() == Some(&"encrypt") {
            for extension in &self.load {
                command.arg("--load").arg(extension);
            }
        }
        command.arg("--").arg(database);
        // Its environment is seen as long as it runs, and scripts take passwords from theirs.
        command.env_clear();
        command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.env("PELLUCID_HOME", self.databases.instance.home());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Of its own process group, so that neither Ctrl-C nor the end of the terminal reaches it.
        command.process_group(0);
        let failed = |error| Message::of(table::WORK_NOT_STARTED, [&error]);
        Ok(command.spawn().map_err(failed)?)
    }
}

fn wait(child: &mut Child, is_begun: impl Fn() -> bool) -> Done {
    let started = Instant::now();
    while started.elapsed() < BEGUN_WITHIN && !is_begun() {
        if let Ok(Some(status)) = child.try_wait() {
            if status.success() {
                return Ok(());
            }
            let mut told = String::new();
            if let Some(stderr) = child.stderr.take() {
                // What it says helps; without it the number has to do.
                let _ = stderr.take(TOLD_BYTES_MOST).read_to_string(&mut told);
            }
            return Err(Message::of(table::WORK_NOT_STARTED, [&why(&told)]).into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// The error and the hint that a process ended with, in one line.
fn why(told: &str) -> String {
    let mut lines = told.lines().map(str::trim_end);
    let error = lines.next().unwrap_or_default().trim_start_matches("pellucid: ");
    let hint = lines.find_map(|line| line.strip_prefix("pellucid: hint: "));
    match (error, hint) {
        ("", _) => "it ended at once".to_owned(),
        (error, None) => error.to_owned(),
        (error, Some(hint)) => format!("{error}; {hint}"),
    }
}

/// One that has ended is asked for its status, or it would stay in the list of processes.
fn reap(mut child: Child) {
    drop(child.stderr.take());
    std::thread::spawn(move || {
        let _ = child.wait();
    });
}

/// proc_pid_stat(5), field 22.
fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}
