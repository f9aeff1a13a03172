//! The table of an experiment's observations, by its elapsed times or, where a run has several, the median of each number
//! for each side; and what its goals say.

use std::fmt::Write;

use comfy_table::Table;

use super::{align, elapsed, mean, new_table};
use crate::record::{Observation, Session};
use crate::statistics::Summary;
use crate::verdict::PairVerdict;

/// One table for each cell of `session`, then the goals.
pub fn render(session: &Session, observations: &[Observation], verdicts: &[PairVerdict]) -> String {
    let ours: Vec<&Observation> =
        observations.iter().filter(|one| one.session == session.session && one.round > 0).collect();
    let mut text = String::new();
    let timed = ours.iter().any(|one| elapsed::is_of(one));
    if timed {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", elapsed::render(session, &ours));
    }
    // Beside its elapsed time a run may have that of its calls: at a set rate it is all that says something.
    let shown = |one: &&&Observation| !timed || one.what.ends_with("_us");
    let cells = distinct(ours.iter().filter(shown).map(|one| one.cell.as_str()));
    for cell in cells {
        let of_cell: Vec<&Observation> =
            ours.iter().filter(shown).copied().filter(|one| one.cell == cell).collect();
        let _ = writeln!(text, "{}", medians(&session.scenario, cell, &of_cell));
    }
    let verdicts: Vec<_> = verdicts.iter().filter(|one| one.session == session.session).collect();
    if !verdicts.is_empty() {
        let _ = writeln!(text, "{}", goals(&verdicts));
    }
    text
}

fn medians(scenario: &str, cell: &str, observations: &[&Observation]) -> Table {
    let numbers = distinct(observations.iter().map(|one| one.what.as_str()));
    let mut header = vec![format!("{scenario}\n{cell}, medians")];
    header.extend(numbers.iter().map(|what| title(what)));
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::UTF8_FULL_CONDENSED).set_header(header);
    for side in distinct(observations.iter().map(|one| one.side.as_str())) {
        let mut row = vec![side.to_string()];
        row.extend(numbers.iter().map(|what| {
            let wanted = observations.iter().filter(|one| one.side == side && one.what == *what);
            let values: Vec<f64> = wanted.map(|one| one.value).collect();
            Summary::of(&values).map_or("-".into(), |summary| number(what, summary.median))
        }));
        table.add_row(row);
    }
    align(table)
}

fn goals(verdicts: &[&PairVerdict]) -> Table {
    let mut table = new_table(
        ["goal", "beside", "what", "found (95 %)", "at most", "verdict"].map(String::from),
    );
    for verdict in verdicts {
        let what = format!("{}, {}", verdict.cell, title(&verdict.what).replace('\n', ", "));
        let (found, most) = match (&verdict.base, &verdict.found) {
            (Some(_), found) => {
                (found.as_ref().map_or("-".into(), mean), format!("{:.4}", verdict.at_most))
            }
            (None, found) => (
                found.map_or("-".into(), |found| number(&verdict.what, found.mean)),
                number(&verdict.what, verdict.at_most),
            ),
        };
        table.add_row([
            verdict.side.clone(),
            verdict.base.clone().unwrap_or_else(|| "the largest".into()),
            what,
            found,
            most,
            verdict.judgement.text().into(),
        ]);
    }
    align(table)
}

/// `backup_elapsed_s` as `backup elapsed` above `s`.
fn title(what: &str) -> String {
    let (name, unit) = match what.strip_suffix("_mb_per_s") {
        Some(name) => (name, "MB/s"),
        None => what.rsplit_once('_').unwrap_or((what, "")),
    };
    let unit = if unit == "bytes" { "MiB" } else { unit };
    format!("{}\n{unit}", name.replace('_', " "))
}

fn number(what: &str, value: f64) -> String {
    if what.ends_with("_bytes") {
        format!("{:.1}", value / f64::from(1 << 20))
    } else if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

/// Each once, in the order in which they come.
pub fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_says_the_unit() {
        assert_eq!(title("backup_elapsed_s"), "backup elapsed\ns");
        assert_eq!(title("backup_mb_per_s"), "backup\nMB/s");
        assert_eq!(title("media_bytes"), "media\nMiB");
        assert_eq!(number("media_bytes", 3.0 * f64::from(1 << 20)), "3.0");
    }
}
