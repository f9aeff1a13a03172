//! The tables of a report: one set of numbers for the page, for Markdown and for the terminal.

use std::collections::{BTreeMap, BTreeSet};

use super::articles::{Fact, Statistic};
use super::figures::{sampled, Figure, Sense, Word};
use super::headline::{Lead, CONTROL};
use super::reading::Material;
use super::text;
use crate::record::Session;
use crate::statistics::{mean_within_fences, Interval};

/// Processor time of a run: of its statement, of its process, of each operation.
pub const EFFORTS: [&str; 3] = ["cpu_s", "process_cpu_s", "cpu_us_per_op"];

/// A table, whichever way it is shown.
#[derive(Debug)]
pub struct Table {
    /// Names it on the page.
    pub id: String,
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Entry>>,
}

/// The head of a column.
#[derive(Debug, Clone)]
pub struct Column {
    pub title: String,
    pub numeric: bool,
}

/// What a table shows in one place, and the number behind it to the last bit.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    pub text: String,
    pub value: Option<f64>,
    /// Of its interval, where it has one.
    pub ends: Option<(f64, f64)>,
    pub origin: Option<Origin>,
    pub word: Option<Word>,
}

/// Where a number comes from.
#[derive(Debug, Clone)]
pub struct Origin {
    pub session: String,
    pub cell: String,
    pub side: String,
    pub what: String,
    /// What was made of the runs: `mean`, `low`, `median`; of one run `run-3`.
    pub statistic: String,
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Entry {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

impl Entry {
    fn number(text: String, value: f64, origin: Origin) -> Self {
        Self { text, value: Some(value), ends: None, origin: Some(origin), word: None }
    }

    /// A change and its interval, in one place: apart they would be two columns that are read as one.
    fn change(value: f64, ends: Option<(f64, f64)>, origin: Origin) -> Self {
        let text = match ends {
            Some((low, high)) => text::estimate(value, low, high),
            None => text::change(value),
        };
        Self { ends, ..Self::number(text, value, origin) }
    }

    /// The same of an interval of ratios.
    fn ratio(interval: &Interval, origin: Origin) -> Self {
        let Interval { mean, low, high, .. } = interval;
        Self::change(mean - 1.0, Some((low - 1.0, high - 1.0)), origin)
    }

    fn or_dash(entry: Option<Self>) -> Self {
        entry.unwrap_or_else(|| "–".into())
    }
}

impl Table {
    /// A table without rows; a title that ends with a tab is that of a column of words.
    pub fn new(id: String, title: &str, columns: &[&str]) -> Self {
        // A column whose title ends with a tab holds words.
        let column = |title: &&str| Column {
            title: title.trim_end_matches('\t').into(),
            numeric: !title.ends_with('\t'),
        };
        let columns = columns.iter().map(column).collect();
        Self { id, title: title.into(), columns, rows: Vec::new() }
    }
}

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
            let found = ours.sources.iter().find_map(|source| {
                let selected = source.select(material)?;
                let estimate = selected.estimate(ours.statistic)?;
                Some((selected, estimate))
            });
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

/// Every run as it was, the warm-up too.
pub fn raw(id: &str, material: &Material, scenario: &str) -> Table {
    let of_scenario: BTreeSet<&str> = material
        .sessions
        .iter()
        .filter(|session| session.scenario == scenario)
        .map(|session| session.session.as_str())
        .collect();
    let mut whats: Vec<&str> = Vec::new();
    let mut order = Vec::new();
    let mut runs: BTreeMap<_, BTreeMap<&str, f64>> = BTreeMap::new();
    for one in &material.observations {
        if !of_scenario.contains(one.session.as_str()) || sampled(&one.what) {
            continue;
        }
        if !whats.contains(&one.what.as_str()) {
            whats.push(&one.what);
        }
        let key = (one.session.as_str(), one.cell.as_str(), one.round, one.side.as_str());
        let run = runs.entry(key).or_insert_with(|| {
            order.push((key, one.place));
            BTreeMap::new()
        });
        run.insert(&one.what, one.value);
    }
    let mut table =
        Table::new(format!("{id}-runs"), "Every run", &["cell\t", "round", "place", "side\t"]);
    table
        .columns
        .extend(whats.iter().map(|what| Column { title: text::quantity(what), numeric: true }));
    for (key, place) in order {
        let (session, cell, round, side) = key;
        let said = if round == 0 { "warm-up".to_string() } else { round.to_string() };
        let mut row: Vec<Entry> =
            vec![cell.into(), said.into(), place.to_string().into(), side.into()];
        row.extend(whats.iter().map(|what| {
            let entry = runs[&key].get(what).map(|value| {
                let origin = Origin {
                    session: session.into(),
                    cell: cell.into(),
                    side: side.into(),
                    what: (*what).into(),
                    statistic: format!("run-{round}"),
                };
                Entry::number(text::value(what, *value), *value, origin)
            });
            Entry::or_dash(entry)
        }));
        table.rows.push(row);
    }
    table
}

/// When, what and with which tree.
pub fn sessions(sessions: &[Session]) -> Table {
    let columns = [
        "session\t",
        "started\t",
        "experiment\t",
        "sides\t",
        "rounds",
        "warm-up",
        "seed",
        "tree\t",
        "asked for\t",
    ];
    let mut table = Table::new("sessions".into(), "Sessions", &columns);
    for session in sessions {
        let side = |side: &crate::record::SideDescription| {
            let algorithm = side.algorithm.as_ref().map(|name| format!(" {name}"));
            let sha = side.extension_sha256.as_ref();
            let sha = sha.map(|sha| format!(", extension {}", &sha[..sha.len().min(12)]));
            let change = side.change.as_ref().map(|change| format!(", {change}"));
            let parts = [algorithm, sha, change].into_iter().flatten().collect::<String>();
            format!("{}: {}{parts}", side.side, side.kind)
        };
        let mut asked: Vec<String> =
            session.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        asked.extend(session.size.map(|size| format!("size {size}")));
        if let Some(setting) = &session.setting {
            let (page, cache) = (setting.page_size_bytes, setting.cache_kib);
            asked.push(format!(
                "journal {}, pages of {page} bytes, cache {cache} KiB",
                setting.journal
            ));
        }
        table.rows.push(vec![
            session.session.as_str().into(),
            text::moment(session.started_unix_s).into(),
            session.scenario.as_str().into(),
            session.sides.iter().map(side).collect::<Vec<_>>().join("; ").into(),
            session.rounds.to_string().into(),
            session.warm_up_rounds.to_string().into(),
            session.seed.to_string().into(),
            session.machine.tree.as_deref().unwrap_or("unknown").into(),
            asked.join(", ").into(),
        ]);
    }
    table
}

/// Each machine once, with what of it decides.
pub fn machines(sessions: &[Session]) -> Table {
    let columns = [
        "machine\t",
        "processor features\t",
        "memory, MiB",
        "system\t",
        "file system\t",
        "fdatasync p50, us\t",
        "fdatasync p99, us\t",
        "SQLite\t",
        "build\t",
    ];
    let mut table = Table::new("machines".into(), "Machines", &columns);
    let mut known: Vec<([String; 4], Vec<&Session>)> = Vec::new();
    for session in sessions {
        let name = machine_name(session);
        match known.iter_mut().find(|(seen, _)| *seen == name) {
            Some((_, list)) => list.push(session),
            None => known.push((name, vec![session])),
        }
    }
    for (name, list) in known {
        let machine = &list[0].machine;
        let spread = |of: fn(&Session) -> f64| {
            let values = || list.iter().map(|session| of(session));
            let (low, high) =
                (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
            if low == high {
                format!("{low:.0}")
            } else {
                format!("{low:.0} to {high:.0}")
            }
        };
        let [cpu, system, file_system, build] = name;
        table.rows.push(vec![
            cpu.into(),
            machine.cpu_flags.join(" ").into(),
            machine.memory_mib.to_string().into(),
            system.into(),
            file_system.into(),
            spread(|session| session.machine.fdatasync.p50_us).into(),
            spread(|session| session.machine.fdatasync.p99_us).into(),
            machine.sqlite.as_str().into(),
            build.into(),
        ]);
    }
    table
}

/// What sessions of one machine agree in, without the tree.
pub fn machine_name(session: &Session) -> [String; 4] {
    let [cpu, kernel, disk, build, _] = session.machine.identity();
    [cpu, kernel, disk, build]
}
