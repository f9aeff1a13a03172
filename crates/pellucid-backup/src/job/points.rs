//! What points in time media lead to: stretches of commits without a gap, what is missing between them, and marks.

use std::collections::BTreeSet;

use pellucid::lsn::Lsn;
use pellucid::protector::KeySource;
use pellucid::Result;

use super::point::{
    commits, is_on, refuse_two_histories, stretches, way, Base, Library, Log, Point, Spot, Stretch,
};

/// What can be had of one recovery fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPoints {
    /// The fork.
    pub fork: [u8; 16],
    /// Stretches in which every commit can be had.
    pub ranges: Vec<Range>,
    /// What is missing before, between or behind them.
    pub gaps: Vec<Gap>,
    /// Commits with marks, that can be had or not.
    pub marks: Vec<MarkPoint>,
    /// Log sets with commits of a branch that was left: none of the others goes on behind them.
    pub left: Vec<Spot>,
}

/// A commit, or the moment that a full set or a differential has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Its number.
    pub lsn: Lsn,
    /// When, in microseconds since 1970.
    pub time: u64,
}

/// A stretch in which every commit can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The earliest point.
    pub from: Moment,
    /// The last one.
    pub to: Moment,
    /// How many commits of log sets it has.
    pub commits: usize,
    /// The set that it begins with.
    pub base: Spot,
    /// Log sets in it.
    pub logs: usize,
}

/// Commits that cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// They are behind this one; none where nothing before them is known.
    pub behind: Option<Lsn>,
    /// Up to this one, which is in a log set; none where that is not known.
    pub until: Option<Lsn>,
    /// What is missing.
    pub missing: Missing,
}

/// What a gap lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Log backups.
    Logs,
    /// A full backup before them, or log backups that lead to them from one.
    Base,
}

/// A commit with a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkPoint {
    /// The name.
    pub name: String,
    /// The commit.
    pub at: Moment,
    /// Whether it can be had.
    pub is_reached: bool,
}

impl Library {
    /// All points that can be had, by recovery fork, the newest one first.
    ///
    /// # Errors
    /// What [`crate::restore::OpenSet::open`] says.
    pub fn points(&self, keys: &dyn KeySource) -> Result<Vec<ForkPoints>> {
        let (bases, logs) = self.sets(keys)?;
        points_of(&bases, &logs)
    }
}

/// The points of sets.
pub(super) fn points_of(bases: &[Base], logs: &[Log]) -> Result<Vec<ForkPoints>> {
    let mut bases: Vec<&Base> = bases.iter().collect();
    bases.sort_by_key(|base| std::cmp::Reverse(base.begun));
    let mut forks: Vec<[u8; 16]> = Vec::new();
    let all = bases.iter().map(|base| base.place.fork);
    for fork in all.chain(logs.iter().map(|log| log.place.fork)) {
        if !forks.contains(&fork) {
            forks.push(fork);
        }
    }
    let mut found = Vec::new();
    for fork in forks {
        let own: Vec<&Base> =
            bases.iter().filter(|base| base.place.fork == fork).copied().collect();
        let logs: Vec<Log> = logs.iter().filter(|log| log.place.fork == fork).cloned().collect();
        refuse_two_histories(&logs)?;
        found.push(of_fork(fork, &own, logs)?);
    }
    Ok(found)
}

fn of_fork(fork: [u8; 16], bases: &[&Base], mut logs: Vec<Log>) -> Result<ForkPoints> {
    let (ranges, gaps) = (Vec::new(), Vec::new());
    let mut found = ForkPoints { fork, ranges, gaps, marks: Vec::new(), left: Vec::new() };
    let every: Vec<(Spot, Vec<Lsn>)> = logs.iter().map(|log| (log.spot, numbers(log))).collect();
    let mut on_lines: BTreeSet<Lsn> = BTreeSet::new();
    let mut alone: Vec<&Base> = bases.to_vec();
    // From the end backwards, one stretch after the other.
    let mut later: Option<Lsn> = None;
    while !logs.is_empty() {
        let (begins, ends) = {
            let line = way(&logs, &Point::Last, &[])?;
            let Some(first) = line.first().map(|stretch| stretch.log.place.first) else { break };
            let last = line.last().map_or(first, |stretch| stretch.log.place.last);
            if let Some(later) = later.filter(|later| last < *later) {
                let missing = Missing::Logs;
                found.gaps.push(Gap { behind: Some(last), until: Some(later), missing });
            }
            on_lines.extend(commits(&line).map(|commit| commit.lsn));
            of_line(&line, bases, &mut alone, &mut found);
            (first, last)
        };
        logs.retain(|log| log.place.last <= begins && log.place.last < ends);
        later = Some(begins);
    }
    for base in alone {
        let at = Moment { lsn: base.place.last, time: base.finished };
        let (commits, logs) = (0, 0);
        found.ranges.push(Range { from: at, to: at, commits, base: base.spot, logs });
    }
    let is_left = |own: &Vec<Lsn>| own.iter().any(|lsn| !on_lines.contains(lsn));
    found.left = every.iter().filter(|(_, own)| is_left(own)).map(|(spot, _)| *spot).collect();
    found.ranges.sort_by_key(|range| range.from.lsn);
    found.gaps.sort_by_key(|gap| gap.until);
    found.marks.sort_by_key(|mark| mark.at.lsn);
    Ok(found)
}

fn numbers(log: &Log) -> Vec<Lsn> {
    log.commits.iter().map(|commit| commit.lsn).collect()
}

/// A stretch of logs, and the sets before them that they go on from.
fn of_line(line: &[Stretch<'_>], bases: &[&Base], alone: &mut Vec<&Base>, found: &mut ForkPoints) {
    // Logs without commits lead nowhere that a full set does not.
    let Some(end) = commits(line).last().map(|commit| commit.lsn) else { return };
    let leads = |base: &&&Base| {
        let place = &base.place;
        place.last <= end
            && is_on(line, place.first)
            && is_on(line, place.last)
            && stretches(line, base, end).is_ok()
    };
    let base = bases.iter().filter(leads).min_by_key(|base| base.place.last);
    let from = base.map(|base| base.place.last);
    let reached = |lsn: Lsn| from.is_some_and(|from| lsn >= from);
    found.marks.extend(commits(line).filter_map(|commit| {
        let at = Moment { lsn: commit.lsn, time: commit.time };
        let name = commit.mark.clone()?;
        Some(MarkPoint { name, at, is_reached: reached(commit.lsn) })
    }));
    let Some(base) = base else {
        let begins = line.first().map(|stretch| stretch.log.place.first);
        let before = bases.iter().filter(|base| Some(base.place.last) < begins);
        let behind = before.map(|base| base.place.last).max();
        found.gaps.push(Gap { behind, until: Some(end), missing: Missing::Base });
        return;
    };
    let own = || commits(line).filter(|commit| commit.lsn > base.place.last);
    let from = Moment { lsn: base.place.last, time: base.finished };
    let last = own().last().map(|commit| Moment { lsn: commit.lsn, time: commit.time });
    let logs = line.iter().filter(|one| one.log.place.last > base.place.first).count();
    let to = last.unwrap_or(from);
    found.ranges.push(Range { from, to, commits: own().count(), base: base.spot, logs });
    if commits(line).any(|commit| commit.lsn <= base.place.first) {
        found.gaps.push(Gap { behind: None, until: Some(from.lsn), missing: Missing::Base });
    }
    let is_within = |other: &Base| (from.lsn..=to.lsn).contains(&other.place.last);
    alone.retain(|other| !is_within(other) || !is_on(line, other.place.last));
}
