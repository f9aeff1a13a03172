//! The tables of a report: one set of numbers for the page, for Markdown and for the terminal.

mod entry;
mod records;

use std::collections::BTreeSet;

use super::articles::{Fact, Statistic};
use super::figures::{Figure, Sense};
use super::headline::{Lead, CONTROL};
use super::reading::Material;
use super::text;
use crate::statistics::{mean_within_fences, Interval};

use entry::Column;

pub use entry::{Entry, Origin, Table};
pub use records::{machine_name, machines, raw, sessions};

/// Processor time of a run: of its statement, of its process, of each operation.
pub const EFFORTS: [&str; 3] = ["cpu_s", "process_cpu_s", "cpu_us_per_op"];

fn origin(figure: &Figure, statistic: &str) -> Origin {
    Origin {
        session: figure.session.clone(),
        cell: figure.cell.clone(),
        side: figure.side.clone(),
        what: figure.what.clone(),
        statistic: statistic.into(),
    }
}

/// Of the first screen: each line, its numbers and where they come from.
pub fn headlines(leads: &[Lead]) -> Table {
    let columns = [
        "kind of work\t",
        "verdict\t",
        "time over plain, 95 %",
        "CPU time over plain",
        "plain against plain",
        "cells",
        "most in one cell\t",
        "of\t",
    ];
    let mut table = Table::new("headlines".into(), "What encryption costs", &columns);
    for lead in leads {
        let name = Entry::from(lead.title());
        let Some(result) = &lead.result else {
            let mut row = vec![name, lead.words().into()];
            row.extend((2..columns.len()).map(|_| Entry::from("–")));
            table.rows.push(row);
            continue;
        };
        let number = |interval: &Interval, what: &str, side: &str, statistic: &str| {
            let origin = Origin {
                session: String::new(),
                cell: lead.name.clone(),
                side: side.into(),
                what: what.into(),
                statistic: format!("headline-{statistic}"),
            };
            let Interval { mean, low, high, .. } = *interval;
            Entry { value: Some(mean), ends: Some((low, high)), ..Entry::ratio(interval, origin) }
        };
        let verdict = Entry { word: Some(lead.word()), ..Sense::Time.words(lead.word()).into() };
        let several = result.cells.len() > 1;
        let most = lead.cell_with_most().filter(|_| several).map(|cost| {
            let change = text::change(cost.interval.mean - 1.0);
            Entry::from(format!("{}: {change}", cost.cell))
        });
        let effort = result.effort.as_ref();
        let control = result.control.as_ref();
        table.rows.push(vec![
            name,
            verdict,
            number(&result.cost, &result.what, &result.side, "mean"),
            Entry::or_dash(
                effort.map(|(what, effort)| number(effort, what, &result.side, "effort")),
            ),
            Entry::or_dash(control.map(|cost| number(cost, &result.what, CONTROL, "control"))),
            match result.left_out {
                0 => result.cells.len().to_string(),
                more => format!("{}, and {more} without a ratio", result.cells.len()),
            }
            .into(),
            Entry::or_dash(most),
            format!("{}, {}, {}", result.experiment, result.side, lead.about).into(),
        ]);
    }
    table
}

/// The article's figures beside ours, with the sign of the article's formula. Rows without records say so.
pub fn facts<'a>(facts: impl Iterator<Item = &'a Fact>, material: &Material, id: &str) -> Table {
    let columns = ["article\t", "claim\t", "printed\t", "formula\t", "ours, 95 %", "of\t"];
    let mut table = Table::new(format!("{id}-facts"), "The article's figure beside ours", &columns);
    for fact in facts {
        for ours in &fact.ours {
            let article = format!("{}, line {}", fact.article, fact.line);
            let found = ours.sources.iter().find_map(|one| one.estimate(material, ours.statistic));
            let mut row: Vec<Entry> = vec![
                article.into(),
                fact.claim.as_str().into(),
                fact.printed.as_str().into(),
                fact.formula.as_str().into(),
            ];
            match found {
                None => row.extend(["not measured".into(), ours.label.as_str().into()]),
                Some((selected, estimate)) => {
                    let origin = Origin {
                        session: String::new(),
                        cell: format!(
                            "article {} line {}: {}",
                            fact.article, fact.line, ours.label
                        ),
                        side: selected.cases[0].side.clone(),
                        what: selected.what.clone(),
                        statistic: "article".into(),
                    };
                    let (value, cases) = (estimate.value, selected.cases.len());
                    row.push(match ours.statistic {
                        Statistic::ShareBelow | Statistic::ShareBelowWithinFences => {
                            // A share of eight is no percentage of many.
                            let count = (value * cases as f64).round();
                            let said = format!("{count} of {cases} cases, {:.1} %", value * 100.0);
                            Entry::number(said, value, origin)
                        }
                        _ => {
                            let ends = estimate.half.map(|half| (value - half, value + half));
                            Entry::change(value, ends, origin)
                        }
                    });
                    let (what, rounds) = (text::quantity(&selected.what), selected.rounds());
                    row.push(format!("{}: {cases} × {rounds} runs, {what}", ours.label).into());
                }
            }
            table.rows.push(row);
        }
    }
    table
}

/// A column directly behind that of wall time, where no screen cuts it off.
const EFFORT: &str = "CPU time";

