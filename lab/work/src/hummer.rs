//! Hummer, the test of article 3: processes that loop over Vendor, Card and Purchase, on every side.
//!
//! Elapsed time with the article's DELAYs and busy time without them; other journal, `synchronous` and cache sizes;
//! latency at a fixed rate. Each run begins with a fresh database, which the processes fill themselves, and ends with
//! SQLite's check and a count of every row that was acknowledged. What its control table is told while it runs, it does.

mod control;
mod options;
mod plan;
mod processor;
mod resume;
mod run;

use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use pellucid_lab_measure::blocks::{shuffled, Turn};
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::room;
use pellucid_lab_measure::random::Random;
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_report::record::parameter::WHOLE_ESTIMATE;
use pellucid_lab_report::record::{Observation, Parameters};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::estimate::Estimate;
use crate::measurement::Measurement;
use crate::piece::Piece;

use options::HummerCommand;
use plan::{Cell, Scenario};
use run::{End, Ground};

pub use options::Hummer;

/// Names the command and the sessions.
const NAME: &str = "hummer";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[Piece::experiment(NAME).resuming()];
const WARM_UP_ROUNDS: usize = 1;
/// Rows of a database, its WAL beside it, and a prepared one.
const BYTES_PER_ROW: u64 = 1200;
/// What a second signal ends the lab with.
const INTERRUPTED: i32 = 130;

impl Measurement for Hummer {
    fn name() -> &'static str {
        NAME
    }

    fn pieces() -> &'static [Piece] {
        PIECES
    }

    fn only_estimates(&self) -> bool {
        self.common.estimate
    }

    fn estimate(&self) -> Result<Estimate> {
        let scenario = Scenario::read(self.scenario.as_deref(), self.scale)?;
        Ok(estimated(self, &scenario, &self.wanted(&scenario)?))
    }

    fn run(&self) -> Result<bool> {
        if let Some(HummerCommand::Control(options)) = &self.command {
            return control::write(options);
        }
        let scenario = Scenario::read(self.scenario.as_deref(), self.scale)?;
        let cells = self.wanted(&scenario)?;
        let estimate = estimated(self, &scenario, &cells);
        if cells.is_empty() {
            return Ok(true);
        }
        let mut parameters = self.parameters(&scenario);
        let estimate_s = estimate.seconds.round();
        parameters.insert("estimate_s".into(), estimate_s.into());
        if self.scale != 1.0 {
            let whole = Scenario::read(self.scenario.as_deref(), 1.0)?;
            let whole = estimated(self, &whole, &whole.choose(&["all".into()])?).seconds.round();
            parameters.insert(WHOLE_ESTIMATE.into(), whole.into());
        }
        let names: Vec<_> = cells.iter().map(Cell::to_string).collect();
        parameters.insert("cells".into(), names.into());
        session(self, &scenario, &cells, parameters, estimate)
    }
}

impl Hummer {
    /// The cells that were asked for, with `--resume` those that the records lack.
    fn wanted(&self, scenario: &Scenario) -> Result<Vec<Cell>> {
        let cells = scenario.choose(&self.cells)?;
        match self.resume {
            true => resume::missing(self, &self.parameters(scenario), cells),
            false => Ok(cells),
        }
    }

    /// What a session was asked for, on whatever part of the cells.
    fn parameters(&self, scenario: &Scenario) -> Parameters {
        let mut parameters = scenario.parameters();
        parameters.insert("scale".into(), self.scale.into());
        parameters
    }
}

fn estimated(options: &Hummer, scenario: &Scenario, cells: &[Cell]) -> Estimate {
    let common = &options.common;
    let runs = common.sides.sides.len() * (common.rounds + WARM_UP_ROUNDS);
    let rows = scenario.processes * scenario.loops + 3 * scenario.rows();
    Estimate {
        seconds: cells.iter().map(|cell| scenario.estimate(cell) * runs as f64).sum(),
        bytes: rows * BYTES_PER_ROW,
    }
}

fn session(
    options: &Hummer,
    scenario: &Scenario,
    cells: &[Cell],
    parameters: Parameters,
    estimate: Estimate,
) -> Result<bool> {
    let seed = options.common.seed;
    let interrupted = interruption()?;
    let mut place = Place::open_deaf(NAME, &options.common)?;
    room(place.path(), estimate.bytes)?;
    let ground = Ground::prepare(scenario, cells, &place, seed)?;
    let conditions = Conditions {
        sides: ground.describe(),
        warm_up_rounds: WARM_UP_ROUNDS,
        setting: cells.first().map(|cell| scenario.setting(cell, scenario.size(cell))),
        parameters,
        ..Conditions::default()
    };
    let rounds = place.begin(conditions, cells.len())?;
    let mut left_s = estimate.seconds;
    for cell in cells {
        let name = cell.to_string();
        for round in 1 - WARM_UP_ROUNDS..=rounds.rounds {
            for (drawn, side) in
                order(seed, round, &name, rounds.sides.len()).into_iter().enumerate()
            {
                let turn = Turn { round, place: drawn, side };
                tell(&mut place, &ground, &name, turn, left_s);
                let done = ground.run(cell, turn, &interrupted)?;
                let name = format!("{name}{}", done.end.suffix());
                for (what, value) in done.numbers {
                    place.observe(Observation {
                        session: rounds.session.clone(),
                        cell: name.clone(),
                        round,
                        place: drawn,
                        side: rounds.sides[side].clone(),
                        what,
                        value,
                    })?;
                }
                if done.end == End::Stopped {
                    place.finish()?;
                    eprintln!("lab: hummer: stopped in {name}; `--resume` goes on with this cell");
                    return Ok(false);
                }
                left_s -= scenario.estimate(cell);
            }
        }
    }
    place.finish()?;
    Ok(true)
}

/// The sides of a round as they come.
fn order(seed: u64, round: usize, cell: &str, sides: usize) -> Vec<usize> {
    let mut name = vec![seed, round as u64];
    name.extend(cell.bytes().map(u64::from));
    shuffled(sides, &mut Random::of(&name))
}

/// What runs now, what is left of the estimate, and how to change it: on the bar, or a line where there is none.
fn tell(place: &mut Place, ground: &Ground, cell: &str, turn: Turn, left_s: f64) {
    let (side, database) = ground.shown(turn.side);
    let minutes = (left_s / 60.0).ceil().max(1.0);
    let line =
        format!("{cell}, round {}, {side}, about {minutes} min left, {database}", turn.round);
    if !std::io::stderr().is_terminal() {
        eprintln!("lab: hummer: {line}");
    }
    place.step(&line);
}

/// Set by the first signal that asks the lab to end: the run is then stopped as the control table stops it. The second
/// ends the lab at once.
fn interruption() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&interrupted))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupted)))
            .map_err(Error::io("waiting for signals"))?;
    }
    Ok(interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_drawn_for_each_round_of_each_cell() {
        let orders: Vec<_> = (0..40).map(|round| order(1, round, "busy-4/3/3", 2)).collect();
        assert!(orders.contains(&vec![0, 1]) && orders.contains(&vec![1, 0]));
        assert_eq!(orders[7], order(1, 7, "busy-4/3/3", 2));
        let others: Vec<_> = (0..40).map(|round| order(1, round, "busy-0/5/5", 2)).collect();
        assert_ne!(orders, others);
    }
}
