//! What the keyring knows: certificates, databases, master keys, policies; and what of it cannot be read.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::protector::Protector;
use pellucid::shown::Shown;
use pellucid::Error;
use pellucid_engine::inspect::{Inspection, Kind, SealedHeader};
use pellucid_files::paths::look_at_name;
use pellucid_keyring::policy::{
    evaluate, CertificateFacts, DatabaseFacts, Due, Facts, MasterKeyFacts, Policies,
};
use pellucid_keyring::{check_events, Check, DatabaseMemory, Keyring, Stored};

use crate::event_log;
use crate::output::Failure;

/// What damage is about where the event log is not as it was written.
pub const EVENT_LOG: &str = "event log";
/// What to do about that.
pub const EVENT_LOG_REMEDY: &str =
    "find out who wrote there, compare with syslog, and keep a copy of the log; `pellucid events \
                                  restart` begins the chain anew";
/// What damage is about where the policies cannot be read.
pub const POLICIES: &str = "policies";
/// What damage is about where something else has the name of a database.
pub const DATABASE: &str = "database";
const POLICIES_TODO: &str =
    "restore the file from a backup of the instance, or start again with `pellucid policy clear`";

/// A keyring that was looked at.
#[derive(Debug, Default)]
pub struct Known {
    /// The certificates that could be read.
    pub certificates: Vec<Stored>,
    /// The names of those that could not.
    pub damaged_certificates: Vec<String>,
    /// Those of the machine's keyring, where this one is the caller's own: they open databases, too.
    pub machines: Vec<Stored>,
    /// Where the databases lie that it knows and that are still there, in order.
    pub databases: Vec<PathBuf>,
    /// What policies are evaluated by.
    pub policies: Policies,
    master_keys: Vec<MasterKeyFacts>,
    keyring: Option<Keyring>,
    /// What cannot be read, with what to do.
    pub damage: Vec<Damage>,
}

/// A file of the keyring that cannot be read, or a database that is none any more.
#[derive(Debug)]
pub struct Damage {
    /// What it is about.
    pub what: &'static str,
    /// What is wrong.
    pub told: String,
    /// What to do.
    pub todo: String,
}

impl Known {
    /// Looks at the keyring of the instance at `home`.
    ///
    /// # Errors
    /// As [`Keyring::open`]: nothing is known then.
    pub fn open(home: &Path) -> Result<Self, Error> {
        let keyring = Keyring::open(home)?;
        let certificates = keyring.find_certificates()?;
        let databases = keyring.find_databases()?;
        let (files, others) = paths(databases.whole);
        let mut known = Self {
            databases: files,
            certificates: certificates.whole,
            machines: keyring
                .behind()
                .and_then(|machine| machine.certificates().ok())
                .unwrap_or_default(),
            ..Self::default()
        };
        for damaged in certificates.damaged {
            let name = damaged.name().to_owned();
            known.damage.push(Damage {
                what: "certificate",
                told: format!("`{name}` cannot be read: {}", damaged.error),
                todo: format!(
                    "restore the file from a backup of the instance; or `pellucid cert drop {name} --force`, and \
                     `pellucid cert import {name}` from its export"
                ),
            });
            known.damaged_certificates.push(name);
        }
        for damaged in databases.damaged {
            known.damage.push(Damage {
                what: "keyring",
                told: format!("what it knows of a database cannot be read: {}", damaged.error),
                todo: "remove the file; `pellucid check DB` makes the database known again"
                    .to_owned(),
            });
        }
        known.damage.extend(others.into_iter().map(|(path, kind)| Damage {
            what: DATABASE,
            told: format!("`{}` is {kind}, where an encrypted database was", path.shown()),
            todo: "find out who put it there, and put the database back".to_owned(),
        }));
        match keyring.policies() {
            Ok(policies) => known.policies = policies,
            Err(error) => known.damage.push(Damage {
                what: POLICIES,
                told: format!(
                    "they cannot be read, so `pellucid policy run` does nothing: {error}"
                ),
                todo: POLICIES_TODO.to_owned(),
            }),
        }
        match keyring.master_key_facts() {
            Ok(master_keys) => known.master_keys = master_keys,
            // One file has both, and is named once.
            Err(_) if known.damage.iter().any(|damage| damage.what == POLICIES) => {}
            Err(error) => known.damage.push(Damage {
                what: "master keys",
                told: format!("when they were backed up cannot be read: {error}"),
                todo: "`pellucid key status` says what is there".to_owned(),
            }),
        }
        known.damage.extend(event_log_damage(home));
        known.keyring = Some(keyring);
        Ok(known)
    }

    /// What checks of a database have found; none if it was never checked, or is not a sealed one.
    ///
    /// # Errors
    /// What is wrong with the memory of it.
    pub fn check_of(&self, found: &Inspection) -> Result<Option<Check>, Error> {
        match (&self.keyring, &found.kind) {
            (Some(keyring), Kind::Sealed(sealed)) => {
                keyring.recall_check(&found.path, &sealed.header.file_id)
            }
            _ => Ok(None),
        }
    }

    /// The format version of databases that are born in the instance.
    pub fn format_version(&self) -> u32 {
        self.policies.format_version()
    }

