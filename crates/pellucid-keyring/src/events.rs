//! The event log: who did what to which key and which database. Append-only in the instance, and to syslog.
//!
//! An event is written, and synced, once everything was checked and before anything is changed: whatever was done is in
//! the log, and where the log cannot be written nothing is done. A line may therefore stand for something that failed a
//! moment later. Lines are JSON; none has a secret. Described in docs/format.md, "Event log".

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::syslog::{Facility, Priority, Severity};
use pellucid::error::{Error, Result, Subject};
use pellucid::hash::hex;
use pellucid::shown::printable_json;
use time::format_description::well_known::Rfc3339;

use super::instance;

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// A key or certificate was made.
    Created,
    /// A certificate came in from files, or what an instance is made of from a bundle.
    Imported,
    /// A certificate, without its private key, or a whole instance, sealed, was written to a file.
    Exported,
    /// A private key or a master key was written to a file.
    BackedUp,
    /// A master key came back from its backup.
    Restored,
    /// A master key was replaced by a new one.
    Regenerated,
    /// A key, a certificate, a password or a protector was taken away.
    Dropped,
    /// A password or a protector was added.
    Added,
    /// A database was encrypted.
    Encrypted,
    /// A database was decrypted.
    Decrypted,
    /// What protects a database was exchanged for something else.
    Reprotected,
    /// A database got a new data encryption key.
    Rekeyed,
    /// A copy of a database got a file id and a data encryption key of its own.
    Separated,
    /// A scan was suspended.
    Suspended,
    /// A suspended scan goes on.
    Resumed,
    /// A policy was set or cleared.
    Changed,
    /// Another encrypted database was found at a path than the keyring expects there.
    Replaced,
    /// The rest of a damaged log was kept beside its database.
    Kept,
    /// What is at a path was accepted, although the keyring expected something else.
    Accepted,
}

impl Action {
    /// The word in the log.
    pub fn name(self) -> &'static str {
        match self {
            Action::Created => "created",
            Action::Imported => "imported",
            Action::Exported => "exported",
            Action::BackedUp => "backed up",
            Action::Restored => "restored",
            Action::Regenerated => "regenerated",
            Action::Dropped => "dropped",
            Action::Added => "added",
            Action::Encrypted => "encrypted",
            Action::Decrypted => "decrypted",
            Action::Reprotected => "reprotected",
            Action::Rekeyed => "rekeyed",
            Action::Separated => "separated from its copies",
            Action::Suspended => "suspended",
            Action::Resumed => "resumed",
            Action::Changed => "changed",
            Action::Replaced => "replaced by another one",
            Action::Kept => "kept aside",
            Action::Accepted => "accepted",
        }
    }
}

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    action: Action,
    subject: &'static str,
    name: Option<String>,
    thumbprint: Option<String>,
    forced: bool,
}

impl Event {
    /// Of a kind of thing (`certificate`, `database`, `service master key`).
    pub fn new(action: Action, subject: &'static str) -> Self {
        Self { action, subject, name: None, thumbprint: None, forced: false }
    }

    /// Which one: a name, or a path.
    pub fn of(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A certificate's SHA-256 thumbprint.
    pub fn thumbprint(mut self, thumbprint: &[u8; 32]) -> Self {
        self.thumbprint = Some(hex(thumbprint));
        self
    }

    /// With FORCE: something was lost by it.
    pub fn forced(mut self, forced: bool) -> Self {
        self.forced = forced;
        self
    }

    /// Writes it to the log of the instance that [`super::Keyring::locate`] finds, and to syslog.
    ///
    /// # Errors
    /// As [`Event::record`].
    pub fn record_here(&self) -> Result<()> {
        // A library user with a raw key has no instance; syslog hears of it all the same.
        match instance::locate() {
            Ok(home) => self.record(&home),
            Err(_) => {
                self.tell_syslog(&self.line());
                Ok(())
            }
        }
    }

    /// Writes it to the log of the instance at `home`, where there is one, and to syslog. Whoever may read the instance
    /// but not write to it is recorded by syslog alone.
    ///
    /// # Errors
    /// [`Error::Io`] if the log cannot be written; what was to be done must not be done then.
    pub fn record(&self, home: &Path) -> Result<()> {
        let line = self.line();
        self.tell_syslog(&line);
        if !home.join("keyring").is_dir() {
            return Ok(());
        }
        match append(home, &line) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                Ok(())
            }
            done => done.map_err(|error| Error::io(Subject::File(path(home)), error)),
        }
    }

    fn tell_syslog(&self, line: &str) {
        let priority = Priority::new(Severity::LOG_NOTICE, Facility::LOG_AUTH);
        // As with every program: whether somebody listens there is the machine's business.
        let _ = nix::syslog::syslog(priority, line);
    }

    fn line(&self) -> String {
        let now = time::OffsetDateTime::now_utc();
        let program = std::env::current_exe().ok();
        let mut facts = serde_json::json!({
            "time": now.replace_nanosecond(now.microsecond() * 1000).unwrap_or(now).format(&Rfc3339).ok(),
            "action": self.action.name(),
            "subject": self.subject,
            "uid": rustix::process::getuid().as_raw(),
            "pid": std::process::id(),
            "program": program.map(|path| path.display().to_string()),
        });
        let optional = [("name", &self.name), ("thumbprint_sha256", &self.thumbprint)];
        for (key, value) in optional {
            if let Some(value) = value {
                facts[key] = value.as_str().into();
            }
        }
        if let Some(login) = login_uid() {
            facts["login_uid"] = login.into();
        }
        if self.forced {
            facts["forced"] = true.into();
        }
        printable_json(&facts.to_string()).into_owned()
    }
}

/// Who logged in, when the process now runs as somebody else (`sudo`); Linux keeps it, and no process changes it.
fn login_uid() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/self/loginuid").ok()?;
    text.trim().parse().ok().filter(|uid| *uid != u32::MAX)
}

fn path(home: &Path) -> PathBuf {
    home.join("events.log")
}

/// One write of one line to the end, whoever else writes there.
fn append(home: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path(home))?;
    if let Some(group) = instance::group(home) {
        if file.metadata()?.permissions().mode() & 0o777 == 0o600 {
            std::os::unix::fs::fchown(&file, None, Some(group))?;
            file.set_permissions(PermissionsExt::from_mode(0o640))?;
        }
    }
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data()
}

/// The lines of an instance's log, the oldest first.
///
/// # Errors
/// [`Error::Io`].
pub fn read_events(home: &Path) -> Result<Vec<String>> {
    match std::fs::read_to_string(path(home)) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(Subject::File(path(home)), error)),
    }
}
