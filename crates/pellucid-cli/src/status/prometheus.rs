//! The same facts as metrics, in Prometheus's text format.
//!
//! For node_exporter's textfile collector: `pellucid status --prometheus > pellucid.prom`. Names and labels are in
//! docs/guide/watching.md, "Monitoring".

use std::fmt::Error;
use std::os::unix::ffi::OsStrExt;

use pellucid::facts::KeyFacts;
use pellucid::hash::hex;
use pellucid::keys::GENERATION_WRITES;
use pellucid::shown::{printable_lines, Shown};
use pellucid_backup::history::{whole_name, History};
use pellucid_engine::inspect::{Inspection, Kind};
use pellucid_keyring::policy::{Due, Policy, DAY_SECONDS};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use time::macros::format_description;
use time::PrimitiveDateTime;

use crate::archived::Archived;
use crate::known::{database_facts, Damage, Known, DATABASE, EVENT_LOG};

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge>;

/// What there is to tell.
pub struct Facts<'a> {
    pub databases: &'a [Inspection],
    pub known: &'a Known,
    pub due: &'a [Due],
    pub warnings: usize,
    /// Seconds since 1970.
    pub now: i64,
}

/// All of them, as text.
pub fn metrics(facts: &Facts<'_>) -> Result<String, Error> {
    let mut metrics = Metrics(Registry::with_prefix("pellucid"));
    of_databases(facts, &mut metrics);
    of_backups(facts, &mut metrics);
    of_archives(facts, &mut metrics);
    of_certificates(facts, &mut metrics);
    of_master_keys(facts, &mut metrics);
    let findings = metrics.family("policy_findings", "What is due, by the policy that says so");
    for policy in Policy::ALL {
        let count = facts.due.iter().filter(|due| due.policy() == Some(policy)).count();
        let labels = vec![("policy", policy.name().to_owned())];
        findings.get_or_create(&labels).set(signed(count as u64));
    }
    metrics.one(
        "keyring_damaged_files",
        "Files of the keyring that cannot be read",
        facts.known.damage.iter().filter(|one| ![EVENT_LOG, DATABASE].contains(&one.what)).count()
            as u64,
    );
    let is_log = |one: &&Damage| one.what == EVENT_LOG;
    metrics.one(
        "event_log_broken",
        "Whether a line of the event log was changed or taken away",
        facts.known.damage.iter().filter(is_log).count() as u64,
    );
    metrics.one("warnings", "What `pellucid status` warns about", facts.warnings as u64);
    let mut text = String::new();
    encode(&mut text, &metrics.0)?;
    Ok(in_order(&text))
}

/// The samples of each metric by their labels: two looks at the same facts are equal byte for byte, whatever order a family
/// keeps them in.
fn in_order(text: &str) -> String {
    let mut lines: Vec<_> = text.lines().collect();
    for samples in lines.split_mut(|line| line.starts_with('#')) {
        samples.sort_unstable();
    }
    lines.join("\n") + "\n"
}

struct Metrics(Registry);

impl Metrics {
    fn family(&mut self, name: &str, help: &str) -> Gauges {
        let gauges = Gauges::default();
        self.0.register(name, help, gauges.clone());
        gauges
    }

    fn one(&mut self, name: &str, help: &str, value: u64) {
        let gauge = Gauge::<i64>::default();
        gauge.set(signed(value));
        self.0.register(name, help, gauge);
    }
}

fn of_databases(facts: &Facts<'_>, metrics: &mut Metrics) {
    let state = metrics.family(
        "database_encryption_state",
        "State as in sys.dm_database_encryption_keys: 0 no key (plain), 1 switched off, 2 encrypting, 3 encrypted, 4 key change, 5 \
         decrypting, 6 protection change; -1 cannot be read",
    );
    let size = metrics.family("database_size_bytes", "Size of the file");
    let age = metrics.family("database_key_age_seconds", "Age of the data encryption key");
    let writes = metrics.family(
        "database_key_writes",
        "Writes under the data encryption key, rounded up to what was reserved",
    );
    let used = metrics.family(
        "database_generation_writes",
        "How much of pellucid_generation_writes_limit the present generation of keys has used; the next begins by itself",
    );
    let good = metrics.family(
        "database_last_good_check_timestamp_seconds",
        "When the last check that found nothing ended; 0 where none is known",
    );
    let findings = metrics.family(
        "database_check_findings",
        "What a check has found and no later one has found mended; -1 if the memory of it cannot be read",
    );
    for found in facts.databases {
        let labels = of_database(found);
        state.get_or_create(&labels).set(number(&found.kind));
        size.get_or_create(&labels).set(signed(found.bytes));
        if let (Kind::Sealed(sealed), Some(of)) = (&found.kind, database_facts(found)) {
            let (at, count) = match facts.known.check_of(found) {
                Ok(Some(check)) => {
                    (check.good_at, check.damage.map_or(0, |damage| damage.findings.into()))
                }
                Ok(None) => (0, 0),
                Err(_) => (0, -1),
            };
            good.get_or_create(&labels).set(signed(at));
            findings.get_or_create(&labels).set(count);
            age.get_or_create(&labels).set(facts.now.saturating_sub(of.key_made).max(0));
            writes.get_or_create(&labels).set(signed(of.key_writes));
            used.get_or_create(&labels).set(signed(sealed.generation_writes()));
        }
    }
    metrics.one(
        "generation_writes_limit",
        "Writes that a generation of keys is used for",
        GENERATION_WRITES,
    );
}

