//! What a reader must know before believing a number.

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{Figure, Word};
use super::reading::Material;
use super::section::primary;
use crate::clock::length_of;
use crate::record::parameter::{UNTIL_PERCENT, WHOLE_ESTIMATE};
use crate::record::{Observation, Session};
use crate::statistics::{at_least, CONFIDENCE};

/// More than this of the machine in others' hands, and the reader is told.
const QUIET_SHARE: f64 = 0.05;
/// As this much unwritten data at the beginning of a run, which then shares the disk with it.
const QUIET_KIB: f64 = 65_536.0;

/// What a reader must know before believing a number.
pub fn cautions(material: &Material, figures: &[Figure], machines: usize) -> Vec<String> {
    let mut cautions = Vec::new();
    if machines > 1 {
        cautions.push(format!(
            "These records are of {machines} machines (or kernels, or builds): compare figures only within a session."
        ));
    }
    let tree = |session: &Session| session.machine.tree.clone().unwrap_or_default();
    if !material.agrees(tree) {
        cautions.push("The sessions were run with different trees of the sources.".into());
    }
    let debug = |session: &&Session| session.machine.lab_profile != "release";
    if material.sessions.iter().any(|session| debug(&session)) {
        cautions.push("A debug build was measured: it measures itself.".into());
    }
    for session in &material.sessions {
        let number = |name| session.parameters.get(name).and_then(serde_json::Value::as_f64);
        if let Some(scale) = number("scale").filter(|scale| *scale != 1.0) {
            let whole = number(WHOLE_ESTIMATE)
                .map(|seconds| format!("; by its estimate that takes {}", length_of(seconds)))
                .unwrap_or_default();
            cautions.push(format!(
                "{} was run at scale {scale}, not at the article's size{whole}.",
                session.scenario
            ));
        }
    }
    let controls = || figures.iter().filter(|figure| figure.side == "again" && primary(figure));
    let lost = controls()
        .filter(|figure| matches!(figure.word(), Word::Worse | Word::Better))
        .map(|figure| format!("{} of {}", figure.cell, figure.scenario))
        .collect::<Vec<_>>();
    // Of 95 % intervals one in twenty misses by chance.
    if !lost.is_empty() {
        let count = controls().count();
        let chance = at_least(lost.len(), count, 1.0 - CONFIDENCE);
        let said = match chance < 1.0 - CONFIDENCE {
            true => "more than chance would: do not trust small differences of these sessions",
            false => "which chance may do",
        };
        cautions.push(format!(
            "The control, plain against plain, shows a difference in {} of {count} cells ({}), {said}.",
            lost.len(),
            lost.join(", ")
        ));
    }
    cautions.extend(lost_data(material));
    let planned = |figure: &Figure| {
        let of = material
            .sessions
            .iter()
            .find(|session| session.session == figure.session)
            .filter(|session| !session.parameters.contains_key(UNTIL_PERCENT));
        of.map_or(0, |session| session.rounds)
    };
    let short: BTreeSet<String> = figures
        .iter()
        .filter(|figure| primary(figure) && figure.rounds.len() < planned(figure))
        .map(|figure| format!("{} of {}", figure.cell, figure.scenario))
        .collect();
    if !short.is_empty() {
        let names: Vec<&str> = short.iter().map(String::as_str).collect();
        cautions.push(format!(
            "Interrupted, with fewer rounds than were planned: {}.",
            names.join(", ")
        ));
    }
    // Shares of 1, and in the experiments percent.
    let busy = ["others", "stolen"].map(|who| {
        let (share, percent) = (format!("{who}_share"), format!("{who}_percent_cpu"));
        let of_run = |one: &Observation| match &one.what {
            what if *what == share => Some(one.value),
            what if *what == percent => Some(one.value / 100.0),
            _ => None,
        };
        // The machine counts in ticks, which are coarse beside a short run: the mean of a cell's.
        let mut cells = BTreeMap::<_, (f64, f64)>::new();
        for one in material.observations.iter().filter(|one| one.round > 0) {
            if let Some(share) = of_run(one) {
                let (sum, runs) = cells.entry((&one.session, &one.cell)).or_default();
                (*sum, *runs) = (*sum + share, *runs + 1.0);
            }
        }
        cells.values().map(|(sum, runs)| sum / runs).fold(0.0, f64::max)
    });
    if busy.iter().any(|share| *share > QUIET_SHARE) {
        cautions.push(format!(
            "Others used up to {:.0} % of the machine in the runs of a cell, its host took up to {:.0} %.",
            busy[0] * 100.0,
            busy[1] * 100.0
        ));
    }
    let scenarios =
        material.sessions.iter().map(|one| (one.session.as_str(), one.scenario.as_str())).collect();
    cautions.extend(unwritten(&scenarios, &material.observations));
    let unpaired: usize = figures.iter().filter(|one| primary(one)).map(|one| one.unpaired).sum();
    if unpaired > 0 {
        cautions.push(format!(
            "Runs without a partner in their round, which are in no ratio: {unpaired}."
        ));
    }
    cautions
}

