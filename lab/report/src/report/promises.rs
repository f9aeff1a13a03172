//! The goals of `lab/goals.json` and what became of them in these records, by the verdict's own rules.

use super::figures::Word;
use super::reading::Material;
use super::tables::{Entry, Origin, Table};
use super::text;
use crate::goals::Goals;
use crate::record::Session;
use crate::statistics::Interval;
use crate::verdict::{Family, Judgement, LoadVerdict, PairVerdict, Verdict};

/// What the records say of the goals.
#[derive(Debug)]
pub struct Promises {
    pub table: Table,
    /// `Goals: 5 of 8 reached. Not reached: ...`; nothing where nothing has a goal.
    pub said: Option<String>,
}

/// One goal.
#[derive(Debug)]
struct Promise {
    goal: String,
    found: Entry,
    judgement: Judgement,
    of: String,
}

impl Promises {
    /// Judges the goals that the records speak of, together what can be joined.
    pub fn of(material: &Material) -> Self {
        let goals = Goals::read();
        let mut promises = Vec::new();
        for group in groups(&material.sessions) {
            // What cannot be joined is judged session by session.
            match verdict(&group, material, &goals) {
                Some(verdict) => promises.extend(told(&verdict, &group, &goals)),
                None => {
                    for session in &group {
                        let one = std::slice::from_ref(session);
                        let verdict = verdict(one, material, &goals);
                        promises
                            .extend(verdict.iter().flat_map(|verdict| told(verdict, one, &goals)));
                    }
                }
            }
        }
        let of = |judgement: Judgement| -> Vec<String> {
            let those = promises.iter().filter(|promise| promise.judgement == judgement);
            those.map(|promise| format!("{}: {}", promise.goal, promise.found.text)).collect()
        };
        let said = (!promises.is_empty()).then(|| {
            let (reached, all) = (of(Judgement::Passed).len(), promises.len());
            let mut said =
                format!("Goals that these records speak of: {reached} of {all} reached.");
            let open = of(Judgement::NotResolved).len();
            if open > 0 {
                said.push_str(&format!(" Not resolved or not measured: {open}."));
            }
            let missed = of(Judgement::Below);
            if !missed.is_empty() {
                said.push_str(&format!(" Not reached: {}.", missed.join("; ")));
            }
            said
        });
        let columns = ["goal\t", "measured, 95 %", "verdict\t", "of\t"];
        let mut table = Table::new("goals".into(), "Goals", &columns);
        table.rows = promises.into_iter().map(Promise::row).collect();
        Self { table, said }
    }
}

impl Promise {
    fn row(self) -> Vec<Entry> {
        let (word, said) = match self.judgement {
            Judgement::Passed => (Word::NoDifference, "reached"),
            Judgement::NotResolved => (Word::NotResolved, "not resolved"),
            Judgement::Below | Judgement::Differs => (Word::Worse, "not reached"),
        };
        let verdict = Entry { word: Some(word), ..said.into() };
        let origin = self.found.value.map(|_| Origin {
            session: String::new(),
            cell: self.goal.clone(),
            side: String::new(),
            what: "goal".into(),
            statistic: "goal".into(),
        });
        vec![self.goal.into(), Entry { origin, ..self.found }, verdict, self.of.into()]
    }
}

/// Sessions that one verdict can be about: of one machine and tree.
fn groups(sessions: &[Session]) -> Vec<Vec<Session>> {
    let mut groups: Vec<Vec<Session>> = Vec::new();
    for session in sessions {
        let own = |group: &&mut Vec<Session>| {
            session.machine.tree.is_some()
                && group[0].machine.identity() == session.machine.identity()
        };
        match groups.iter_mut().find(own) {
            Some(group) => group.push(session.clone()),
            None => groups.push(vec![session.clone()]),
        }
    }
    groups
}

fn verdict(sessions: &[Session], material: &Material, goals: &Goals) -> Option<Verdict> {
    let own = |name: &str| sessions.iter().any(|session| session.session == name);
    let cells: Vec<_> = material.cells.iter().filter(|cell| own(&cell.session)).cloned().collect();
    let verdict = Verdict::of(sessions, &cells, goals).ok()?;
    Some(verdict.with(sessions, &material.loads, &material.observations))
}

