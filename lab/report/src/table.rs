//! The tables of some sessions and of their verdict, from the same values as the records.

mod elapsed;
mod load;
mod pairs;

use std::fmt::Write;

use comfy_table::{presets::UTF8_FULL_CONDENSED, CellAlignment, Table};

use crate::record::{CellResult, Observation, Session};
use crate::statistics::Interval;
use crate::verdict::{Family, Loads, Verdict};

/// More than this of the machine in others' hands, and the reader is told.
const QUIET_SHARE: f64 = 0.05;

/// A table for each pair of sides, the verdict, and notes.
pub fn render(
    sessions: &[Session],
    cells: &[CellResult],
    loads: &Loads,
    observations: &[Observation],
    verdict: &Verdict,
) -> String {
    let mut text = String::new();
    for family in &verdict.families {
        let of_family: Vec<_> =
            cells.iter().filter(|cell| belongs(cell, family, sessions)).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", family_table(family, &of_family));
    }
    if !verdict.families.is_empty() {
        let _ = writeln!(text, "{}", verdict_table(verdict));
    }
    for load in &verdict.loads {
        let _ = writeln!(text, "{}", load::render(load, loads));
    }
    for session in sessions {
        text.push_str(&pairs::render(session, observations, &verdict.pairs));
    }
    let notes = sessions.iter().flat_map(|session| notes(session, cells));
    text + &notes.collect::<Vec<_>>().join("\n")
}

fn belongs(cell: &CellResult, family: &Family, sessions: &[Session]) -> bool {
    let [base, side] = &cell.sides;
    let session = sessions.iter().find(|session| session.session == cell.session);
    (&base.side, &side.side) == (&family.base, &family.side)
        && session.is_some_and(|session| session.scenario == family.scenario)
}

fn family_table(family: &Family, cells: &[&CellResult]) -> Table {
    let Family { base, side, .. } = family;
    let mut table = new_table([
        family.scenario.clone(),
        format!("{side} / {base}\nspeed, mean (95 %)"),
        format!("corrected for\n{} cells", cells.len()),
        "verdict".into(),
        "median".into(),
        "min..max".into(),
        "CPU per op,\nratio".into(),
        format!("ops/s\n{base} : {side}"),
        format!("p50 us\n{base} : {side}"),
        format!("p99 us\n{base} : {side}"),
    ]);
    for cell in cells {
        let [a, b] = &cell.sides;
        let judged = family.cells.iter().find(|judged| judged.cell == cell.cell);
        table.add_row([
            cell.cell.clone(),
            cell.ratio_mean.map_or("-".into(), |interval| mean(&interval)),
            judged.map_or("-".into(), |judged| range(&judged.interval)),
            judged.map_or("-".into(), |judged| judged.judgement.text().into()),
            format!("{:.3}", cell.ratio.median),
            format!("{:.3}..{:.3}", cell.ratio.min, cell.ratio.max),
            cell.cpu_ratio.map_or("-".into(), |ratio| format!("{:.3}", ratio.median)),
            format!("{} : {}", short(a.ops_per_s.median), short(b.ops_per_s.median)),
            format!("{:.1} : {:.1}", a.latency.p50_us, b.latency.p50_us),
            format!("{:.0} : {:.0}", a.latency.p99_us, b.latency.p99_us),
        ]);
    }
    align(table)
}

fn verdict_table(verdict: &Verdict) -> Table {
    let mut table = new_table(
        ["", "geometric mean (95 %)", "over", "goal", "verdict", "cells below", "not resolved"]
            .map(String::from),
    );
    for family in &verdict.families {
        use crate::verdict::Judgement::{Below, NotResolved};
        let count = |kind| family.cells.iter().filter(|c| c.judgement == kind).count().to_string();
        let no_mean_goal = if family.judged { "each cell" } else { "none" };
        table.add_row([
            format!("{} / {}, {}", family.side, family.base, family.scenario),
            mean(&family.geometric_mean),
            format!("{} of {}", family.mean_over, family.mean_of),
            family.goal.map_or_else(|| no_mean_goal.into(), |goal| format!("{goal:.2}")),
            family.judgement.map_or("-", |judgement| judgement.text()).into(),
            count(Below),
            count(NotResolved),
        ]);
    }
    for peer in &verdict.peers {
        table.add_row([
            format!("sealed / {}", peer.peer),
            mean(&peer.geometric_mean),
            format!("{} of {}", peer.cells.len(), peer.mean_of),
            format!("{:.2}", peer.goal),
            peer.judgement.text().into(),
            "-".into(),
            "-".into(),
        ]);
    }
    align(table)
}

fn new_table<const N: usize>(header: [String; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(header);
    table
}

fn align(mut table: Table) -> Table {
    table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    table
}

/// Three digits at least.
fn short(number: f64) -> String {
    let digits = if number >= 100.0 { 0 } else { 3 };
    format!("{number:.digits$}")
}

fn mean(interval: &Interval) -> String {
    format!("{:.3} ({})", interval.mean, range(interval))
}

fn range(interval: &Interval) -> String {
    format!("{:.3}..{:.3}", interval.low, interval.high)
}

fn notes(session: &Session, cells: &[CellResult]) -> Vec<String> {
    let mut notes = vec![session.machine.line()];
    let names: Vec<_> = session.sides.iter().map(|side| side.side.as_str()).collect();
    for side in &session.sides {
        if let Some(change) = &side.change {
            notes.push(format!("{}: {change}", side.side));
        }
    }
    notes.push(format!(
        "{} rounds of {} in random order; speed above 1: faster than {}; session {}",
        session.rounds,
        names.join(", "),
        names.first().copied().unwrap_or_default(),
        session.session
    ));
    let of_session = || cells.iter().filter(|cell| cell.session == session.session);
    let most = |of: fn(&CellResult) -> f64| of_session().map(of).fold(0.0, f64::max);
    let (others, stolen) =
        (most(|cell| cell.others_share.median), most(|cell| cell.stolen_share.median));
    if others + stolen > QUIET_SHARE {
        notes.push(format!(
            "note: others used up to {:.0} % of this machine during the runs, its host took {:.0} %: \
             trust the processor time more than the speed",
            others * 100.0,
            stolen * 100.0
        ));
    }
    if session.machine.lab_profile != "release" {
        notes.push(
            "note: a debug build measures itself; use `cargo build --release --workspace`".into(),
        );
    }
    notes
}