/// Which experiments have runs that began while the machine had much to write; `scenarios` is by session.
fn unwritten(scenarios: &BTreeMap<&str, &str>, observations: &[Observation]) -> Option<String> {
    let mut runs = BTreeMap::<&str, (usize, usize)>::new();
    for one in observations.iter().filter(|one| one.round > 0 && one.what == "dirty_kib") {
        let Some(scenario) = scenarios.get(&*one.session) else { continue };
        let (late, all) = runs.entry(scenario).or_default();
        (*late, *all) = (*late + usize::from(one.value > QUIET_KIB), *all + 1);
    }
    let named: Vec<String> = runs
        .iter()
        .filter(|(_, (late, _))| *late > 0)
        .map(|(scenario, (late, all))| format!("{scenario} ({late} of {all} runs)"))
        .collect();
    (!named.is_empty()).then(|| {
        let mib = QUIET_KIB / 1024.0;
        format!("More than {mib} MiB were unwritten when runs began: {}.", named.join(", "))
    })
}

/// What no speed makes up for: rows that are not there, damage, statements that failed.
fn lost_data(material: &Material) -> Vec<String> {
    let told = [
        ("wrong_rows", "rows are wrong or missing"),
        ("failed_integrity_checks", "integrity checks failed"),
        ("failed_statements", "statements failed"),
    ];
    let mut cautions = Vec::new();
    for (what, words) in told {
        for one in material.observations.iter().filter(|one| one.what == what && one.value > 0.0) {
            let scenario = material.sessions.iter().find(|known| known.session == one.session);
            let scenario = scenario.map_or("", |session| session.scenario.as_str());
            cautions
                .push(format!("{scenario}, {}, {}: {} {words}.", one.cell, one.side, one.value));
        }
    }
    cautions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of one session that began with `dirty_kib`, the first of them a warm-up.
    fn runs(session: &str, dirty_kib: &[f64]) -> Vec<Observation> {
        let one = |(round, value): (usize, &f64)| Observation {
            session: session.into(),
            cell: "4/3/3".into(),
            round,
            place: 0,
            side: "plain".into(),
            what: "dirty_kib".into(),
            value: *value,
        };
        dirty_kib.iter().enumerate().map(one).collect()
    }

    #[test]
    fn runs_that_began_with_much_unwritten_are_counted() {
        let sessions = [("1", "hummer"), ("2", "side-effects"), ("3", "side-effects")].into();
        let mut all = runs("1", &[1e6, 65_536.0, 900.0]);
        assert_eq!(unwritten(&sessions, &all), None);
        all.extend(runs("2", &[0.0, 65_537.0, 900.0]));
        all.extend(runs("3", &[0.0, 1.2e6]));
        // What else is large is no unwritten data.
        all.push(Observation { what: "database_kib".into(), ..all[0].clone() });
        assert_eq!(
            unwritten(&sessions, &all).unwrap(),
            "More than 64 MiB were unwritten when runs began: side-effects (2 of 3 runs)."
        );
    }
}
