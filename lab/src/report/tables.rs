//! The tables of a report: one set of numbers for the page, for Markdown and for the terminal.

use std::collections::{BTreeMap, BTreeSet};

use super::articles::{Fact, Ours, Statistic};
use super::figures::{sampled, Figure, Sense, Word};
use super::headline::Lead;
use super::reading::Material;
use super::text;
use crate::record::Session;
use crate::statistics::{mean_within_fences, Interval};

#[derive(Debug)]
pub struct Table {
    /// Names it on the page.
    pub id: String,
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Entry>>,
}

#[derive(Debug)]
pub struct Column {
    pub title: String,
    pub numeric: bool,
}

/// What a table shows in one place, and the number behind it to the last bit.
#[derive(Debug, Default)]
pub struct Entry {
    pub text: String,
    pub value: Option<f64>,
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
        Self { text, value: Some(value), origin: Some(origin), word: None }
    }

    fn or_dash(entry: Option<Self>) -> Self {
        entry.unwrap_or_else(|| "–".into())
    }
}

impl Table {
    fn new(id: String, title: &str, columns: &[&str]) -> Self {
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
        "\t",
        "verdict\t",
        "time over plain",
        "low",
        "high",
        "cells",
        "most in one cell\t",
        "of\t",
    ];
    let mut table = Table::new("headlines".into(), "What encryption costs", &columns);
    for lead in leads {
        let name = Entry::from(lead.name.as_str());
        let Some(result) = &lead.result else {
            let mut row = vec![name, lead.words().into()];
            row.extend((2..columns.len()).map(|_| Entry::from("–")));
            table.rows.push(row);
            continue;
        };
        let number = |value: f64, statistic: &str| {
            let origin = Origin {
                session: String::new(),
                cell: lead.name.clone(),
                side: result.side.clone(),
                what: result.what.clone(),
                statistic: format!("headline-{statistic}"),
            };
            Entry::number(text::change(value - 1.0), value, origin)
        };
        let verdict = Entry { word: Some(lead.word()), ..Sense::Time.words(lead.word()).into() };
        let most = lead.cell_with_most().map(|cost| {
            let change = text::change(cost.interval.mean - 1.0);
            Entry::from(format!("{}: {change}", cost.cell))
        });
        table.rows.push(vec![
            name,
            verdict,
            number(result.cost.mean, "mean"),
            number(result.cost.low, "low"),
            number(result.cost.high, "high"),
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

/// The article's figures beside ours. Rows without records say so.
pub fn facts<'a>(facts: impl Iterator<Item = &'a Fact>, material: &Material, id: &str) -> Table {
    let columns = ["article\t", "claim\t", "printed\t", "formula\t", "ours\t", "95 %", "of\t"];
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
                None => row.extend(["not measured".into(), "–".into(), ours.label.as_str().into()]),
                Some((selected, estimate)) => {
                    let origin = |statistic: &str| Origin {
                        session: String::new(),
                        cell: format!(
                            "article {} line {}: {}",
                            fact.article, fact.line, ours.label
                        ),
                        side: selected.cases[0].side.clone(),
                        what: selected.what.clone(),
                        statistic: statistic.into(),
                    };
                    row.push(Entry::number(
                        said(ours, estimate.value),
                        estimate.value,
                        origin("article"),
                    ));
                    row.push(Entry::or_dash(estimate.half.map(|half| {
                        // With the sign of a change: less time is below 0, whatever is said in words.
                        let value = match ours.statistic {
                            Statistic::Less | Statistic::LargestLess => -estimate.value,
                            _ => estimate.value,
                        };
                        let ends = text::ends(value - half, value + half, false);
                        Entry::number(ends, half, origin("article-half"))
                    })));
                    let (cases, rounds) = (selected.cases.len(), selected.rounds());
                    let of = format!("{}: {cases} × {rounds} runs, {}", ours.label, selected.what);
                    row.push(of.into());
                }
            }
            table.rows.push(row);
        }
    }
    table
}

