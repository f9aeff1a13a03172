//! Waits for the program, and confirms at the end that no connection of it missed the shim.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};

use signal_hook::consts::signal;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::SignalsInfo;

use pellucid::shown::Shown;

use super::plain::Seen;
use super::refusal::Refusal;
use crate::exit;
use crate::output::{tell, word, Id};

/// What is passed on to the program.
const FORWARDED: [i32; 7] = [
    signal::SIGHUP,
    signal::SIGINT,
    signal::SIGQUIT,
    signal::SIGTERM,
    signal::SIGUSR1,
    signal::SIGUSR2,
    signal::SIGWINCH,
];

/// Runs `command` to its end, then looks whether the shim was entered and whether plain databases came into being.
///
/// # Errors
/// [`Refusal`] if the program was not started or cannot be waited for.
pub fn supervise(
    mut command: Command,
    program: &Path,
    named: &[&Path],
) -> Result<ExitCode, Refusal> {
    let witness = Witness::make().map_err(Refusal::Supervision)?;
    command.env("PELLUCID_WITNESS", witness.path());
    let before = Seen::now(named);

    // In place before there is a child, so that no signal is lost between the two.
    let watched = FORWARDED.iter().chain([&signal::SIGCHLD]);
    let mut signals = SignalsInfo::<WithOrigin>::new(watched).map_err(Refusal::Supervision)?;
    let mut child =
        command.spawn().map_err(|error| Refusal::NotStarted(program.to_owned(), error))?;
    let status = wait(&mut child, &mut signals).map_err(Refusal::Supervision)?;

    let own = code(status);
    let confirmed = witness.confirms();
    let newcomers = before.newcomers(named);
    if confirmed && newcomers.is_empty() {
        return Ok(ExitCode::from(own));
    }
    if !confirmed {
        tell(format_args!(
            "pellucid: error: `{}` ended ({status}) and no SQLite connection of it went through the shim [{}]\n",
            program.shown(),
            Id::ShimUnused.word()
        ));
    }
    for path in &newcomers {
        tell(format_args!(
            "pellucid: error: `{}` is a new database, and it is not sealed [{}]\n",
            path.shown(),
            Id::NotSealed.word()
        ));
    }
    match newcomers.first() {
        Some(path) => tell(format_args!("pellucid: hint: `pellucid encrypt {}`\n", word(path))),
        None => tell(
            "pellucid: hint: if it uses SQLite all the same, try `pellucid run --encrypt-new --eager -- ...`\n",
        ),
    }
    // A program that failed says how by its own status.
    Ok(ExitCode::from(if own == 0 { exit::FAILED } else { own }))
}

/// Waits for the child and passes signals on meanwhile.
fn wait(child: &mut Child, signals: &mut SignalsInfo<WithOrigin>) -> io::Result<ExitStatus> {
    loop {
        // The first time round for a child that ended before anything was watched.
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        for origin in signals.wait() {
            // What the terminal sends goes to its whole process group, and so to the child already.
            if origin.signal == signal::SIGCHLD || origin.process.is_none() {
                continue;
            }
            // The child was not waited for since it last was seen alive, so its number is still its own.
            if let Some(signal) = rustix::process::Signal::from_named_raw(origin.signal) {
                // A child that has just ended takes no signals; its status comes next.
                let _ =
                    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal);
            }
        }
    }
}

/// The program's own status; 128 + n for signal n, as shells say it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code & 0xff).ok()).unwrap_or(1)
}

/// A file that the shim adds to when it is entered, and when a program ends without that.
struct Witness {
    directory: tempfile::TempDir,
}

impl Witness {
    const FILE: &str = "entered";

    /// Programs may change their user, so everybody who knows the name may add to the file; the name is not to be
    /// guessed and not to be listed.
    fn make() -> io::Result<Self> {
        let directory =
            tempfile::Builder::new().prefix("pellucid-run-").rand_bytes(16).tempdir()?;
        let witness = Witness { directory };
        File::create_new(witness.path())?;
        fs::set_permissions(witness.path(), Permissions::from_mode(0o622))?;
        fs::set_permissions(witness.directory.path(), Permissions::from_mode(0o711))?;
        Ok(witness)
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join(Self::FILE)
    }

    /// Whether a connection went through the shim, or programs that have SQLite made none at all.
    fn confirms(&self) -> bool {
        let said = fs::read(self.path()).unwrap_or_default();
        said.contains(&b'+') || (said.contains(&b'-') && !said.contains(&b'!'))
    }
}
