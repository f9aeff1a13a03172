//! The table of an experiment whose observations have an elapsed time: mean, spread, and the time over the base's.

use comfy_table::Table;

use super::pairs::distinct;
use super::{align, mean as with_range, new_table};
use crate::record::{Observation, Session};
use crate::statistics::{deviation, mean, LogMean};

pub const WHAT: &str = "elapsed_s";

/// A row for every cell and side; of `observations` no warm-up.
pub fn render(session: &Session, observations: &[&Observation]) -> Table {
    let base = session.sides.first().map_or("", |side| side.side.as_str());
    let mut table = new_table([
        session.scenario.clone(),
        "elapsed s, mean".into(),
        "deviation".into(),
        "min..max".into(),
        format!("time over {base}'s,\nmean (95 %)"),
        "CPU s".into(),
        "media MiB".into(),
    ]);
    let mut cells = distinct(observations.iter().map(|one| one.cell.as_str()));
    cells.sort_unstable();
    for cell in cells {
        for side in session.sides.iter().map(|side| side.side.as_str()) {
            let values = |side: &str, what: &str| -> Vec<f64> {
                let wanted = |one: &&&Observation| {
                    (&*one.cell, &*one.side, &*one.what) == (cell, side, what)
                };
                observations.iter().filter(wanted).map(|one| one.value).collect()
            };
            let elapsed = values(side, WHAT);
            if elapsed.is_empty() {
                continue;
            }
            let of_base = values(base, WHAT);
            let ratios: Vec<f64> = elapsed.iter().zip(&of_base).map(|(a, b)| a / b).collect();
            let over = match LogMean::of(&ratios) {
                _ if side == base => "-".into(),
                Some(of) => with_range(&of.interval(1)),
                None => mean(&ratios).map_or("-".into(), |mean| format!("{mean:.3}")),
            };
            let least = elapsed.iter().copied().fold(f64::INFINITY, f64::min);
            let most = elapsed.iter().copied().fold(0.0, f64::max);
            let mib = mean(&values(side, "media_bytes")).map(|bytes| bytes / 1_048_576.0);
            table.add_row([
                format!("{cell}: {side}"),
                shown(mean(&elapsed), 3),
                shown(deviation(&elapsed), 3),
                format!("{least:.3}..{most:.3}"),
                over,
                shown(mean(&values(side, "cpu_s")), 3),
                shown(mib, 2),
            ]);
        }
    }
    align(table)
}

fn shown(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(|| "-".into(), |number| format!("{number:.digits$}"))
}
