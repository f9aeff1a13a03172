//! Which cells a file of records has already.

use std::path::Path;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::machine;
use pellucid_lab_report::record::{Machine, Observation, Parameters, Session, SideDescription};
use pellucid_lab_report::recorded::Recorded;

use super::Hummer;

use super::plan::Cell;
use super::run::LAST;
use super::{NAME, WARM_UP_ROUNDS, WHOLE_ESTIMATE};

/// Of a session, what may differ between pieces of one measurement.
const OF_A_PIECE: [&str; 3] = ["estimate_s", WHOLE_ESTIMATE, "cells"];

/// What a session has to agree in, so that its cells count.
#[derive(Debug)]
struct Wanted<'a> {
    machine: &'a Machine,
    parameters: &'a Parameters,
    sides: &'a [SideDescription],
    rounds: usize,
    seed: u64,
}

/// The cells that no session of the same tree, machine, sides and parameters has completely.
///
/// # Errors
/// [`Error::Invalid`] if the tree is not known, or a record cannot be read.
pub fn missing(options: &Hummer, parameters: &Parameters, cells: Vec<Cell>) -> Result<Vec<Cell>> {
    let common = &options.common;
    let records = common.records(NAME);
    if !records.exists() {
        return Ok(cells);
    }
    let recorded = Recorded::read(&[records], &[])?;
    let dir = common.dir();
    let dir = dir.canonicalize().map_err(Error::io(dir.display().to_string()))?;
    let machine = machine::describe(&dir)?;
    if machine.tree.is_none() {
        return Err(Error::invalid("--resume: the tree is not known, so no record is of it"));
    }
    // No side is opened here: the key is of no account.
    let sides = common.sides.sides(Path::new("key"))?;
    let sides = sides.iter().map(|side| side.describe()).collect::<Result<Vec<_>>>()?;
    let wanted = Wanted {
        machine: &machine,
        parameters,
        sides: &sides,
        rounds: common.rounds,
        seed: common.seed,
    };
    let same: Vec<_> = recorded.sessions.iter().filter(|session| wanted.is(session)).collect();
    let have = |cell: &Cell| {
        same.iter().any(|session| complete(session, &cell.to_string(), &recorded.observations))
    };
    let (have, missing): (Vec<_>, Vec<_>) = cells.into_iter().partition(have);
    eprintln!("lab: hummer: {} cells are in the records, {} are not", have.len(), missing.len());
    Ok(missing)
}

impl Wanted<'_> {
    fn is(&self, session: &Session) -> bool {
        let of_side = |side: &SideDescription| {
            let SideDescription { side, kind, algorithm, extension_sha256, .. } = side;
            (side.clone(), kind.clone(), algorithm.clone(), extension_sha256.clone())
        };
        let parameters = |parameters: &Parameters| {
            let mut parameters = parameters.clone();
            parameters.retain(|name, _| !OF_A_PIECE.contains(&name.as_str()));
            parameters
        };
        session.scenario == NAME
            && (session.rounds, session.seed) == (self.rounds, self.seed)
            && session.machine.identity() == self.machine.identity()
            && session.sides.iter().map(of_side).eq(self.sides.iter().map(of_side))
            && parameters(&session.parameters) == parameters(self.parameters)
    }
}

/// Whether every side has every round of `cell`, the warm-up too.
fn complete(session: &Session, cell: &str, observations: &[Observation]) -> bool {
    (1 - WARM_UP_ROUNDS..=session.rounds).all(|round| {
        session.sides.iter().all(|side| {
            observations.iter().any(|one| {
                (&one.session, one.cell.as_str(), one.round) == (&session.session, cell, round)
                    && one.side == side.side
                    && one.what == LAST
            })
        })
    })
}