fn said(ours: &Ours, value: f64) -> String {
    match ours.statistic {
        Statistic::Less | Statistic::LargestLess if value < 0.0 => {
            format!("{} more", text::amount(value))
        }
        Statistic::Less | Statistic::LargestLess => format!("{} less", text::amount(value)),
        Statistic::Slowness if value < 0.0 => format!("{} less time", text::amount(value)),
        Statistic::Slowness => format!("{} more time", text::amount(value)),
        Statistic::ShareBelow | Statistic::ShareBelowWithinFences => {
            format!("{:.0} % of the cases", value * 100.0)
        }
        Statistic::OfEncryptedTime => format!("{} of the encrypted time", text::change(value)),
        _ => text::change(value),
    }
}

/// The same difference over three bases.
pub fn bases(id: &str, primary: &[&Figure], all: &[&Figure]) -> Table {
    // Where the base is not plain, neither is the side what is encrypted.
    let is_plain = primary.iter().all(|figure| has_plain_base(figure));
    let [over_base, over_side] = match is_plain {
        true => ["over plain time", "over encrypted time"],
        false => ["over the base's time", "over the side's time"],
    };
    let columns = [
        "cell\t",
        "side\t",
        "verdict\t",
        over_base,
        "95 %\t",
        over_side,
        "95 %\t",
        "throughput",
        "95 %\t",
        "of\t",
    ];
    let mut table = Table::new(format!("{id}-bases"), "In three bases", &columns);
    for figure in primary {
        let cost = figure.cost().map(|cost| cost.interval(1));
        let mean = figure.costs();
        let mean = match &cost {
            Some(cost) => Some(cost.mean),
            None if mean.len() == 1 && mean[0] > 0.0 => Some(mean[0]),
            None => None,
        };
        let of_time = |name: &str, of: fn(f64) -> f64| {
            let share = mean.map(|mean| {
                let value = of(mean);
                Entry::number(text::change(value), value, origin(figure, name))
            });
            let ends = cost.map(|cost| Entry::from(text::ends(of(cost.low), of(cost.high), false)));
            [Entry::or_dash(share), Entry::or_dash(ends)]
        };
        let mut row: Vec<Entry> =
            vec![figure.cell.as_str().into(), figure.side.as_str().into(), verdict(figure)];
        row.extend(of_time("over-plain-time", |ratio| ratio - 1.0));
        row.extend(of_time("over-encrypted-time", |ratio| 1.0 - 1.0 / ratio));
        row.extend(throughput(figure, all));
        table.rows.push(row);
    }
    table
}

/// Whether the base is plain SQLite, or a backup that is not encrypted.
pub fn has_plain_base(figure: &Figure) -> bool {
    matches!(figure.base.as_str(), "plain" | "none")
}

/// Per page where pages were observed, else what speed there is.
fn throughput(figure: &Figure, all: &[&Figure]) -> [Entry; 3] {
    let speed = ["pages_per_s", "mb_per_s", "speed_mb_per_s", "ops_per_s", "scan_mb_per_s"]
        .iter()
        .find_map(|what| {
            all.iter().find(|other| {
                other.what == *what
                    && (&other.session, &other.cell, &other.side)
                        == (&figure.session, &figure.cell, &figure.side)
            })
        });
    match speed.and_then(|speed| Some((speed, speed.mean()?))) {
        None => ["–".into(), "–".into(), "no pages observed".into()],
        Some((speed, mean)) => {
            let share = mean - 1.0;
            let ends = speed.interval().map(|interval| {
                Entry::from(text::ends(interval.low - 1.0, interval.high - 1.0, false))
            });
            let value = Entry::number(text::change(share), share, origin(speed, "throughput"));
            [value, Entry::or_dash(ends), text::quantity(&speed.what).into()]
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