fn told(verdict: &Verdict, sessions: &[Session], goals: &Goals) -> Vec<Promise> {
    // The control is held to the same rule, and is told with the experiments.
    let sealed = |family: &&Family| family.judged && family.side == "sealed";
    let mut promises: Vec<Promise> = verdict
        .families
        .iter()
        .filter(sealed)
        .flat_map(|family| of_family(family, goals))
        .collect();
    promises.extend(verdict.peers.iter().map(|peer| Promise {
        goal: format!("speed over {} at least {:.2}", peer.peer, peer.goal),
        found: ratio(&peer.geometric_mean),
        judgement: peer.judgement,
        of: format!("geometric mean of {} of {} cells", peer.cells.len(), peer.mean_of),
    }));
    promises.extend(verdict.pairs.iter().map(of_pair));
    promises.extend(
        verdict.loads.iter().filter(|load| load.judged).flat_map(|load| of_load(load, sessions)),
    );
    promises
}

/// Its mean, if that has a goal, each cell that missed its own or is not resolved, and the others in one row.
fn of_family(family: &Family, goals: &Goals) -> Vec<Promise> {
    let Family { scenario, base, .. } = family;
    let each = match scenario.as_str() {
        "whole" => goals.whole_database,
        "scan-speed" => goals.scan_speed,
        "speedtest1" => 1.0 / goals.speedtest1_time,
        _ => goals.cell,
    };
    let each = format!("{each:.2}");
    let mut promises = Vec::new();
    if let (Some(goal), Some(judgement)) = (family.goal, family.judgement) {
        promises.push(Promise {
            goal: format!("{scenario}: mean speed over {base} at least {goal:.2}"),
            found: ratio(&family.geometric_mean),
            judgement,
            of: format!("geometric mean of {} of {} cells", family.mean_over, family.mean_of),
        });
    }
    let (reached, others): (Vec<_>, Vec<_>) =
        family.cells.iter().partition(|cell| cell.judgement == Judgement::Passed);
    promises.extend(others.into_iter().map(|cell| Promise {
        goal: format!("{scenario}, {}: speed over {base} at least {each}", cell.cell),
        found: ratio(&cell.interval),
        judgement: cell.judgement,
        of: format!("one of {} cells; interval corrected for their number", family.cells.len()),
    }));
    let least = reached.iter().min_by(|a, b| a.interval.mean.total_cmp(&b.interval.mean));
    promises.extend(least.map(|least| Promise {
        goal: format!("{scenario}: speed over {base} in each cell at least {each}"),
        found: ratio(&least.interval),
        judgement: Judgement::Passed,
        of: format!("{} of {} cells; the least, {}", reached.len(), family.cells.len(), least.cell),
    }));
    promises
}

fn of_pair(pair: &PairVerdict) -> Promise {
    let PairVerdict { cell, side, what, at_most, .. } = pair;
    let quantity = text::quantity(what);
    let (goal, found) = match &pair.base {
        Some(base) => (
            format!("{quantity} of {side} over {base} at most {at_most}"),
            pair.found.as_ref().map(ratio),
        ),
        None => (
            format!("{quantity} of {side} at most {}", text::value(what, *at_most)),
            pair.found.map(|found| Entry {
                value: Some(found.mean),
                ..text::value(what, found.mean).into()
            }),
        ),
    };
    Promise {
        goal,
        found: found.unwrap_or_else(|| "–".into()),
        judgement: pair.judgement,
        of: cell.clone(),
    }
}

fn of_load(load: &LoadVerdict, sessions: &[Session]) -> Vec<Promise> {
    let scenario = sessions.iter().find(|session| session.session == load.session);
    let scenario = scenario.map_or("", |session| session.scenario.as_str());
    let promise = |check: &crate::verdict::Check| Promise {
        goal: format!(
            "{scenario}, {}: {} at most {}",
            load.database,
            check.what,
            text::number(check.goal)
        ),
        found: Entry { value: Some(check.found), ..text::number(check.found).into() },
        judgement: if check.passed { Judgement::Passed } else { Judgement::Below },
        of: load.side.clone(),
    };
    load.checks.iter().map(promise).collect()
}

/// Speeds and times of goals are ratios in `goals.json`, and so beside it.
fn ratio(interval: &Interval) -> Entry {
    let Interval { mean, low, high, .. } = *interval;
    let text = format!("{} ({} to {})", text::ratio(mean), text::ratio(low), text::ratio(high));
    Entry { value: Some(mean), ends: Some((low, high)), ..text.into() }
}
