//! The verdict: what the cells of some sessions say about the goals.
//!
//! It follows from cell records alone, so that pieces of a measurement can be joined later. Each
//! pair of sides is a family of its own; the intervals of its cells are corrected for their number.

mod load;
mod pairs;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::goals::Goals;
use crate::plan;
use crate::record::{CellResult, Observation, Session};
use crate::statistics::{Interval, LogMean, NO_DIFFERENCE};

pub use load::{Check, LoadVerdict, Loads};
pub use pairs::PairVerdict;

/// The side that the goals are about, and the one that they compare with; a control is judged too.
const SEALED: &str = "sealed";
const PLAIN: &str = "plain";
const CONTROL: &str = "again";

/// What sessions say about the goals.
#[derive(Debug, Serialize)]
pub struct Verdict {
    pub sessions: Vec<String>,
    pub families: Vec<Family>,
    pub peers: Vec<Peer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadVerdict>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairVerdict>,
}

/// All cells of one side against one base, in one scenario.
#[derive(Debug, Serialize)]
pub struct Family {
    pub scenario: String,
    pub base: String,
    pub side: String,
    /// Whether the goals are about this pair; otherwise it decides nothing.
    pub judged: bool,
    pub cells: Vec<CellVerdict>,
    pub geometric_mean: Interval,
    /// Cells that the mean is over: for the workload the standard ones, if there are any.
    pub mean_over: usize,
    /// How many it should be over.
    pub mean_of: usize,
    /// Of the mean, if it has one.
    pub goal: Option<f64>,
    pub judgement: Option<Judgement>,
}

/// One cell of a family.
#[derive(Debug, Serialize)]
pub struct CellVerdict {
    pub cell: String,
    /// Corrected for the number of cells.
    pub interval: Interval,
    pub judgement: Judgement,
}

/// The sealed side over a peer that ran in the same rounds.
#[derive(Debug, Serialize)]
pub struct Peer {
    pub peer: String,
    pub cells: Vec<String>,
    pub mean_of: usize,
    pub geometric_mean: Interval,
    pub goal: f64,
    pub judgement: Judgement,
}

/// What an interval says about a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    Passed,
    /// The interval says neither yes nor no, or cells are missing.
    NotResolved,
    /// The whole interval is below the goal.
    Below,
    /// A control, plain against plain, that shows a difference: the session is worth nothing.
    Differs,
}

impl Judgement {
    /// As tables have it.
    pub fn text(self) -> &'static str {
        match self {
            Judgement::Passed => "passed",
            Judgement::NotResolved => "not resolved",
            Judgement::Below => "below",
            Judgement::Differs => "differs",
        }
    }
}

impl Verdict {
    /// Judges `cells`, all of `sessions`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the sessions are not of one machine and tree, or a cell is there twice.
    pub fn of(sessions: &[Session], cells: &[CellResult], goals: &Goals) -> Result<Self> {
        one_machine(sessions)?;
        let mut families: Vec<(Pair<'_>, Vec<&CellResult>)> = Vec::new();
        for cell in cells {
            let session = sessions.iter().find(|session| session.session == cell.session);
            let Some(session) = session else { continue };
            let [base, side] = &cell.sides;
            let pair = Pair { scenario: &session.scenario, base: &base.side, side: &side.side };
            let place =
                families.iter().position(|(other, _)| *other == pair).unwrap_or_else(|| {
                    families.push((pair, Vec::new()));
                    families.len() - 1
                });
            let family = &mut families[place].1;
            if let Some(twice) = family.iter().find(|other| other.cell == cell.cell) {
                return Err(Error::invalid(format!(
                    "cell {} of {} is in two sessions, {} and {}: choose with --session",
                    cell.cell, side.side, twice.session, cell.session
                )));
            }
            family.push(cell);
        }
        let judged = families.iter().map(|(pair, cells)| Family::of(pair, cells, goals));
        Ok(Self {
            sessions: sessions.iter().map(|session| session.session.clone()).collect(),
            families: judged.collect::<Result<_>>()?,
            peers: peers(sessions, cells, goals)?,
            loads: Vec::new(),
            pairs: Vec::new(),
        })
    }

    /// The same with what `loads` and the observations of experiments say.
    pub fn with(self, sessions: &[Session], loads: &Loads, observations: &[Observation]) -> Self {
        let goals = Goals::read();
        let pairs = PairVerdict::of(sessions, observations, &goals.pairs);
        Self { loads: LoadVerdict::of(sessions, loads, &goals), pairs, ..self }
    }

    /// Everything that has a goal reached it, and something had one.
    pub fn passed(&self) -> bool {
        let families = self.families.iter().filter(|family| family.judged);
        let mut judged = families
            .flat_map(|family| {
                family.cells.iter().map(|cell| cell.judgement).chain(family.judgement)
            })
            .chain(self.peers.iter().map(|peer| peer.judgement))
            .chain(self.pairs.iter().map(|pair| pair.judgement))
            .map(|judgement| judgement == Judgement::Passed)
            .chain(self.loads.iter().filter(|load| load.judged).map(LoadVerdict::passed))
            .peekable();
        judged.peek().is_some() && judged.all(|passed| passed)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair<'a> {
    scenario: &'a str,
    base: &'a str,
    side: &'a str,
}

/// What a pair is held to.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// The workload: no cell below, and the mean over the standard cells.
    Cells {
        cell: f64,
        mean: f64,
    },
    /// Each cell by itself reaches this.
    Each(f64),
    None,
}

impl Rule {
    fn of(pair: &Pair<'_>, goals: &Goals) -> Self {
        match (pair.scenario, pair.base, pair.side) {
            ("purchase", PLAIN, SEALED | CONTROL) => {
                Rule::Cells { cell: goals.cell, mean: goals.cells_geometric_mean }
            }
            ("whole", PLAIN, SEALED | CONTROL) => Rule::Each(goals.whole_database),
            ("scan-speed", PLAIN, SEALED | CONTROL) => Rule::Each(goals.scan_speed),
            // A goal in time; ratios are of speed.
            ("speedtest1", PLAIN, SEALED | CONTROL) => Rule::Each(1.0 / goals.speedtest1_time),
            _ => Rule::None,
        }
    }

