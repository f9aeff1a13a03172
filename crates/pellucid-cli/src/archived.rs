//! How far a database is archived: what the history knows of its archiver, and how its files look.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pellucid::header::Header;
use pellucid::shown::{printable, Shown};
use pellucid_backup::history::{whole_name, ArchiverRecord, History};
use pellucid_engine::inspect::{Inspection, Kind};
use pellucid_engine::log_chain::chain_of;
use pellucid_files::paths::{beside, look_at_name, names_in};
use pellucid_vfs::log_archive;
use serde_json::{json, Value};

use crate::output::{moment, now, seconds, table, Grid};

/// So late a database may be before anybody is told: a minute, or ten of its intervals; an hour where a timer ships it.
const LATE_SECONDS: u64 = 60;
const LATE_INTERVALS: u64 = 10;
const LATE_SECONDS_OF_TIMER: u64 = 3600;
const MICROS: u64 = 1_000_000;

/// How far a database is archived.
#[derive(Debug)]
pub struct Archived {
    record: ArchiverRecord,
    /// Seconds since all that was committed was in the place, if something was committed since.
    pub behind: u64,
}

impl Archived {
    /// What is known of a database; none if it has no chain, or no archiver of this instance ships it.
    pub fn of(path: &Path, header: &Header) -> Option<Self> {
        chain_of(header)?;
        pellucid_bundled::register().ok()?;
        // A history that cannot be read says nothing.
        let records = History::open().ok()??.archivers().ok()?;
        let whole = whole_name(path);
        let record = records.into_iter().find(|record| record.database == whole)?;
        let until = record.until;
        let now = u64::try_from(now()).unwrap_or(0);
        let behind = match changed(path) > until {
            true => now.saturating_sub(until / MICROS),
            false => 0,
        };
        Some(Self { record, behind })
    }

    /// The same of what was inspected.
    pub fn of_found(found: &Inspection) -> Option<Self> {
        match &found.kind {
            Kind::Sealed(sealed) => Self::of(&found.path, &sealed.header),
            _ => None,
        }
    }

    /// Whether it fails.
    pub fn is_failing(&self) -> bool {
        self.record.failing_since > 0 || !self.record.error.is_empty()
    }

    /// Seconds since 1970 of the moment up to which everything is in the place.
    pub fn until(&self) -> u64 {
        self.record.until / MICROS
    }

    /// Where its commits go.
    pub fn place(&self) -> &str {
        &self.record.place
    }

    /// What is wrong with it, and what to do.
    pub fn trouble(&self, path: &Path) -> Option<(String, &'static str)> {
        let record = &self.record;
        let late = match record.is_once {
            true => LATE_SECONDS_OF_TIMER,
            false => LATE_SECONDS.max(LATE_INTERVALS * record.every_seconds),
        };
        let (shown, place) = (path.shown(), record.place.shown());
        if self.is_failing() {
            let told = format!(
                "`{shown}`: its commits do not get to `{place}`: {}",
                printable(&record.error)
            );
            return Some((
                told,
                "nothing is lost while the disk has room; the archiver tries again by itself",
            ));
        }
        (self.behind > late).then(|| {
            let behind = seconds(std::time::Duration::from_secs(self.behind));
            let told = format!("`{shown}`: `{place}` is {behind} behind it");
            (told, "see whether `pellucid archive` runs: `systemctl status 'pellucid-archive@*'`")
        })
    }

    /// For machines.
    pub fn facts(&self) -> Value {
        let at = |micros: u64| (micros > 0).then(|| moment(micros / MICROS));
        json!({
            "to": self.record.place, "complete_until": at(self.record.until), "behind_seconds": self.behind,
            "failing_since": at(self.record.failing_since), "failing": self.is_failing(),
            "last_seen": at(self.record.alive),
        })
    }
}

/// When something was committed last, by the files, in microseconds since 1970. Not before that, at least.
fn changed(database: &Path) -> u64 {
    let archive = log_archive::path_of(database);
    let is_kept = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".frames");
    let kept = names_in(&archive).unwrap_or_default().into_iter().filter(is_kept);
    let files = kept.map(|name| archive.join(name)).chain([beside(database, "-wal")]);
    let at = |path: std::path::PathBuf| {
        let found = look_at_name(&path).ok()?;
        let micros = i128::from(found.mtime()) * 1_000_000 + i128::from(found.mtime_nsec()) / 1000;
        u64::try_from(micros).ok()
    };
    files.filter_map(at).max().unwrap_or(0)
}

/// How far the ones among `rows` are that are archived; none if there are none.
pub fn archive_table(rows: &[Inspection]) -> Option<Grid> {
    let mut table = table(["archived", "to", "behind"]);
    for found in rows {
        let Some(archived) = Archived::of_found(found) else { continue };
        let behind = match (archived.is_failing(), archived.behind) {
            (true, _) => "!! it fails".to_owned(),
            (false, 0) => "no".to_owned(),
            (false, behind) => seconds(std::time::Duration::from_secs(behind)),
        };
        let place = archived.record.place.shown().to_string();
        table.add_row([found.path.shown().to_string(), place, behind]);
    }
    (!table.is_empty()).then_some(table)
}
