//! Which backup sets lead to a point in time: a full set, perhaps a differential of it, and logs.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use pellucid::lsn::Lsn;
use pellucid::media::{ChainPlace, Kind, LogCommit};
use pellucid::protector::KeySource;
use pellucid::shown::Shown;
use pellucid::{Error, Result, Subject};

use super::media::{about, open_family};
use crate::restore::{Family, LogSet, Media, OpenSet, Tail};

/// Marks that an error names.
const MOST_MARKS: usize = 5;

/// The point that a database is restored to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// Behind the last commit that the media have.
    Last,
    /// Behind the last commit at that moment or before it, in microseconds since 1970.
    Time(u64),
    /// Behind the commit of that number, or the last one before it.
    Lsn(Lsn),
    /// Behind the commit with that mark, the first one of that name.
    Mark(String),
    /// Before that commit.
    BeforeMark(String),
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => f.write_str("the last commit"),
            Self::Time(micros) => f.write_str(&shown(*micros)),
            Self::Lsn(lsn) => write!(f, "LSN {lsn}"),
            Self::Mark(name) => write!(f, "the mark `{}`", name.shown()),
            Self::BeforeMark(name) => write!(f, "the moment before the mark `{}`", name.shown()),
        }
    }
}

/// Media sets, of which each has its files.
#[derive(Debug)]
pub struct Library {
    media: Vec<(Media, Vec<PathBuf>)>,
    /// The sets that count; none for all.
    only: Option<Vec<Spot>>,
}

/// A set on its media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Which media of the library.
    pub media: usize,
    /// Its position.
    pub position: u32,
}

/// What leads to a point.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The full set or the differential, and the media of the full set.
    pub base: Spot,
    /// The media of the full set.
    pub full: usize,
    /// The log sets in their order, with how many of their commits are applied.
    pub logs: Vec<(Spot, usize)>,
    /// The last commit that is applied: its number and its time. None where the database is as the full set or the
    /// differential has it.
    pub reached: Option<(Lsn, u64)>,
    /// Pages of the database there.
    pub pages: u32,
    /// The recovery fork.
    pub fork: [u8; 16],
    /// Where the sets end of which all is applied: the number behind which nothing is known of.
    pub ends: Lsn,
    /// Later commits with the same mark: their numbers and times.
    pub same_mark: Vec<(Lsn, u64)>,
}

/// A full set or a differential.
pub(super) struct Base {
    pub(super) spot: Spot,
    pub(super) full: usize,
    pub(super) place: ChainPlace,
    /// Its snapshot was between these moments.
    pub(super) begun: u64,
    pub(super) finished: u64,
    pub(super) pages: u32,
}

/// A log set, and its commits.
#[derive(Clone)]
pub(super) struct Log {
    pub(super) spot: Spot,
    pub(super) place: ChainPlace,
    /// When it was begun: later commits are not in it.
    pub(super) begun: u64,
    pub(super) commits: Vec<LogCommit>,
}

/// A set of a chain, of either kind.
enum One {
    Base(Base),
    Log(Log),
}

/// A stretch of the way: a log set up to one of its commits.
pub(super) struct Stretch<'a> {
    pub(super) log: &'a Log,
    pub(super) commits: usize,
}

