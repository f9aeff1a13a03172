//! The chain of log backups under power cuts: what log backups had before the cut, and what one has behind it.
//!
//! A commit is known by its number, and by the pages that SQLite read behind it. A log backup hands out LSNs with numbers; the chain of
//! an image goes on where a log backup ended, has each commit that the database has, no other one, and no LSN that was another commit's.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use pellucid::header::RecoveryModel;
use pellucid::lsn::Lsn;
use pellucid_engine::log_chain::{begin, set_model, KeptLog};
use pellucid_host::DatabaseError;
use rusqlite::Connection;

use crate::bench::Bench;
use crate::disk::Image;
use crate::rows;
use crate::scenario::Scenario;
use crate::tally::Tally;
use crate::watch::events;
use crate::work::open;
use crate::Random;

const TIMEOUT: Duration = Duration::from_millis(200);

type Pages = Vec<Vec<u8>>;

/// A place where a log backup ended, or where the chain began.
#[derive(Debug, Clone, Copy)]
struct End {
    /// None if nothing has told it.
    lsn: Option<Lsn>,
    number: usize,
    /// Events when the commits were handed out, and when it was said that a backup has them.
    held: usize,
    returned: usize,
}

/// What is known of a chain.
#[derive(Debug, Default, Clone)]
pub struct Chained {
    /// The pages behind each commit.
    states: BTreeMap<usize, Pages>,
    /// Events of an earlier record, behind which this one goes on.
    offset: usize,
    /// Events before the chain was begun.
    begins: usize,
    ends: Vec<End>,
    /// The commit of each LSN, and events when it was handed out.
    handed_out: Vec<(Lsn, usize, usize)>,
}

/// All pages as SQLite sees them.
fn pages(connection: &Connection) -> rusqlite::Result<Pages> {
    let mut statement =
        connection.prepare("SELECT data FROM sqlite_dbpage('main') ORDER BY pgno")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}

/// The commits of a log backup with their pages, from the state behind which it goes on.
fn follow(kept: &mut KeptLog, before: &Pages) -> Result<Vec<(Lsn, Pages)>, String> {
    let mut state = before.clone();
    let mut versions = kept.versions().to_vec();
    versions.sort_by_key(|version| version.commit);
    let mut versions = versions.into_iter().peekable();
    let mut last = kept.behind();
    let mut found = Vec::new();
    for (number, commit) in (0..).zip(kept.commits().to_vec()) {
        if commit.lsn <= last {
            return Err(format!("MIXED LSN {} behind {last}", commit.lsn));
        }
        last = commit.lsn;
        state.resize(commit.pages as usize, vec![0; before[0].len()]);
        while let Some(version) = versions.next_if(|version| version.commit == number) {
            let page = &mut state[version.page as usize - 1];
            kept.read(version, page)
                .map_err(|error| format!("MIXED page {}: {error}", version.page))?;
        }
        found.push((commit.lsn, state.clone()));
    }
    Ok(found)
}

impl Chained {
    /// Notes the pages behind a commit.
    pub fn committed(&mut self, number: usize, connection: &Connection) -> rusqlite::Result<()> {
        self.states.insert(number, pages(connection)?);
        Ok(())
    }

    /// Begins the chain behind commit `number`.
    pub fn begin(&mut self, database: &Path, number: usize) -> Result<(), DatabaseError> {
        self.begins = self.now();
        set_model(database, RecoveryModel::Full)?;
        assert!(begin(database)?.is_some(), "no chain has begun");
        let at = self.now();
        self.ends.push(End { lsn: None, number, held: self.begins, returned: at });
        Ok(())
    }

    /// Makes a log backup.
    pub fn back_up(&mut self, database: &Path) -> Result<(), DatabaseError> {
        let mut kept = KeptLog::open(database, TIMEOUT)?;
        let held = self.now();
        let goes_on = |end: &&mut End| end.lsn.is_none_or(|lsn| lsn == kept.behind());
        let from = self.ends.iter_mut().rev().find(goes_on).expect("behind a log backup");
        from.lsn = Some(kept.behind());
        let mut number = from.number;
        for (lsn, state) in follow(&mut kept, &self.states[&number]).expect("the chain is whole") {
            number += 1;
            assert!(self.states[&number] == state, "commit {number} is another one in the chain");
            self.handed_out.push((lsn, number, held));
        }
        let lsn = Some(kept.last());
        kept.is_backed_up([1; 32])?;
        self.ends.push(End { lsn, number, held, returned: self.now() });
        Ok(())
    }

