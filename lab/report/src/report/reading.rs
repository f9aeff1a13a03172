//! Records of every kind, read back as observations: one number of one run each.
//!
//! The runs of older scenarios (`run`, `work`, `phase`, `alone`, `account` lines) become observations
//! too, so that a report has one way to every figure. Summaries in `cell` lines are read for the goals
//! alone, and those in `verdict` lines not at all: they follow from the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::record::{
    self, once, Account, Alone, Calls, CellResult, Latency, Observation, Phase, Run, Session, Work,
};
use crate::verdict::Loads;

/// What some files of records hold.
#[derive(Debug, Default)]
pub struct Material {
    /// Those with at least one observation, in the order of their lines.
    pub sessions: Vec<Session>,
    pub observations: Vec<Observation>,
    /// What goals are judged by, as `lab verdict` does: no other figure is made of these.
    pub cells: Vec<CellResult>,
    pub loads: Loads,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line {
    Session(Box<Session>),
    Observation(Box<Observation>),
    Run(Box<Run>),
    Work(Box<Work>),
    Phase(Box<Phase>),
    Alone(Box<Alone>),
    Account(Box<Account>),
    Cell(Box<CellResult>),
    #[serde(other)]
    Other,
}

/// Which run a number is of.
#[derive(Debug)]
struct Turn {
    session: String,
    cell: String,
    round: usize,
    place: usize,
    side: String,
}

impl Turn {
    fn observe(&self, numbers: &[(&str, Option<f64>)], all: &mut Vec<Observation>) {
        all.extend(numbers.iter().filter_map(|(what, value)| {
            let value = (*value)?;
            Some(Observation {
                session: self.session.clone(),
                cell: self.cell.clone(),
                round: self.round,
                place: self.place,
                side: self.side.clone(),
                what: (*what).into(),
                value,
            })
        }));
    }
}

impl Material {
    /// Reads the runs of these files.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Invalid`] for a line that is no record of this schema, a session
    /// that is there twice, a number without its session, or one that was written twice.
    pub fn read(files: &[PathBuf]) -> Result<Self> {
        let mut material = Self::default();
        for file in files {
            record::read(file, |line| material.take(line))?;
        }
        material.check()?;
        material.derive();
        let observed: BTreeSet<&str> =
            material.observations.iter().map(|one| one.session.as_str()).collect();
        material.sessions.retain(|session| observed.contains(session.session.as_str()));
        Ok(material)
    }

    fn take(&mut self, line: Line) -> Result<()> {
        match line {
            Line::Session(session) => self.sessions.push(*session),
            Line::Observation(one) => self.observations.push(*one),
            Line::Run(run) => self.run(&run),
            Line::Work(work) => self.work(&work),
            Line::Phase(phase) => {
                self.phase(&phase);
                self.loads.phases.push(*phase);
            }
            Line::Alone(alone) => {
                self.alone(&alone);
                self.loads.alone.push(*alone);
            }
            Line::Account(account) => {
                self.account(&account);
                self.loads.accounts.push(*account);
            }
            Line::Cell(cell) => self.cells.push(*cell),
            Line::Other => {}
        }
        Ok(())
    }

    fn run(&mut self, run: &Run) {
        let p99 = |latency: &Latency| (latency.operations > 0).then_some(latency.p99_us);
        let numbers = [
            ("ops_per_s", Some(run.ops_per_s)),
            ("cpu_us_per_op", run.cpu_us_per_op),
            ("p50_us", Some(run.all.p50_us)),
            ("p99_us", Some(run.all.p99_us)),
            ("read_p99_us", p99(&run.read)),
            ("update_p99_us", p99(&run.update)),
            ("insert_p99_us", p99(&run.insert)),
            ("others_share", Some(run.others_share)),
            ("stolen_share", Some(run.stolen_share)),
            ("dirty_kib", Some(run.dirty_kib as f64)),
        ];
        let turn = Turn {
            session: run.session.clone(),
            cell: run.cell.clone(),
            round: run.round,
            place: run.place,
            side: run.side.clone(),
        };
        turn.observe(&numbers, &mut self.observations);
    }

    fn work(&mut self, work: &Work) {
        let numbers = [
            ("elapsed_s", Some(work.wall_s)),
            ("cpu_s", work.cpu_s),
            ("others_share", Some(work.others_share)),
            ("stolen_share", Some(work.stolen_share)),
            ("dirty_kib", Some(work.dirty_kib as f64)),
        ];
        let turn = Turn {
            session: work.session.clone(),
            cell: work.cell.clone(),
            round: work.round,
            place: work.place,
            side: work.side.clone(),
        };
        turn.observe(&numbers, &mut self.observations);
    }