impl Library {
    /// Opens files in any order: the stripes and mirrors of several media sets.
    ///
    /// # Errors
    /// [`Error::Io`], or what [`Media::assemble`] and [`Family::open`] say, about the file.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        let mut groups: Vec<(Vec<Family>, Vec<PathBuf>)> = Vec::new();
        for path in paths {
            let family = open_family(path)?;
            let id = family.header.media_set;
            let is_of = |(of, _): &&mut (Vec<Family>, Vec<PathBuf>)| {
                of.first().is_some_and(|first| first.header.media_set == id)
            };
            match groups.iter_mut().find(is_of) {
                Some((families, files)) => {
                    families.push(family);
                    files.push(path.clone());
                }
                None => groups.push((vec![family], vec![path.clone()])),
            }
        }
        let assembled = groups.into_iter().map(|(families, files)| {
            let media = Media::assemble(families).map_err(|error| about_one(&files, error))?;
            Ok((media, files))
        });
        Ok(Self { media: assembled.collect::<Result<_>>()?, only: None })
    }

    /// The media of one set.
    pub(super) fn of(media: Media, files: Vec<PathBuf>) -> Self {
        Self { media: vec![(media, files)], only: None }
    }

    /// Lets only these sets count: a file of their media, and their position. If there are none, all do.
    pub(super) fn keep_only(&mut self, sets: &[(PathBuf, u32)]) {
        let spot = |(path, position): &(PathBuf, u32)| {
            let media = self.media.iter().position(|(_, files)| files.contains(path))?;
            Some(Spot { media, position: *position })
        };
        self.only = (!sets.is_empty()).then(|| sets.iter().filter_map(spot).collect());
    }

    /// Adds media, and returns their number.
    pub(super) fn add(&mut self, media: Media, files: Vec<PathBuf>) -> usize {
        self.media.push((media, files));
        self.media.len() - 1
    }

    /// Media that were left out, because they hold another set than their mirrors.
    pub fn stale(&self) -> Vec<PathBuf> {
        self.media.iter().flat_map(|(media, _)| media.stale()).collect()
    }

    /// Media by their number.
    pub fn media(&self, number: usize) -> &Media {
        &self.media[number].0
    }

    /// Their files.
    pub fn files(&self, number: usize) -> &[PathBuf] {
        &self.media[number].1
    }

    /// The same error about media, of which there may be many, by the name of their first file.
    pub(super) fn about(&self, number: usize, error: Error) -> Error {
        about_one(self.files(number), error)
    }

    /// Finds the way to `point`.
    ///
    /// # Errors
    /// [`Error::Misuse`] if no set leads there: it names the nearest points that can be had; [`Error::Corrupt`] if damage hides the sets
    /// that could; what [`OpenSet::open`] says.
    pub fn plan(&self, point: &Point, keys: &dyn KeySource) -> Result<Plan> {
        let planned = self.plan_among_whole(point, keys);
        let hidden = self.media.iter().enumerate().find_map(|(number, (media, _))| {
            let error = media.last().err()?;
            // What an interrupted backup has left is no damage: another one has its commits.
            let is_interrupted = |family: &Family| matches!(family.tail, Tail::Interrupted { .. });
            let is_left =
                media.sets() == 0 && media.families().iter().flatten().all(is_interrupted);
            let counts = planned.is_err() || *point == Point::Last && !is_left;
            counts.then(|| self.about(number, error))
        });
        hidden.map_or(planned, Err)
    }

    fn plan_among_whole(&self, point: &Point, keys: &dyn KeySource) -> Result<Plan> {
        let (bases, logs) = self.sets(keys)?;
        let Some(fork) = bases.iter().max_by_key(|base| base.begun).map(|base| base.place.fork)
        else {
            return Err(misuse(
                "no full backup of a database with a chain of log backups is among these media",
            ));
        };
        if let Some(other) = logs.iter().find(|log| log.place.fork != fork) {
            let what =
                "a log set of another recovery fork is among these media: name those of one fork";
            return Err(Error::misuse(Subject::BackupSet(other.spot.position), what));
        }
        refuse_two_histories(&logs)?;
        let way = way(&logs, point, &bases)?;
        let mut bases: Vec<&Base> = bases.iter().filter(|base| base.place.fork == fork).collect();
        bases.sort_by_key(|base| std::cmp::Reverse(base.place.last));
        let newest =
            bases.first().filter(|base| commits(&way).all(|commit| commit.lsn <= base.place.first));
        if let (Point::Last, Some(base)) = (point, newest) {
            return Ok(plan(base, &[]));
        }
        let wanted = aim(&way, point)?;
        let mut missing = None;
        for base in &bases {
            if !is_on(&way, base.place.first) || !is_on(&way, base.place.last) {
                continue;
            }
            let stops = match &wanted {
                Aim::Commit(lsn) if base.place.last <= *lsn => *lsn,
                Aim::Before { time, next } if base.is_before(*time, *next) => base.place.first,
                _ => continue,
            };
            match stretches(&way, base, stops) {
                Ok(logs) => {
                    return Ok(Plan { same_mark: again(&way, point), ..plan(base, &logs) });
                }
                Err(lsn) => missing = missing.or_else(|| Some(gap(&logs, &way, lsn))),
            }
        }
        // Of a database in use the newest full set may be of any moment of the last log.
        match (point, bases.first()) {
            (Point::Last, Some(base)) if missing.is_none() => Ok(plan(base, &[])),
            _ => Err(unreachable(point, &way, missing, &bases)),
        }
    }

    /// All sets of chains.
    pub(super) fn sets(&self, keys: &dyn KeySource) -> Result<(Vec<Base>, Vec<Log>)> {
        self.sets_but(keys, &mut |_, error| Err(error))
    }

    /// The same; what cannot be opened is `unread`, which may let the others count.
    pub(super) fn sets_but(
        &self,
        keys: &dyn KeySource,
        unread: &mut dyn FnMut(Spot, Error) -> Result<()>,
    ) -> Result<(Vec<Base>, Vec<Log>)> {
        let (mut bases, mut logs) = (Vec::new(), Vec::new());
        for (number, (media, _)) in self.media.iter().enumerate() {
            for position in 1..=media.sets() {
                let spot = Spot { media: number, position };
                if self.only.as_ref().is_some_and(|only| !only.contains(&spot)) {
                    continue;
                }
                match self.one(spot, keys) {
                    Ok(Some(One::Base(base))) => bases.push(base),
                    Ok(Some(One::Log(log))) => logs.push(log),
                    Ok(None) => {}
                    Err(error) => unread(spot, self.about(number, error))?,
                }
            }
        }
        Ok((bases, logs))
    }

    /// A set of a chain.
    fn one(&self, spot: Spot, keys: &dyn KeySource) -> Result<Option<One>> {
        let set = OpenSet::open(self.media(spot.media), spot.position, keys)?;
        let header = set.header();
        let Some(place) = header.version2.and_then(|own| own.chain) else { return Ok(None) };
        let full = match header.kind {
            Kind::Log => {
                let commits = LogSet::open(&set)?.commits().to_vec();
                return Ok(Some(One::Log(Log { spot, place, begun: header.begun, commits })));
            }
            Kind::Full => Some(spot.media),
            Kind::Differential => self.full_of(header.base),
        };
        Ok(full.map(|full| {
            One::Base(Base {
                spot,
                full,
                place,
                begun: header.begun,
                finished: set.manifest().finished,
                pages: header.pages,
            })
        }))
    }

    /// The media that have the full set of a differential.
    fn full_of(&self, id: [u8; 16]) -> Option<usize> {
        self.media.iter().position(|(media, _)| {
            (1..=media.sets()).any(|position| {
                let found = media.set(position).ok();
                let first = found.and_then(|set| Some(set.first()?.first()?.1.header.set));
                first == Some(id)
            })
        })
    }
}