    fn cell(self, interval: &Interval, goals: &Goals) -> Judgement {
        match self {
            Rule::Each(goal) => judge(interval, goal, goals.resolution),
            Rule::Cells { cell, .. } => cell_judgement(interval, cell, goals),
            Rule::None => cell_judgement(interval, goals.cell, goals),
        }
    }
}

impl Family {
    fn of(pair: &Pair<'_>, cells: &[&CellResult], goals: &Goals) -> Result<Self> {
        let rule = Rule::of(pair, goals);
        let means: Vec<LogMean> = cells.iter().map(|cell| mean(cell)).collect::<Result<_>>()?;
        let verdict = |(cell, mean): (&&CellResult, &LogMean)| {
            let interval = mean.interval(cells.len());
            let judgement = match pair.side {
                CONTROL => control(&interval, NO_DIFFERENCE, goals.resolution),
                _ => rule.cell(&interval, goals),
            };
            CellVerdict { cell: cell.cell.clone(), interval, judgement }
        };
        let verdicts = cells.iter().zip(&means).map(verdict).collect();

        let standard = plan::standard_cells();
        let is_standard = |cell: &CellResult| standard.iter().any(|s| s.to_string() == cell.cell);
        let mut over: Vec<&CellResult> =
            cells.iter().copied().filter(|cell| is_standard(cell)).collect();
        let mut mean_of = standard.len();
        if over.is_empty() || pair.scenario != "purchase" {
            over = cells.to_vec();
            mean_of = over.len();
        }
        let ratios: Vec<Vec<f64>> = over.iter().map(|cell| cell.ratios.clone()).collect();
        let geometric_mean = mean_over(&over, &ratios)
            .ok_or_else(|| Error::invalid("a pair of sides without a cell"))?
            .interval(1);
        let goal = match rule {
            Rule::Cells { mean, .. } => Some(mean),
            Rule::Each(_) | Rule::None => None,
        };
        let judgement = goal.map(|goal| match judge(&geometric_mean, goal, goals.resolution) {
            _ if over.len() < mean_of => Judgement::NotResolved,
            // Held to a goal of 1: its interval has to hold it.
            _ if pair.side == CONTROL => control(&geometric_mean, 1.0, goals.resolution),
            judgement => judgement,
        });
        Ok(Self {
            scenario: pair.scenario.into(),
            base: pair.base.into(),
            side: pair.side.into(),
            judged: !matches!(rule, Rule::None),
            cells: verdicts,
            geometric_mean,
            mean_over: over.len(),
            mean_of,
            goal,
            judgement,
        })
    }
}

/// Each peer, from the rounds in which it and the sealed side ran against the same base.
fn peers(sessions: &[Session], cells: &[CellResult], goals: &Goals) -> Result<Vec<Peer>> {
    let is_workload = |cell: &CellResult| {
        let session = sessions.iter().find(|session| session.session == cell.session);
        session.is_some_and(|session| matches!(session.scenario.as_str(), "purchase" | "peers"))
    };
    let cells: Vec<_> = cells.iter().filter(|cell| is_workload(cell)).collect();
    let mut peers = Vec::new();
    for (peer, &goal) in &goals.peers_geometric_mean {
        let (mut names, mut over, mut all_ratios) = (Vec::new(), Vec::new(), Vec::new());
        for theirs in cells.iter().filter(|cell| cell.sides[1].side == *peer) {
            let same = |cell: &&&CellResult| {
                (&cell.session, &cell.cell) == (&theirs.session, &theirs.cell)
                    && cell.sides[1].side == SEALED
                    && cell.ratios.len() == theirs.ratios.len()
            };
            let Some(ours) = cells.iter().find(same) else { continue };
            let ratios: Vec<f64> = ours
                .ratios
                .iter()
                .zip(&theirs.ratios)
                .map(|(ours, theirs)| ours / theirs)
                .collect();
            LogMean::of(&ratios).ok_or_else(|| unusable(theirs))?;
            names.push(theirs.cell.clone());
            over.push(*theirs);
            all_ratios.push(ratios);
        }
        let Some(mean) = mean_over(&over, &all_ratios) else { continue };
        let geometric_mean = mean.interval(1);
        let all = goals.peer_cells.iter().all(|name| names.contains(name));
        let judgement = if all {
            judge(&geometric_mean, goal, goals.resolution)
        } else {
            Judgement::NotResolved
        };
        let (peer, mean_of) = (peer.clone(), goals.peer_cells.len());
        peers.push(Peer { peer, cells: names, mean_of, geometric_mean, goal, judgement });
    }
    Ok(peers)
}

fn mean(cell: &CellResult) -> Result<LogMean> {
    LogMean::of(&cell.ratios).ok_or_else(|| unusable(cell))
}

/// Over `cells`, of which these are ratios, with the same weight. Those of one session share its rounds; those of several
/// sessions are independent.
fn mean_over(cells: &[&CellResult], ratios: &[Vec<f64>]) -> Option<LogMean> {
    let session = &cells.first()?.session;
    let together = cells.iter().all(|cell| cell.session == *session);
    together.then(|| LogMean::over_rounds(ratios)).flatten().or_else(|| {
        let means = ratios.iter().map(|ratios| LogMean::of(ratios)).collect::<Option<Vec<_>>>()?;
        LogMean::over(&means)
    })
}

fn unusable(cell: &CellResult) -> Error {
    Error::invalid(format!("cell {} of session {}: no usable ratios", cell.cell, cell.session))
}

fn cell_judgement(interval: &Interval, goal: f64, goals: &Goals) -> Judgement {
    if interval.high < goal {
        Judgement::Below
    } else if interval.half_width() > goals.resolution {
        Judgement::NotResolved
    } else {
        Judgement::Passed
    }
}

/// A mean has reached `goal` if it is there itself and resolved, and missed it if its whole interval
/// has.
fn judge(mean: &Interval, goal: f64, resolution: f64) -> Judgement {
    let resolved = mean.half_width() <= resolution;
    if mean.high < goal {
        Judgement::Below
    } else if mean.low >= goal || (resolved && mean.mean >= goal) {
        Judgement::Passed
    } else {
        Judgement::NotResolved
    }
}

/// Plain against plain: its interval holds 1, or all of it is within the factor `near` either way.
fn control(interval: &Interval, near: f64, resolution: f64) -> Judgement {
    let holds = (interval.low..=interval.high).contains(&1.0);
    let is_near = interval.low >= 1.0 / near && interval.high <= near;
    if !holds && !is_near {
        Judgement::Differs
    } else if interval.half_width() > resolution {
        Judgement::NotResolved
    } else {
        Judgement::Passed
    }
}

fn one_machine(sessions: &[Session]) -> Result<()> {
    let Some((first, others)) = sessions.split_first() else {
        return Err(Error::invalid("no session in these records"));
    };
    let unnamed = sessions.iter().find(|session| session.machine.tree.is_none());
    if let (Some(unnamed), false) = (unnamed, others.is_empty()) {
        let name = &unnamed.session;
        return Err(Error::invalid(format!("session {name} does not name its tree")));
    }
    let joined = |a: &Session, b: &Session, why: &str| {
        let (a, b) = (&a.session, &b.session);
        Error::invalid(format!("sessions {a} and {b} cannot be joined: {why}"))
    };
    for other in others {
        for (a, b) in first.machine.identity().into_iter().zip(other.machine.identity()) {
            if a != b {
                return Err(joined(first, other, &format!("{a}, {b}")));
            }
        }
    }
    // Two builds of a library can have one tree; a session without one agrees with any.
    let mut known = sessions.iter().filter_map(|session| {
        let mut extensions = session.sides.iter().map(|side| side.extension_sha256.as_deref());
        extensions.find_map(|found| found).map(|found| (session, found))
    });
    let Some((one, extension)) = known.next() else { return Ok(()) };
    match known.find(|(_, other)| *other != extension) {
        None => Ok(()),
        Some((other, theirs)) => {
            Err(joined(one, other, &format!("extension {extension}, extension {theirs}")))
        }
    }
}

#[cfg(test)]
#[path = "verdict/tests.rs"]
pub mod tests;
