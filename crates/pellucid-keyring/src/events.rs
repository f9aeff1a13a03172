//! The event log: who did what to which key and which database. Append-only in the instance, and to syslog.
//!
//! An event is written, and synced, once everything was checked and before anything is changed: whatever was done is in
//! the log, and where the log cannot be written nothing is done. A line may therefore stand for something that failed a
//! moment later. Opens, checks and verifications are noted where that is possible without waiting. Lines are JSON; none has
//! a secret. Each line is chained to the one before, so that one that is changed or taken away is missed. Described in
//! docs/format.md, "Event log".

mod chain;
mod log;
mod parts;
mod waiting;

use std::path::Path;

use nix::syslog::{Facility, Priority, Severity};
use pellucid::error::Result;
use pellucid::hash::hex;
use pellucid::shown::printable_json;
use serde_json::{Map, Value};
use time::format_description::well_known::Rfc3339;

use super::broker::Peer;
use super::{instance, Keyring};
pub use chain::{EventLog, LogBreak, Wrong};
pub use log::check_events;
pub(super) use log::{carry_over, file};

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
    /// A private key or a master key was written to a file, or a database to backup media.
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
    /// A sealed database was opened with a key.
    Opened,
    /// The pages of a database were checked with a key.
    Checked,
    /// The intact content of a damaged database was copied into a new one, which is encrypted.
    Salvaged,
    /// A backup was read and checked.
    Verified,
    /// A database got the newer format version.
    Upgraded,
    /// A database went back to the older format version.
    Downgraded,
    /// The wal-index of a database was moved into the machine's memory.
    IndexToMemory,
    /// The wal-index of a database was moved back into its file.
    IndexToFile,
    /// A database got another recovery model.
    RecoveryModel,
    /// A restore of a database ended, or left it restoring or as a standby; or a backup of its tail left it restoring.
    Standing,
    /// A chain of log backups of a database begins.
    LogChainBegun,
    /// The archive of a chain of log backups knows less than the keyring: it was put back.
    LogChainPutBack,
    /// The chain of the event log was begun anew.
    Restarted,
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
            Action::Opened => "opened",
            Action::Checked => "checked",
            Action::Salvaged => "salvaged",
            Action::Verified => "verified",
            Action::Upgraded => "upgraded",
            Action::Downgraded => "downgraded",
            Action::IndexToMemory => "index moved into memory",
            Action::IndexToFile => "index moved into the file",
            Action::RecoveryModel => "recovery model set",
            Action::Standing => "restore state set",
            Action::LogChainBegun => "chain of log backups begun",
            Action::LogChainPutBack => "chain of log backups put back",
            Action::Restarted => "restarted",
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
    file_id: Option<String>,
    forced: bool,
    in_clear: bool,
    peer: Option<Peer>,
}

impl Event {
    /// Of a kind of thing (`certificate`, `database`, `service master key`).
    pub fn new(action: Action, subject: &'static str) -> Self {
        Self {
            action,
            subject,
            name: None,
            thumbprint: None,
            file_id: None,
            forced: false,
            in_clear: false,
            peer: None,
        }
    }

