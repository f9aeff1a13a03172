//! The places of sets in chains of log backups, and what of a chain goes only together.

use std::collections::BTreeSet;

use pellucid::hash::hex;
use pellucid::log_archive::Mark;
use pellucid::lsn::Lsn;
use pellucid::media::{Kind, SetHeader};
use pellucid_host::connection::literal;
use pellucid_host::DatabaseError;

use super::{time_of, History, KnownSet};

/// What the columns of a set's place have, as SQL.
#[derive(Debug)]
pub(super) struct Place {
    pub has_chain: bool,
    /// `first_lsn`
    pub first: String,
    /// `last_lsn`
    pub last: String,
    /// `checkpoint_lsn`: of a full set or a differential the moment that it has.
    pub checkpoint: String,
    /// `database_backup_lsn`: the checkpoint of the full set before.
    pub full: String,
    /// `differential_base_lsn`
    pub base: String,
    /// `begins_log_chain`
    pub begins: String,
}

impl Place {
    /// By the set's header.
    pub fn of(set: &SetHeader) -> Self {
        let null = || "NULL".to_owned();
        let Some(place) = set.version2.and_then(|own| own.chain) else {
            return Self {
                has_chain: false,
                first: null(),
                last: null(),
                checkpoint: null(),
                full: null(),
                base: null(),
                begins: "0".to_owned(),
            };
        };
        let log = set.version2.and_then(|own| own.log);
        let others = format!(
            "FROM backupset o JOIN pellucid_log l ON l.backup_set_uuid = o.backup_set_uuid WHERE l.fork = '{}' AND \
             o.backup_set_uuid <> '{}'",
            hex(&place.fork),
            hex(&set.set)
        );
        let of_base = format!(
            "(SELECT checkpoint_lsn FROM backupset WHERE backup_set_uuid = '{}')",
            hex(&set.base)
        );
        let full = match (set.kind, log) {
            (Kind::Log, Some(facts)) => number(facts.full),
            (Kind::Differential, _) => of_base.clone(),
            _ => format!(
                "coalesce((SELECT o.checkpoint_lsn {others} AND o.type = 'D' AND coalesce(o.is_copy_only, 0) = 0 ORDER BY \
                 o.backup_set_id DESC LIMIT 1), 0)"
            ),
        };
        Self {
            has_chain: true,
            first: number(place.first),
            last: number(place.last),
            checkpoint: number(if log.is_some() { place.first } else { place.last }),
            full,
            base: if set.kind == Kind::Differential { of_base } else { null() },
            begins: match log {
                Some(_) => format!("NOT EXISTS (SELECT 1 {others} AND o.type = 'L')"),
                None => "0".to_owned(),
            },
        }
    }
}

/// A number as the tables keep it. One that SQLite has no integer for are its digits as bytes: it would round them.
fn number(lsn: Lsn) -> String {
    let digits = lsn.numeric().to_string();
    match digits.parse::<i64>() {
        Ok(_) => digits,
        Err(_) => format!("x'{}'", hex(digits.as_bytes())),
    }
}

/// A mark that a log backup has.
#[derive(Debug)]
pub struct MarkRecord<'a> {
    /// The database, by the name that its backups have.
    pub database: &'a str,
    /// Its recovery fork.
    pub fork: [u8; 16],
    /// The commit.
    pub lsn: Lsn,
    /// When it was, in microseconds since 1970.
    pub time: u64,
    /// The mark.
    pub mark: &'a Mark,
}

impl History {
    /// Writes down marks. One that is known stays as it is.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub fn record_marks(&self, marks: &[MarkRecord<'_>]) -> Result<(), DatabaseError> {
        let text = |text: &str| match text.is_empty() {
            true => "NULL".to_owned(),
            false => literal(text),
        };
        self.transaction(|| {
            marks.iter().try_for_each(|one| {
                self.handle.run(&format!(
                    "INSERT OR IGNORE INTO logmarkhistory VALUES ({}, {}, {}, NULL, {}, {}, '{}')",
                    text(one.database),
                    text(one.mark.name()),
                    text(one.mark.description()),
                    number(one.lsn),
                    time_of(one.time),
                    hex(&one.fork),
                ))
            })
        })
    }

    /// Writes down where a set is in its chain, if it has one.
    pub(super) fn record_place(&self, set: &SetHeader) -> Result<(), DatabaseError> {
        let Some(place) = set.version2.and_then(|own| own.chain) else { return Ok(()) };
        let log = set.version2.and_then(|own| own.log).unwrap_or_default();
        self.handle.run(&format!(
            "INSERT OR REPLACE INTO pellucid_log VALUES ('{}', '{}', {}, {}, {})",
            hex(&set.set),
            hex(&place.fork),
            time_of(log.first_time),
            time_of(log.last_time),
            log.commits,
        ))
    }
}

/// Whether a log set has commits behind the snapshot of a full set, or is empty behind it.
fn is_behind(log: &KnownSet, full: &KnownSet) -> bool {
    let is_one = full.kind == "D" && full.gone.is_empty() && full.fork == log.fork;
    let is_empty = log.first == log.last && full.first <= log.last;
    is_one && !log.fork.is_empty() && (full.first < log.last || is_empty)
}

/// The full set that a log set goes on from: the last one before its end.
pub(super) fn base_of<'a>(log: &KnownSet, sets: &'a [KnownSet]) -> Option<&'a KnownSet> {
    sets.iter().filter(|full| is_behind(log, full)).max_by_key(|full| full.last)
}

/// Of sets that are going those that stay because of others that do, and why: a log set behind a full set that stays, which the
/// way to every later point leads through; and the full set that a log set goes on from, where no other one leads to it.
pub(super) fn held(sets: &[KnownSet], going: &BTreeSet<String>) -> Vec<(String, String)> {
    let goes = |set: &&KnownSet| going.contains(&set.set);
    let mut held = Vec::new();
    for log in sets.iter().filter(|set| set.kind == "L") {
        let has_way = sets.iter().any(|full| is_behind(log, full) && !goes(&full));
        match (goes(&log), has_way) {
            (true, true) => {
                held.push((log.set.clone(), "a full backup before it stays".to_owned()));
            }
            (false, false) => {
                let why =
                    |full: &KnownSet| (full.set.clone(), "log backups behind it stay".to_owned());
                held.extend(base_of(log, sets).map(why));
            }
            _ => {}
        }
    }
    held
}
