//! What is due, in words: what it is about, what is so, what to do.

use std::path::Path;

use pellucid::shown::Shown;
use pellucid_keyring::policy::{Due, Policy};
use pellucid_keyring::{CheckDamage, MasterKey};

use crate::output::{date, word};

/// One thing that is due.
#[derive(Debug)]
pub struct Told {
    /// What it is about.
    pub what: &'static str,
    /// What is so; begins with the name, where there are several.
    pub told: String,
    /// What to do.
    pub todo: String,
    /// The policy that says so.
    pub policy: Option<Policy>,
}

impl Told {
    /// In words.
    pub fn new(due: &Due) -> Self {
        let (what, told, todo) = match due {
            Due::KeyOld { .. } | Due::KeyWorn { .. } | Due::ScanStands { .. } => of_database(due),
            Due::Damaged { .. } | Due::NoCheck { .. } | Due::CheckOld { .. } => of_check(due),
            Due::NoKeyBackup { key } => {
                (key.name(), "it has no backup".to_owned(), key_backup(*key))
            }
            Due::KeyBackupOld { key, at, days } => (
                key.name(),
                format!("it was last backed up on {}, more than {days} days ago", date(*at)),
                format!("see that the backup is still found, or: {}", key_backup(*key)),
            ),
            _ => of_certificate(due),
        };
        Self { what, told, todo, policy: due.policy() }
    }

    /// In a line of its own.
    pub fn line(&self) -> String {
        match self.what {
            "database" => self.told.clone(),
            "certificate" => format!("certificate {}", self.told),
            what => format!("{what}: {}", self.told),
        }
    }

    /// For machines.
    pub fn facts(&self) -> serde_json::Value {
        serde_json::json!({
            "what": self.what, "told": self.told, "todo": self.todo,
            "policy": self.policy.map(Policy::name),
        })
    }
}

fn of_database(due: &Due) -> (&'static str, String, String) {
    let (database, told, command) = match due {
        Due::KeyOld { database, made, days } => (
            database,
            format!(
                "its data encryption key was made on {}, more than {days} days ago",
                date(*made)
            ),
            "rekey",
        ),
        Due::KeyWorn { database, writes, most } => (
            database,
            format!("{writes} writes under its data encryption key, more than {most}"),
            "rekey",
        ),
        Due::ScanStands { database, since } => (
            database,
            format!("nobody goes on with its scan, since {}", date(*since)),
            "scan resume",
        ),
        _ => return Default::default(),
    };
    let name = database.shown();
    (
        "database",
        format!("`{name}`: {told}"),
        format!("`pellucid policy run`, or `pellucid {command} {}`", word(database)),
    )
}

fn of_check(due: &Due) -> (&'static str, String, String) {
    let again = |database: &Path| format!("`pellucid check {}`", word(database));
    let (database, told, todo) = match due {
        Due::Damaged { database, damage } => (
            database,
            format!("its check on {} found {}", date(damage.at), found(damage)),
            format!(
                "restore a backup, or `pellucid salvage {} --to NEW`; a later `pellucid check` that finds nothing clears this",
                word(database)
            ),
        ),
        Due::NoCheck { database } => {
            (database, "no check of it is known that found nothing".to_owned(), again(database))
        }
        Due::CheckOld { database, at, days } => (
            database,
            format!("its last good check was on {}, more than {days} days ago", date(*at)),
            again(database),
        ),
        _ => return Default::default(),
    };
    ("database", format!("`{}`: {told}", database.shown()), todo)
}

/// What a check found, with the first pages.
fn found(damage: &CheckDamage) -> String {
    const NAMED: usize = 5;
    let first: Vec<String> = damage.pages.iter().take(NAMED).map(u32::to_string).collect();
    let more = if damage.pages.len() > NAMED { ", .." } else { "" };
    let errors = match damage.findings {
        1 => "1 error".to_owned(),
        findings => format!("{findings} errors"),
    };
    match &first[..] {
        [] => errors,
        [page] => format!("{errors}, on page {page}"),
        pages => format!("{errors}, on pages {}{more}", pages.join(", ")),
    }
}

fn of_certificate(due: &Due) -> (&'static str, String, String) {
    let again = |name: &str| format!("see that the backup is still found, or: {}", export(name));
    let (told, todo) = match due {
        Due::Expired { certificate, at } => {
            (format!("`{certificate}` expired on {}", date(*at)), another(certificate))
        }
        Due::Expires { certificate, at } => {
            (format!("`{certificate}` expires on {}", date(*at)), another(certificate))
        }
        Due::NotYetValid { certificate, from } => (
            format!("`{certificate}` is valid only from {}", date(*from)),
            "is the clock right?".to_owned(),
        ),
        Due::NoBackup { certificate } => (
            format!(
                "`{certificate}` has no backup that this keyring knows of: whatever it protects is lost with the keyring"
            ),
            export(certificate),
        ),
        Due::BackupOld { certificate, at, days } => (
            format!("`{certificate}` was last backed up on {}, more than {days} days ago", date(*at)),
            again(certificate),
        ),
        Due::BackupBefore { certificate, at, from } => (
            format!(
                "`{certificate}` was last backed up on {}, and it begins on {}: is that its own backup?",
                date(*at),
                date(*from)
            ),
            again(certificate),
        ),
        _ => Default::default(),
    };
    ("certificate", told, todo)
}

fn another(name: &str) -> String {
    format!(
        "it still opens databases; make another with `pellucid cert create`, then `pellucid rewrap --all-under {name} \
         --certificate NEW`"
    )
}

fn export(name: &str) -> String {
    format!(
        "pellucid cert export {name} --cert-file {name}.pem --key-file {name}.key --password-file -"
    )
}

fn key_backup(key: MasterKey) -> String {
    let word = match key {
        MasterKey::Service => "service",
        MasterKey::Database => "master",
    };
    format!("pellucid key backup {word} --file {word}.backup --password-file -")
}