/// The same difference over three bases.
pub fn bases(id: &str, primary: &[&Figure], all: &[&Figure]) -> Table {
    // Where the base is not plain, neither is the side what is encrypted.
    let is_plain = primary.iter().all(|figure| has_plain_base(figure));
    let [over_base, over_side] = match is_plain {
        true => ["over plain time", "over encrypted time"],
        false => ["over the base's time", "over the side's time"],
    };
    let columns =
        ["cell\t", "side\t", "verdict\t", over_base, EFFORT, over_side, "throughput", "of\t"];
    let mut table = Table::new(format!("{id}-bases"), "In three bases", &columns);
    let any_effort = primary.iter().any(|figure| effort(figure, all).is_some());
    table.columns.retain(|column| any_effort || column.title != EFFORT);
    for figure in primary {
        let cost = figure.cost().map(|cost| cost.interval(1));
        let mean = figure.costs();
        let mean = match &cost {
            Some(cost) => Some(cost.mean),
            None if mean.len() == 1 && mean[0] > 0.0 => Some(mean[0]),
            None => None,
        };
        let of_time = |name: &str, of: fn(f64) -> f64| {
            let ends = cost.map(|cost| (of(cost.low), of(cost.high)));
            Entry::or_dash(mean.map(|mean| Entry::change(of(mean), ends, origin(figure, name))))
        };
        let mut row: Vec<Entry> =
            vec![figure.cell.as_str().into(), figure.side.as_str().into(), verdict(figure)];
        row.push(of_time("over-plain-time", |ratio| ratio - 1.0));
        if any_effort {
            row.push(Entry::or_dash(effort(figure, all).and_then(|effort| {
                let of = origin(effort, "effort");
                match effort.interval() {
                    Some(interval) => Some(Entry::ratio(&interval, of)),
                    None => Some(Entry::change(effort.mean()? - 1.0, None, of)),
                }
            })));
        }
        row.push(of_time("over-encrypted-time", |ratio| 1.0 - 1.0 / ratio));
        row.extend(throughput(figure, all));
        table.rows.push(row);
    }
    table
}

/// Whether the base is plain SQLite, or a backup that is not encrypted.
pub fn has_plain_base(figure: &Figure) -> bool {
    matches!(figure.base.as_str(), "plain" | "none")
}

/// The quantity of `whats` that was observed in the same runs, the first of them.
fn beside<'a>(figure: &Figure, all: &[&'a Figure], whats: &[&str]) -> Option<&'a Figure> {
    let same = |other: &&&Figure| {
        (&other.session, &other.cell, &other.side) == (&figure.session, &figure.cell, &figure.side)
    };
    whats.iter().find_map(|what| all.iter().filter(same).find(|other| other.what == *what)).copied()
}

/// Processor seconds of all threads in the same runs.
fn effort<'a>(figure: &Figure, all: &[&'a Figure]) -> Option<&'a Figure> {
    beside(figure, all, &EFFORTS)
}

/// Per page where pages were observed, else what speed there is.
fn throughput(figure: &Figure, all: &[&Figure]) -> [Entry; 2] {
    let whats = ["pages_per_s", "mb_per_s", "speed_mb_per_s", "ops_per_s", "scan_mb_per_s"];
    let speed = beside(figure, all, &whats);
    match speed.and_then(|speed| Some((speed, speed.mean()?))) {
        None => ["–".into(), "–".into()],
        Some((speed, mean)) => {
            let ends = speed.interval().map(|interval| (interval.low - 1.0, interval.high - 1.0));
            let value = Entry::change(mean - 1.0, ends, origin(speed, "throughput"));
            [value, text::quantity(&speed.what).into()]
        }
    }
}

fn verdict(figure: &Figure) -> Entry {
    Entry { word: Some(figure.word()), ..figure.words().into() }
}

/// Every ratio with all that was made of it.
pub fn figures(id: &str, figures: &[&Figure]) -> Table {
    let sessions: BTreeSet<&str> = figures.iter().map(|figure| figure.session.as_str()).collect();
    let columns = [
        "cell\t",
        "side / base\t",
        "what\t",
        "verdict\t",
        "mean ratio",
        "low",
        "high",
        "median",
        "min",
        "max",
        "pairs",
        "base, mean",
        "side, mean",
        "side, without outliers",
        "session\t",
    ];
    let mut table = Table::new(format!("{id}-figures"), "Every figure", &columns);
    if sessions.len() < 2 {
        table.columns.pop();
    }
    for figure in figures {
        let number = |value: Option<f64>, statistic: &str| {
            let entry = value.map(|v| Entry::number(text::ratio(v), v, origin(figure, statistic)));
            Entry::or_dash(entry)
        };
        let interval = figure.interval();
        let end = |of: fn(&Interval) -> f64| interval.as_ref().map(of);
        let summary = figure.summary();
        let mean = |values: &[f64], statistic: &str| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            Entry::number(text::value(&figure.what, mean), mean, origin(figure, statistic))
        };
        let without = mean_within_fences(&figure.side_values).map(|(mean, outliers)| {
            let said = text::value(&figure.what, mean);
            let said = if outliers == 0 { said } else { format!("{said} (without {outliers})") };
            Entry::number(said, mean, origin(figure, "side-within-fences"))
        });
        let mut row = vec![
            figure.cell.as_str().into(),
            format!("{} / {}", figure.side, figure.base).into(),
            text::quantity(&figure.what).into(),
            verdict(figure),
            number(figure.mean(), "mean"),
            number(end(|interval| interval.low), "low"),
            number(end(|interval| interval.high), "high"),
            number(summary.map(|summary| summary.median), "median"),
            number(summary.map(|summary| summary.min), "min"),
            number(summary.map(|summary| summary.max), "max"),
            figure.rounds.len().to_string().into(),
            mean(&figure.base_values, "base-mean"),
            mean(&figure.side_values, "side-mean"),
            Entry::or_dash(without),
        ];
        if sessions.len() > 1 {
            row.push(figure.session.as_str().into());
        }
        table.rows.push(row);
    }
    table
}