    fn now(&self) -> usize {
        self.offset + events()
    }

    /// What of it had happened when the power went behind event `at`, for a record that begins there; one of the same events goes on
    /// behind it. None if the chain was not begun.
    pub fn before_cut(&self, at: usize, goes_on: bool) -> Option<Self> {
        let happened = |events: usize| events <= at + 1;
        let known = |events: usize| match (happened(events), goes_on) {
            (true, true) => events,
            (true, false) => 0,
            (false, _) => usize::MAX,
        };
        if !self.ends.first().is_some_and(|end| happened(end.returned)) {
            return None;
        }
        let mut before = self.clone();
        before.offset = if goes_on { at + 1 } else { 0 };
        before.begins = known(before.begins);
        before.ends.retain(|end| happened(end.held));
        for end in &mut before.ends {
            (end.held, end.returned) = (known(end.held), known(end.returned));
        }
        before.handed_out.retain(|(_, _, held)| happened(*held));
        before.handed_out.iter_mut().for_each(|(_, _, held)| *held = known(*held));
        Some(before)
    }
}

/// A power cut behind event `at`, seen by the chain.
pub struct After<'a> {
    pub chained: &'a Chained,
    pub at: usize,
    /// The last commit that was begun.
    pub begun: usize,
}

impl After<'_> {
    /// Whether what was done when so many events had happened was done before the cut.
    fn is_before(&self, events: usize) -> bool {
        events <= self.at + 1
    }

    /// Takes a log backup of an image, goes on, and takes another one.
    pub fn judge(
        &self,
        bench: &Bench,
        scenario: &Scenario,
        image: &Image,
        name: &str,
        tally: &mut Tally,
    ) {
        if self.chained.ends.is_empty() || !self.is_before(self.chained.begins) {
            return;
        }
        let seed = scenario.seed ^ (self.at as u64) << 8;
        let directory = bench.lay(image);
        if let Err(what) = self.look(scenario, &directory.join("a.db"), &mut Random(seed)) {
            tally.chain += 1;
            let kind = what.split_once(' ').map_or("", |(kind, _)| kind);
            match kind {
                "LOST" => tally.lost += 1,
                "ALARM" | "REFUSED" => tally.refused += 1,
                _ => tally.mixed += 1,
            }
            tally.find(format!("{what}: chain of {name}"));
        }
    }

    fn look(
        &self,
        scenario: &Scenario,
        database: &Path,
        random: &mut Random,
    ) -> Result<(), String> {
        let has_begun = self.is_before(self.chained.ends[0].returned);
        let mut states = self.chained.states.clone();
        // Whoever comes first recovers the log: a log backup, or a writer.
        let written = match random.below(2u64) {
            0 => Some(go_on(scenario, database, random, &mut states)?),
            _ => None,
        };
        let kept = match KeptLog::open(database, TIMEOUT) {
            Err(error) if !has_begun && error.to_string().contains("no chain") => return Ok(()),
            opened => opened.map_err(|error| format!("ALARM {error}"))?,
        };
        let (found, last, newest) = self.first(kept, (written, &states), random)?;
        compare(scenario, database, &last)?;
        let next = go_on(scenario, database, random, &mut states)?;
        if next != last.number + 1 {
            return Err(format!("LOST the commit behind {} is {next}", last.number));
        }
        let kept =
            KeptLog::open(database, TIMEOUT).map_err(|error| format!("ALARM then {error}"))?;
        then(scenario, database, kept, (found, newest))
    }

    /// The first log backup behind the cut. Returns where the next one goes on, where this one ends, and the highest LSN.
    fn first(
        &self,
        mut kept: KeptLog,
        (written, states): (Option<usize>, &BTreeMap<usize, Pages>),
        random: &mut Random,
    ) -> Result<(Place, Place, Lsn), String> {
        let from = self.from(kept.behind())?;
        let mut last =
            Place { lsn: kept.behind(), number: from.number, pages: states[&from.number].clone() };
        let begin = last.clone();
        let held = self.chained.handed_out.iter().filter(|(_, _, held)| self.is_before(*held));
        for (lsn, pages) in follow(&mut kept, &last.pages)? {
            last = Place { lsn, number: last.number + 1, pages };
            let number = last.number;
            if written != Some(number) && number > self.begun {
                return Err(format!("MIXED commit {number} at {lsn} was never begun"));
            }
            if states.get(&number) != Some(&last.pages) {
                return Err(format!("MIXED commit {number} at {lsn} has other pages"));
            }
            if let Some((_, other, _)) =
                held.clone().find(|(known, other, _)| *known == lsn && *other != number)
            {
                return Err(format!("MIXED LSN {lsn} was commit {other}, and is {number}"));
            }
        }
        let most = held.clone().map(|(_, number, _)| *number).max().unwrap_or(0);
        if most > last.number {
            return Err(format!(
                "LOST a log backup has commit {most}, the chain ends with {}",
                last.number
            ));
        }
        let newest = held.map(|(lsn, _, _)| *lsn).chain([last.lsn]).max().unwrap_or(Lsn::NONE);
        if random.below(2u64) == 0 {
            return Ok((begin, last, newest));
        }
        kept.is_backed_up([2; 32]).map_err(|error| format!("ALARM {error}"))?;
        Ok((last.clone(), last, newest))
    }

    /// Where a log backup may go on: behind the last one that returned, or behind one that may have.
    fn from(&self, behind: Lsn) -> Result<End, String> {
        let ends = self.chained.ends.iter().filter(|end| self.is_before(end.held));
        let returned = ends.clone().filter(|end| self.is_before(end.returned)).count();
        ends.skip(returned.saturating_sub(1))
            .find(|end| end.lsn.is_none_or(|lsn| lsn == behind))
            .copied()
            .ok_or(format!("LOST it goes on behind {behind}, where no log backup ended"))
    }
}