impl Base {
    /// Whether it is what the database was at a moment before the commit `next`, which is the first one of the logs that is later.
    fn is_before(&self, time: u64, next: Option<Lsn>) -> bool {
        match next {
            Some(next) => self.begun <= time && self.place.last < next,
            // Nothing says what came behind it.
            None => (self.begun..=self.finished).contains(&time),
        }
    }
}

/// Refuses logs of which two have other commits under one number, as those of a database and of a copy that went on by itself.
pub(super) fn refuse_two_histories(logs: &[Log]) -> Result<()> {
    let mut known = HashMap::new();
    for log in logs {
        for commit in &log.commits {
            let before = known.insert(commit.lsn, (commit.time, commit.pages, log.spot));
            let (time, pages, other) = before.unwrap_or((commit.time, commit.pages, log.spot));
            if (time, pages) != (commit.time, commit.pages) {
                return Err(Error::misuse(
                    Subject::BackupSet(log.spot.position),
                    format!(
                        "LSN {} is another commit than in backup set {} of other media: a database and a copy of it have gone on by \
                         themselves; name the media of one of them alone",
                        commit.lsn, other.position
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Whether a number is on the way: not on a branch that was left. What is before the way is judged by whether logs lead from there.
pub(super) fn is_on(way: &[Stretch<'_>], lsn: Lsn) -> bool {
    let Some(begins) = way.first().map(|first| first.log.place.first) else { return true };
    let is_end = |stretch: &Stretch<'_>| {
        let is_whole = stretch.commits == stretch.log.commits.len();
        stretch.log.place.first == lsn || is_whole && stretch.log.place.last == lsn
    };
    lsn <= begins || way.iter().any(is_end) || commits(way).any(|commit| commit.lsn == lsn)
}

/// Where a plan stops.
enum Aim {
    /// Behind a commit.
    Commit(Lsn),
    /// Before every commit of the logs, of which the next one is known if there is any.
    Before { time: u64, next: Option<Lsn> },
}

/// The commits that lead to the last one, or to `point` if that is on a branch that was left: from the end backwards each log set goes
/// on behind another.
pub(super) fn way<'a>(logs: &'a [Log], point: &Point, bases: &[Base]) -> Result<Vec<Stretch<'a>>> {
    let by_end = |log: &&Log| (log.place.last, log.begun);
    let has = |log: &&Log, lsn: Lsn| log.commits.iter().any(|commit| commit.lsn == lsn);
    let end = match point {
        Point::Lsn(lsn) if !bases.iter().any(|base| base.place.last == *lsn) => {
            let found = logs.iter().filter(|log| has(log, *lsn)).max_by_key(by_end);
            Some(found.ok_or_else(|| no_commit(logs, *lsn))?)
        }
        _ => logs.iter().max_by_key(by_end),
    };
    let Some(end) = end else { return Ok(Vec::new()) };
    let mut way = vec![Stretch { log: end, commits: end.commits.len() }];
    let mut wanted = end.place.first;
    loop {
        let leads = |log: &&Log| log.place.first < wanted && wanted <= log.place.last;
        // Of two that have the same commits the one that reaches further back.
        let Some(log) = logs.iter().filter(leads).min_by_key(|log| log.place.first) else { break };
        let commits = log.commits.iter().take_while(|commit| commit.lsn <= wanted).count();
        way.push(Stretch { log, commits });
        wanted = log.place.first;
    }
    way.reverse();
    Ok(way)
}

/// Each commit of the way.
pub(super) fn commits<'a>(way: &'a [Stretch<'a>]) -> impl Iterator<Item = &'a LogCommit> {
    way.iter().flat_map(|stretch| &stretch.log.commits[..stretch.commits])
}

/// The commit that `point` names.
fn aim(way: &[Stretch<'_>], point: &Point) -> Result<Aim> {
    match point {
        Point::Last => match commits(way).last() {
            Some(commit) => Ok(Aim::Commit(commit.lsn)),
            None => Ok(Aim::Commit(Lsn::of_word(u64::MAX))),
        },
        Point::Lsn(lsn) => Ok(Aim::Commit(*lsn)),
        Point::Mark(name) | Point::BeforeMark(name) => {
            let has = |commit: &LogCommit| commit.mark.as_deref() == Some(name);
            let place = commits(way).position(has).ok_or_else(|| no_mark(way, name))?;
            let lsn = match (point, place.checked_sub(1)) {
                (Point::Mark(_), _) => commits(way).nth(place).map(|commit| commit.lsn),
                (_, Some(before)) => commits(way).nth(before).map(|commit| commit.lsn),
                // What the commit follows is in the set before these.
                (_, None) => way.first().map(|first| first.log.place.first),
            };
            lsn.map(Aim::Commit).ok_or_else(|| no_mark(way, name))
        }
        Point::Time(time) => at_time(way, *time),
    }
}

fn at_time(way: &[Stretch<'_>], time: u64) -> Result<Aim> {
    if let Some(end) = way.last().filter(|end| end.log.begun < time) {
        let last =
            commits(way).last().map_or("before them".to_owned(), |commit| shown(commit.time));
        return Err(misuse(&format!(
            "what was committed up to {} is not in these media: the last log backup was begun at {}, and the last commit was \
             {}; a log backup of now has the rest",
            shown(time),
            shown(end.log.begun),
            last
        )));
    }
    let before = commits(way).take_while(|commit| commit.time <= time).last();
    let mut later = commits(way).skip_while(|commit| commit.time <= time);
    let next = later.next();
    // A clock that was set back has two stretches of the same time.
    if let (Some(next), Some(again)) = (next, later.find(|commit| commit.time <= time)) {
        return Err(misuse(&format!(
            "the clock was set back: {} was before LSN {}, and again at LSN {}; name the LSN",
            shown(time),
            next.lsn,
            again.lsn
        )));
    }
    let next = next.map(|commit| commit.lsn);
    Ok(before.map_or(Aim::Before { time, next }, |commit| Aim::Commit(commit.lsn)))
}

/// Later commits with the mark that `point` names.
fn again(way: &[Stretch<'_>], point: &Point) -> Vec<(Lsn, u64)> {
    let (Point::Mark(name) | Point::BeforeMark(name)) = point else { return Vec::new() };
    let has = |commit: &&LogCommit| commit.mark.as_deref() == Some(name);
    commits(way).filter(has).skip(1).map(|commit| (commit.lsn, commit.time)).collect()
}

fn no_mark(way: &[Stretch<'_>], name: &str) -> Error {
    let mut others: Vec<&str> = commits(way).filter_map(|commit| commit.mark.as_deref()).collect();
    others.dedup();
    let from = others.len().saturating_sub(MOST_MARKS);
    let others: Vec<_> = others[from..].iter().map(|one| format!("`{}`", one.shown())).collect();
    let others = match others.is_empty() {
        true => "none of them has a mark".to_owned(),
        false => format!("the last ones are {}", others.join(", ")),
    };
    misuse(&format!("no commit of these media has the mark `{}`; {others}", name.shown()))
}

fn no_commit(logs: &[Log], lsn: Lsn) -> Error {
    let all = || logs.iter().flat_map(|log| &log.commits).map(|commit| commit.lsn);
    let near = [all().filter(|other| *other < lsn).max(), all().filter(|other| *other > lsn).min()];
    let near: Vec<String> = near.into_iter().flatten().map(|lsn| lsn.to_string()).collect();
    misuse(&format!(
        "no commit of these media has LSN {lsn}; next to it are {}",
        near.join(" and ")
    ))
}

/// The stretches that are applied to `base` up to `stops`. The number from which on they are missing, if they are.
pub(super) fn stretches<'a>(
    way: &[Stretch<'a>],
    base: &Base,
    stops: Lsn,
) -> std::result::Result<Vec<(&'a Log, usize)>, Lsn> {
    let begins = base.place.first;
    if stops <= begins {
        return Ok(Vec::new());
    }
    let mut reached = begins;
    let mut found = Vec::new();
    for stretch in way {
        let log = stretch.log;
        let end = match stretch.commits == log.commits.len() {
            true => log.place.last,
            false => log
                .commits
                .get(stretch.commits.wrapping_sub(1))
                .map_or(log.place.first, |last| last.lsn),
        };
        if end <= reached {
            continue;
        }
        if log.place.first > reached {
            return Err(reached);
        }
        let within = &log.commits[..stretch.commits];
        let count = within.iter().take_while(|commit| commit.lsn <= stops).count();
        found.push((log, count));
        reached = end;
        if stops <= end {
            return Ok(found);
        }
    }
    Err(reached)
}

/// What is missing between the logs that go on behind `from` and the way: the numbers that it lies between.
fn gap(logs: &[Log], way: &[Stretch<'_>], from: Lsn) -> (Lsn, Option<Lsn>) {
    let mut begins = from;
    let goes_on = |log: &&Log, at: Lsn| log.place.first <= at && at < log.place.last;
    while let Some(log) = logs.iter().find(|log| goes_on(log, begins)) {
        begins = log.place.last;
    }
    let ends = way.iter().map(|stretch| stretch.log.place.first).find(|first| *first > begins);
    (begins, ends)
}

fn plan(base: &Base, logs: &[(&Log, usize)]) -> Plan {
    let last = logs.iter().rev().find_map(|(log, count)| log.commits.get(count.checked_sub(1)?));
    let last = last.filter(|commit| commit.lsn > base.place.first);
    Plan {
        base: base.spot,
        full: base.full,
        logs: logs.iter().map(|(log, count)| (log.spot, *count)).collect(),
        reached: last.map(|commit| (commit.lsn, commit.time)),
        pages: last.map_or(base.pages, |commit| commit.pages),
        fork: base.place.fork,
        ends: logs.last().map_or(base.place.first, |(log, _)| log.place.last),
        same_mark: Vec::new(),
    }
}

/// What can be had instead.
fn unreachable(
    point: &Point,
    way: &[Stretch<'_>],
    missing: Option<(Lsn, Option<Lsn>)>,
    bases: &[&Base],
) -> Error {
    let gap = missing.map_or(String::new(), |(lsn, ends)| {
        let up_to = ends.map_or(String::new(), |ends| format!(" and up to LSN {ends}"));
        format!("; the log backups behind LSN {lsn}{up_to} are missing among these media")
    });
    let first = bases.iter().map(|base| base.begun).min();
    let first = first.map_or(String::new(), |begun| {
        format!("; the earliest point is that of the full backup of {}", shown(begun))
    });
    let last = commits(way).last().map_or(String::new(), |commit| {
        format!("; the last commit is LSN {} of {}", commit.lsn, shown(commit.time))
    });
    misuse(&format!("these media do not lead to {point}{gap}{first}{last}"))
}

fn about_one(files: &[PathBuf], error: Error) -> Error {
    let Some(path) = files.first() else { return error };
    match error {
        Error::Unauthentic { subject, cause } => {
            Error::unauthentic(Subject::File(path.clone()), format!("{subject}: {cause}"))
        }
        Error::Misuse { subject, cause } => {
            Error::misuse(Subject::File(path.clone()), format!("{subject}: {cause}"))
        }
        error => about(path, error),
    }
}

/// A moment in microseconds since 1970, as people read it.
pub fn shown(micros: u64) -> String {
    let at = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000);
    let Ok(at) = at else { return "the end of time".to_owned() };
    let (date, clock) = (at.date(), at.time());
    format!(
        "{date} {:02}:{:02}:{:02}.{:06} UTC",
        clock.hour(),
        clock.minute(),
        clock.second(),
        clock.microsecond()
    )
}

fn misuse(what: &str) -> Error {
    Error::misuse(Subject::Option("at".into()), what.to_owned())
}
