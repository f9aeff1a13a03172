//! The table of an experiment's observations: elapsed time of every cell and side, or speed where work goes on for a set
//! time; mean, spread, and the time over the base's.

use std::collections::BTreeMap;

use comfy_table::Table;

use super::pairs::distinct;
use super::{align, mean as with_range, new_table};
use crate::record::{Observation, Session};
use crate::statistics::{deviation, mean, LogMean};

const ELAPSED: &str = "elapsed_s";
const SPEED: &str = "ops_per_s";

/// Whether there is something to show of it.
pub fn is_of(observation: &Observation) -> bool {
    observation.what == ELAPSED
}

/// A row for every cell and side; of `observations` no warm-up.
pub fn render(session: &Session, observations: &[&Observation]) -> Table {
    let base = session.sides.first().map_or("", |side| side.side.as_str());
    let mut table = new_table([
        session.scenario.clone(),
        "elapsed s,\nor per s: mean".into(),
        "deviation".into(),
        "min..max".into(),
        format!("time over {base}'s,\nmean (95 %)"),
        "CPU s".into(),
        "media MiB".into(),
    ]);
    let mut cells = distinct(observations.iter().map(|one| one.cell.as_str()));
    cells.sort_unstable();
    for cell in cells {
        let has = |what: &str| observations.iter().any(|one| one.cell == cell && one.what == what);
        let timed = has(ELAPSED) || !has(SPEED);
        let (what, per_s) = if timed { (ELAPSED, "") } else { (SPEED, ", per s") };
        for side in session.sides.iter().map(|side| side.side.as_str()) {
            let rounds = |side: &str, what: &str| -> BTreeMap<_, f64> {
                let wanted = |one: &&&Observation| {
                    (&*one.cell, &*one.side, &*one.what) == (cell, side, what)
                };
                observations.iter().filter(wanted).map(|one| (one.round, one.value)).collect()
            };
            let values = |side, what| rounds(side, what).into_values().collect::<Vec<_>>();
            let elapsed = values(side, what);
            if elapsed.is_empty() {
                continue;
            }
            // Of a round that one of them lacks there is no ratio.
            let of_base = rounds(base, what);
            let pairs = rounds(side, what)
                .into_iter()
                .filter_map(|(round, side)| of_base.get(&round).map(|base| (side, *base)));
            let ratios: Vec<f64> =
                pairs.map(|(side, base)| if timed { side / base } else { base / side }).collect();
            let over = match LogMean::of(&ratios) {
                _ if side == base => "-".into(),
                Some(of) => with_range(&of.interval(1)),
                None => mean(&ratios).map_or("-".into(), |mean| format!("{mean:.3}")),
            };
            let least = elapsed.iter().copied().fold(f64::INFINITY, f64::min);
            let most = elapsed.iter().copied().fold(0.0, f64::max);
            let mib = mean(&values(side, "media_bytes")).map(|bytes| bytes / 1_048_576.0);
            table.add_row([
                format!("{cell}: {side}{per_s}"),
                shown(mean(&elapsed)),
                shown(deviation(&elapsed)),
                format!("{}..{}", digits(least), digits(most)),
                over,
                shown(mean(&values(side, "cpu_s"))),
                mib.map_or("-".into(), |mib| format!("{mib:.2}")),
            ]);
        }
    }
    align(table)
}

fn shown(number: Option<f64>) -> String {
    number.map_or_else(|| "-".into(), digits)
}

/// A statement may take microseconds.
fn digits(number: f64) -> String {
    if number.abs() < 0.1 {
        format!("{number:.6}")
    } else {
        format!("{number:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::{session, side};

    #[test]
    fn what_is_paired_is_of_one_round() {
        let one = |side: &str, round, value| Observation {
            session: "1".into(),
            cell: "4/3/3".into(),
            round,
            place: 0,
            side: side.into(),
            what: ELAPSED.into(),
            value,
        };
        let mut all: Vec<_> =
            (1..=5).map(|round| one("plain", round, 10.0 * round as f64)).collect();
        // Of plain the third is missing.
        all.remove(2);
        all.extend((1..=5).map(|round| one("sealed", round, 20.0 * round as f64)));
        let mut session = session("1", None);
        session.sides = vec![side("plain", None), side("sealed", None)];
        let text = render(&session, &all.iter().collect::<Vec<_>>()).to_string();
        assert!(text.contains("2.000 (2.000..2.000)"), "{text}");
    }

    #[test]
    fn short_times_keep_their_digits() {
        assert_eq!((digits(12.3456), digits(0.000_123)), ("12.346".into(), "0.000123".into()));
    }
}