    /// Each phase is once on each side: one pair, and no interval.
    fn phase(&mut self, phase: &Phase) {
        let turn = Turn {
            session: phase.session.clone(),
            cell: phase.phase.clone(),
            round: 1,
            place: phase.place,
            side: phase.side.clone(),
        };
        let scan = phase.scan;
        let longest = |calls: &Calls| Some(calls.longest_call_us);
        let numbers = [
            ("scan_s", scan.map(|scan| scan.wall_s)),
            ("scan_mb_per_s", scan.map(|scan| scan.mb_per_s)),
            ("writes_per_s", Some(phase.write.per_s)),
            ("write_p50_us", Some(phase.write.latency.p50_us)),
            ("write_p99_us", Some(phase.write.latency.p99_us)),
            ("longest_write_us", longest(&phase.write)),
            ("reads_per_s", Some(phase.read.per_s)),
            ("read_p50_us", Some(phase.read.latency.p50_us)),
            ("read_p99_us", Some(phase.read.latency.p99_us)),
            ("longest_read_us", longest(&phase.read)),
            ("failed_statements", Some((phase.write.failures() + phase.read.failures()) as f64)),
        ];
        turn.observe(&numbers, &mut self.observations);
    }

    fn alone(&mut self, alone: &Alone) {
        let before = self.observations.iter().filter(|one| {
            (&one.session, &one.cell, &one.side) == (&alone.session, &alone.what, &alone.side)
        });
        let done = before.map(|one| one.round).max().unwrap_or(0);
        for (at, wall_s) in alone.wall_s.iter().enumerate() {
            let turn = Turn {
                session: alone.session.clone(),
                cell: alone.what.clone(),
                round: done + at + 1,
                place: 0,
                side: alone.side.clone(),
            };
            let numbers = [("elapsed_s", Some(*wall_s)), ("work_s", alone.work_s.get(at).copied())];
            turn.observe(&numbers, &mut self.observations);
        }
    }

    fn account(&mut self, account: &Account) {
        let turn = Turn {
            session: account.session.clone(),
            cell: "account at the end".into(),
            round: 1,
            place: 0,
            side: account.side.clone(),
        };
        let numbers = [
            ("acknowledged_commits", Some(account.acknowledged as f64)),
            ("wrong_rows", Some(account.wrong as f64)),
            ("failed_integrity_checks", Some(f64::from(u8::from(account.integrity != "ok")))),
        ];
        turn.observe(&numbers, &mut self.observations);
    }

    fn check(&self) -> Result<()> {
        let known: BTreeSet<&str> =
            self.sessions.iter().map(|session| session.session.as_str()).collect();
        once(&self.sessions, &self.observations)?;
        for one in &self.observations {
            if !known.contains(one.session.as_str()) {
                return Err(Error::invalid(format!("no session line of {}", one.session)));
            }
            if !one.value.is_finite() {
                return Err(Error::invalid(format!("{} of {}: not a number", one.what, one.cell)));
            }
        }
        Ok(())
    }

    /// Throughput per page where a run says its pages and its time and not the throughput itself.
    fn derive(&mut self) {
        const PAGES_PER_S: &str = "pages_per_s";
        let mut runs: BTreeMap<_, BTreeMap<&str, &Observation>> = BTreeMap::new();
        for one in &self.observations {
            let run = (&one.session, &one.cell, one.round, &one.side);
            runs.entry(run).or_default().insert(&one.what, one);
        }
        let derived: Vec<Observation> = runs
            .values()
            .filter(|numbers| !numbers.contains_key(PAGES_PER_S))
            .filter_map(|numbers| {
                let pages = numbers.get("pages").or(numbers.get("processed_pages"))?;
                let elapsed = numbers.get("elapsed_s")?;
                let (pages_value, seconds) = (pages.value, elapsed.value);
                (pages_value > 0.0 && seconds > 0.0).then(|| Observation {
                    what: PAGES_PER_S.into(),
                    value: pages_value / seconds,
                    ..(*pages).clone()
                })
            })
            .collect();
        self.observations.extend(derived);
    }

    /// True where all sessions are of one machine; a tree that is not known agrees with every other.
    pub fn agrees(&self, what: impl Fn(&Session) -> String) -> bool {
        self.sessions.windows(2).all(|two| what(&two[0]) == what(&two[1]))
    }
}