/// A place in a chain.
#[derive(Debug, Clone)]
struct Place {
    lsn: Lsn,
    number: usize,
    pages: Pages,
}

/// The second log backup: it goes on where the first one says, and has the commit that came meanwhile under a new LSN.
fn then(
    scenario: &Scenario,
    database: &Path,
    mut kept: KeptLog,
    (mut last, newest): (Place, Lsn),
) -> Result<(), String> {
    if kept.behind() != last.lsn {
        return Err(format!("MIXED then it goes on behind {} and not {}", kept.behind(), last.lsn));
    }
    for (lsn, pages) in follow(&mut kept, &last.pages)? {
        last = Place { lsn, number: last.number + 1, pages };
    }
    if last.lsn <= newest {
        return Err(format!("MIXED then LSN {} of a new commit, and {newest} was given", last.lsn));
    }
    compare(scenario, database, &last)
}

/// Whether the database is where the chain leads to.
fn compare(scenario: &Scenario, database: &Path, last: &Place) -> Result<(), String> {
    let connection = open(scenario, database, true).map_err(refused)?;
    let number = number_of(&connection, scenario)?;
    if number != last.number {
        return Err(format!("LOST the database has commit {number}, the chain {}", last.number));
    }
    if pages(&connection).map_err(refused)? != last.pages {
        return Err(format!("MIXED the chain leads to other pages than commit {number} has"));
    }
    Ok(())
}

fn refused(error: rusqlite::Error) -> String {
    format!("REFUSED {error}")
}

fn number_of(connection: &Connection, scenario: &Scenario) -> Result<usize, String> {
    let rows = rows::read(connection, "main", scenario.page_bytes);
    let rows = rows.map_err(|wrong| format!("MIXED {wrong:?}"))?;
    Ok(rows.map_or(0, |rows| rows[&0] as usize))
}

/// Commits once more, with a checkpoint before or behind it. Returns the number of that commit.
fn go_on(
    scenario: &Scenario,
    database: &Path,
    random: &mut Random,
    states: &mut BTreeMap<usize, Pages>,
) -> Result<usize, String> {
    let connection = open(scenario, database, true).map_err(refused)?;
    let number = number_of(&connection, scenario)? + 1;
    let done = (|| {
        let checkpoint = |random: &mut Random| match random.below(6u64) {
            0 => connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"),
            1 => connection.execute_batch("PRAGMA wal_checkpoint(RESTART)"),
            2 => connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)"),
            _ => Ok(()),
        };
        checkpoint(random)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        rows::create(&connection, "main")?;
        rows::change(&connection, "main", (0, number as i64), scenario.page_bytes)?;
        rows::change(&connection, "main", (3, 5000), scenario.page_bytes)?;
        connection.execute_batch("COMMIT")?;
        checkpoint(random)?;
        states.insert(number, pages(&connection)?);
        Ok(())
    })();
    done.map_err(refused)?;
    Ok(number)
}