    /// Done for somebody else, who asked this process for it.
    pub(super) fn by(mut self, peer: &Peer) -> Self {
        self.peer = Some(peer.clone());
        self
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

    /// The file id of a database.
    pub fn file_id(mut self, file_id: &[u8; 16]) -> Self {
        self.file_id = Some(hex(file_id));
        self
    }

    /// With FORCE: something was lost by it.
    pub fn forced(mut self, forced: bool) -> Self {
        self.forced = forced;
        self
    }

    /// In clear: whoever reads the file that is made needs no key.
    pub fn in_clear(mut self, in_clear: bool) -> Self {
        self.in_clear = in_clear;
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
                tell_syslog(&line_of(self.facts()));
                Ok(())
            }
        }
    }

    /// Writes it to the log of the instance at `home`, where there is one, and to syslog. Of an account that may read the
    /// instance and not write its log, it is written to a file of that account, from where the next writer takes it in.
    ///
    /// # Errors
    /// [`pellucid::Error::Io`] if it can be written nowhere; what was to be done must not be done then.
    pub fn record(&self, home: &Path) -> Result<()> {
        self.record_with(home, None)
    }

    /// The same for the instance of an opened keyring, which may be open by a password alone.
    ///
    /// # Errors
    /// As [`Event::record`].
    pub(super) fn record_by(&self, keyring: &Keyring) -> Result<()> {
        self.record_with(keyring.home(), Some(keyring))
    }

    fn record_with(&self, home: &Path, keyring: Option<&Keyring>) -> Result<()> {
        let facts = self.facts();
        if home.join("keyring").is_dir() {
            return log::record(home, facts, keyring, &tell_syslog);
        }
        tell_syslog(&line_of(facts));
        Ok(())
    }

    /// Notes it for the log of the instance that [`Keyring::locate`] finds, if there is one and that is possible without
    /// waiting: the next writer of the log takes it in. Syslog, which may wait, does not hear of it.
    pub fn note_here(&self) {
        let Ok(home) = instance::locate() else { return };
        if home.join("keyring").is_dir() {
            // Whoever may only read the instance, or has no room left, opens all the same.
            let _ = waiting::put(&home, self.facts(), false);
        }
    }

    fn facts(&self) -> Map<String, Value> {
        let now = time::OffsetDateTime::now_utc();
        let (uid, pid, program) = match &self.peer {
            Some(peer) => (peer.uid, peer.pid, peer.program.clone()),
            None => {
                let uid = rustix::process::getuid().as_raw();
                (uid, std::process::id(), std::env::current_exe().ok())
            }
        };
        let mut facts = serde_json::json!({
            "time": now.replace_nanosecond(now.microsecond() * 1000).unwrap_or(now).format(&Rfc3339).ok(),
            "action": self.action.name(),
            "subject": self.subject,
            "uid": uid,
            "pid": pid,
            "program": program.map(|path| path.display().to_string()),
        });
        let optional = [
            ("name", &self.name),
            ("thumbprint_sha256", &self.thumbprint),
            ("file_id", &self.file_id),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                facts[key] = value.as_str().into();
            }
        }
        match &self.peer {
            // Nothing else of what is said here is the broker's own.
            Some(_) => facts["by_broker"] = true.into(),
            None => {
                if let Some(login) = login_uid() {
                    facts["login_uid"] = login.into();
                }
            }
        }
        if self.forced {
            facts["forced"] = true.into();
        }
        if self.in_clear {
            facts["in_clear"] = true.into();
        }
        match facts {
            Value::Object(facts) => facts,
            _ => Map::new(),
        }
    }
}

fn tell_syslog(line: &str) {
    let priority = Priority::new(Severity::LOG_NOTICE, Facility::LOG_AUTH);
    // As with every program: whether somebody listens there is the machine's business.
    let _ = nix::syslog::syslog(priority, line);
}

/// Who logged in, when the process now runs as somebody else (`sudo`); Linux keeps it, and no process changes it.
fn login_uid() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/self/loginuid").ok()?;
    text.trim().parse().ok().filter(|uid| *uid != u32::MAX)
}

/// The events of an instance, the oldest first: the lines of its log, with those that wait to be taken in where their time
/// puts them, as far as the caller may read them.
///
/// # Errors
/// [`pellucid::Error::Io`].
pub fn read_events(home: &Path) -> Result<Vec<String>> {
    let bytes = log::bytes(home)?;
    let mut lines: Vec<String> =
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect();
    let time = |facts: &Map<String, Value>| {
        let text = facts.get("time").and_then(Value::as_str).unwrap_or_default();
        time::OffsetDateTime::parse(text, &Rfc3339).ok()
    };
    let mut waiting = waiting::list(home);
    waiting.sort_by_key(|facts| time(facts));
    for facts in waiting.into_iter().rev() {
        let is_earlier = |line: &String| {
            let before = serde_json::from_str(line).ok().and_then(|facts| time(&facts));
            before.is_none_or(|before| Some(before) <= time(&facts))
        };
        // The lines of the log stay in the order of the log.
        let at = lines.iter().rposition(is_earlier).map_or(0, |at| at + 1);
        lines.insert(at, line_of(facts));
    }
    Ok(lines)
}

/// Begins the chain of an instance's event log anew, over what the log has now, and records that. For whoever has seen what
/// is not right with it, and put it on record elsewhere.
///
/// # Errors
/// As [`Keyring::open`]; [`pellucid::Error::Io`].
pub fn restart_events(home: &Path) -> Result<()> {
    let event = Event::new(Action::Restarted, "chain of the event log");
    log::restart(home, event.facts(), &tell_syslog)
}

#[cfg(test)]
mod tests;

/// A line of JSON without control characters.
fn line_of(facts: Map<String, Value>) -> String {
    printable_json(&Value::Object(facts).to_string()).into_owned()
}