    fn database_facts(&self, found: &Inspection) -> Option<DatabaseFacts> {
        let facts = database_facts(found)?;
        Some(DatabaseFacts { check: self.check_of(found).ok().flatten(), ..facts })
    }

    /// What is due at `now`, of the keyring and of `databases`.
    pub fn due<'a>(
        &self,
        databases: impl IntoIterator<Item = &'a Inspection>,
        now: i64,
    ) -> Vec<Due> {
        let facts = Facts {
            databases: databases
                .into_iter()
                .filter_map(|found| self.database_facts(found))
                .collect(),
            certificates: self.certificates.iter().map(certificate_facts).collect(),
            master_keys: self.master_keys.clone(),
        };
        evaluate(&self.policies, &facts, now)
    }

    /// Whether a certificate of this keyring opens the database without being asked.
    pub fn opens(&self, sealed: &SealedHeader) -> bool {
        sealed.header.protectors.iter().any(|bytes| match Protector::decode(bytes) {
            Ok((Protector::Certificate(protector), _)) if !protector.is_recovery() => self
                .certificates
                .iter()
                .any(|own| own.public().thumbprint() == protector.thumbprint()),
            _ => false,
        })
    }

    /// The master keys that are the instance's own to keep.
    pub fn master_keys(&self) -> &[MasterKeyFacts] {
        &self.master_keys
    }
}

/// What is not right with the event log of the instance at `home`; none where no key at hand says so.
pub fn event_log_damage(home: &Path) -> Option<Damage> {
    let found = check_events(home).ok()?;
    let told = event_log::wrong(&home.join("events.log"), &found)?;
    Some(Damage { what: EVENT_LOG, told, todo: EVENT_LOG_REMEDY.to_owned() })
}

/// Where databases lie, in order; and where something else has the name of one by now, and what. One that is gone is left out.
fn paths(databases: Vec<DatabaseMemory>) -> (Vec<PathBuf>, Vec<(PathBuf, &'static str)>) {
    let mut paths: Vec<PathBuf> = databases.into_iter().map(|memory| memory.path).collect();
    paths.sort();
    paths.dedup();
    let (files, others): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_file());
    let others = others.into_iter().filter_map(|path| {
        let kind = look_at_name(&path).ok()?.file_type();
        Some((path, kind_of(kind)))
    });
    (files, others.collect())
}

fn kind_of(kind: FileType) -> &'static str {
    match kind {
        _ if kind.is_dir() => "a directory",
        _ if kind.is_symlink() => "a symbolic link to no file",
        _ if kind.is_fifo() => "a FIFO",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

/// What a database tells of itself without a key; none if it is not a sealed one.
pub fn database_facts(found: &Inspection) -> Option<DatabaseFacts> {
    let Kind::Sealed(sealed) = &found.kind else { return None };
    let progress = sealed.progress.as_ref();
    Some(DatabaseFacts::new(&found.path, &sealed.header, progress, sealed.key_writes()))
}

fn certificate_facts(stored: &Stored) -> CertificateFacts {
    CertificateFacts {
        name: stored.public().name().to_owned(),
        validity: stored.public().validity(),
        // One that is elsewhere is not this keyring's to back up.
        has_private_key: stored.has_private_key() && stored.place().is_none(),
        backed_up: stored.backed_up().and_then(|at| i64::try_from(at).ok()),
    }
}

/// A database that the keyring knows under a certificate.
pub struct User {
    /// Where it lies or lay; empty if that was never known.
    pub path: PathBuf,
    /// Whether it is there: one on a disk that is not mounted is not, and needs the certificate as much.
    pub is_there: bool,
}

/// The databases that the keyring knows under a certificate, in order; one whose encryption is switched off needs it, too.
pub fn databases_under(keyring: &Keyring, thumbprint: &[u8; 32]) -> Result<Vec<User>, Failure> {
    let known = keyring.find_databases()?.all()?.into_iter();
    let under = known.filter(|memory| memory.certificates.contains(thumbprint));
    let mut paths: Vec<PathBuf> = under.map(|memory| memory.path).collect();
    paths.sort();
    paths.dedup();
    let user = |path: PathBuf| User { is_there: path.exists(), path };
    Ok(paths.into_iter().map(user).collect())
}

/// Says so, if certificates alone open the database and none of them is in the keyring, nor in the machine's.
pub fn certificate_gone(sealed: &SealedHeader, known: &Known) -> Option<String> {
    let mut gone = None;
    for bytes in &sealed.header.protectors {
        // A passphrase or key file is not the keyring's to judge.
        let Ok((Protector::Certificate(protector), _)) = Protector::decode(bytes) else {
            return None;
        };
        let has = |stored: &Stored| {
            stored.has_private_key() && stored.public().thumbprint() == protector.thumbprint()
        };
        if known.certificates.iter().chain(&known.machines).any(has) {
            return None;
        }
        let damaged = known.damaged_certificates.iter().any(|name| name == protector.name());
        gone = Some(format!(
            "its certificate `{}` {} (SHA-256 thumbprint {})",
            protector.name(),
            if damaged { "cannot be read" } else { "is gone" },
            hex(protector.thumbprint())
        ));
    }
    gone
}