fn of_backups(facts: &Facts<'_>, metrics: &mut Metrics) {
    let last = metrics.family(
        "database_last_backup_timestamp_seconds",
        "When the last whole backup that the history knows of the database was finished; 0 where it knows none",
    );
    let sets = pellucid_bundled::register().ok().and_then(|()| match History::open() {
        Ok(Some(history)) => history.sets(None).ok(),
        Ok(None) => Some(Vec::new()),
        Err(_) => None,
    });
    metrics.one(
        "history_unreadable",
        "Whether the backup history cannot be read; it then says nothing of backups",
        sets.is_none().into(),
    );
    let Some(sets) = sets else { return };
    for found in facts.databases {
        let path = whole_name(&found.path).display().to_string();
        // What was written to `NUL` is nowhere.
        let is_kept = |files: &[String]| files.iter().any(|file| file != "NUL");
        let whole =
            sets.iter().filter(|set| !set.damaged && set.gone.is_empty() && is_kept(&set.files));
        let times = whole.filter(|set| set.path == path).filter_map(|set| seconds(&set.finished));
        last.get_or_create(&of_database(found)).set(times.max().unwrap_or(0));
    }
}

fn of_archives(facts: &Facts<'_>, metrics: &mut Metrics) {
    let behind = metrics.family(
        "database_archive_behind_seconds",
        "How long ago the place that `pellucid archive` ships to had all that was committed; 0 where nothing was committed since. \
         Absent where no archiver is known",
    );
    let until = metrics.family(
        "database_archive_complete_timestamp_seconds",
        "All that was committed before is in the place that `pellucid archive` ships to; 0 where that is not known",
    );
    let failing = metrics.family(
        "database_archive_failing",
        "Whether the last try of `pellucid archive` to ship the database failed",
    );
    for found in facts.databases {
        let Some(archived) = Archived::of_found(found) else { continue };
        let labels = of_database(found);
        behind.get_or_create(&labels).set(signed(archived.behind));
        until.get_or_create(&labels).set(signed(archived.until()));
        failing.get_or_create(&labels).set(archived.is_failing().into());
    }
}

/// Seconds since 1970 of a time of the history, `2026-11-22 03:00:00.123456`, UTC.
fn seconds(at: &str) -> Option<i64> {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    let whole = at.split_once('.').map_or(at, |(whole, _)| whole);
    Some(PrimitiveDateTime::parse(whole, format).ok()?.assume_utc().unix_timestamp())
}

/// Its name; where that is not shown as it is, its bytes too: two databases never have the same labels, of which the second would hide
/// what the first one needs.
fn of_database(found: &Inspection) -> Labels {
    let shown = match found.path.to_str() {
        Some(text) => printable_lines(text).into_owned(),
        None => found.path.shown().to_string(),
    };
    let bytes = found.path.as_os_str().as_bytes();
    let is_whole = shown.as_bytes() == bytes;
    let mut labels = vec![("database", shown)];
    if !is_whole {
        labels.push(("database_bytes", hex(bytes)));
    }
    labels
}

fn of_certificates(facts: &Facts<'_>, metrics: &mut Metrics) {
    let expiry =
        metrics.family("certificate_expiry_timestamp_seconds", "When the certificate expires");
    let days = metrics.family(
        "certificate_expiry_days",
        "Whole days until the certificate expires; negative once it has",
    );
    let backup = metrics.family(
        "certificate_backup_timestamp_seconds",
        "When its private key was last backed up; 0 never, absent where there is no private key here",
    );
    let age = metrics.family(
        "certificate_backup_age_seconds",
        "Age of the last backup of its private key; absent where there is none",
    );
    for stored in &facts.known.certificates {
        let public = stored.public();
        let labels = vec![
            ("certificate", public.name().to_owned()),
            ("thumbprint_sha256", hex(public.thumbprint())),
        ];
        let to = public.validity().1;
        expiry.get_or_create(&labels).set(to);
        days.get_or_create(&labels).set(to.saturating_sub(facts.now).div_euclid(DAY_SECONDS));
        if stored.has_private_key() && stored.place().is_none() {
            let at = stored.backed_up().map(signed);
            backup.get_or_create(&labels).set(at.unwrap_or(0));
            if let Some(at) = at {
                age.get_or_create(&labels).set(facts.now.saturating_sub(at).max(0));
            }
        }
    }
}

fn of_master_keys(facts: &Facts<'_>, metrics: &mut Metrics) {
    let backup = metrics.family(
        "master_key_backup_timestamp_seconds",
        "When the master key was last backed up; 0 never, absent where a provider has it",
    );
    let age = metrics.family(
        "master_key_backup_age_seconds",
        "Age of the last backup of the master key; absent where there is none",
    );
    for of in facts.known.master_keys() {
        let labels = vec![("key", of.key.name().to_owned())];
        backup.get_or_create(&labels).set(of.backed_up.unwrap_or(0));
        if let Some(at) = of.backed_up {
            age.get_or_create(&labels).set(facts.now.saturating_sub(at).max(0));
        }
    }
}

fn number(kind: &Kind) -> i64 {
    match kind {
        Kind::Empty | Kind::Plain => KeyFacts::of_plain().state.into(),
        Kind::Sealed(sealed) => KeyFacts::of(&sealed.header, sealed.percent()).state.into(),
        _ => -1,
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
