//! Two files of records side by side: another machine, another tree, or the same once more.
//!
//! The sessions were not interleaved, so a difference can be the day's: the difference of the mean
//! log ratios has an interval of its own, wider than either.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use comfy_table::{presets::UTF8_FULL_CONDENSED, CellAlignment, Table};

use crate::error::{Error, Result};
use crate::record::Session;
use crate::report::{
    change, figures, of_ratio, print, quantity, Meaning, Paired, Records, Verdict,
};

/// Prints the figures that both have.
///
/// # Errors
/// As [`Records::read`], and [`Error::Invalid`] if they have no figure in common.
pub fn compare(a: &Path, b: &Path, all: bool) -> Result<bool> {
    let [a, b] = [a, b].map(|file| Records::read(&[PathBuf::from(file)]));
    print(&format!("{}\n", render(&a?, &b?, all)?))?;
    Ok(true)
}

fn render(a: &Records, b: &Records, all: bool) -> Result<String> {
    let [of_a, of_b] = [a, b].map(|records| newest(records, all));
    let mut text = differences(a, b);
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header([
        "experiment",
        "cell",
        "side / base",
        "what",
        "A (95 %)",
        "B (95 %)",
        "B over A (95 %)",
        "verdict",
    ]);
    let mut found = 0;
    for figure in &of_a {
        let Some(other) = of_b.iter().find(|other| key(other) == key(figure)) else { continue };
        found += 1;
        table.add_row(row(figure, other));
    }
    if found == 0 {
        return Err(Error::invalid("no figure that both have: other experiments, cells or sides"));
    }
    table
        .column_iter_mut()
        .skip(4)
        .take(3)
        .for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{table}");
    let alone = [(&of_a, &of_b, "A"), (&of_b, &of_a, "B")].map(|(own, others, name)| {
        let keys: BTreeSet<_> = others.iter().map(key).collect();
        let alone = own.iter().filter(|figure| !keys.contains(&key(figure))).count();
        format!("{alone} only in {name}")
    });
    let _ = write!(
        text,
        "{found} figures in both, {}. Times over the base's; speeds are turned over, so that more is \
         slower. Differences are of the mean log ratios, by Welch's t.",
        alone.join(", ")
    );
    Ok(text)
}

fn row(a: &Paired, b: &Paired) -> [String; 8] {
    let said = |figure: &Paired| match figure.cost() {
        Some(cost) => of_ratio(&cost.interval(1)),
        None => figure
            .costs()
            .first()
            .map_or("–".into(), |cost| format!("{}, one pair", change(cost - 1.0))),
    };
    let (difference, verdict) = match (a.cost(), b.cost()) {
        (Some(of_a), Some(of_b)) => {
            let interval = of_b.minus(&of_a).interval(1);
            let difference = of_ratio(&interval);
            let word = Verdict::of(&interval);
            let who = if matches!(word, Verdict::Worse | Verdict::Better) { "B " } else { "" };
            let sense = if a.sense() == Meaning::Told { Meaning::Effort } else { a.sense() };
            (difference, format!("{who}{}", sense.words(word)))
        }
        _ => ("–".into(), "not resolved".into()),
    };
    [
        a.scenario.clone(),
        a.cell.clone(),
        format!("{} / {}", a.side, a.base),
        quantity(&a.what),
        said(a),
        said(b),
        difference,
        verdict,
    ]
}

type Key = (String, String, String, String, String);

fn key(figure: &Paired) -> Key {
    let Paired { scenario, cell, base, side, what, .. } = figure;
    (scenario.clone(), cell.clone(), base.clone(), side.clone(), what.clone())
}

/// Of each figure that of the newest session; times and speeds, or all.
fn newest(records: &Records, all: bool) -> Vec<Paired> {
    let started = |figure: &Paired| {
        let of = records.sessions.iter().find(|session| session.session == figure.session);
        of.map(|session| session.started_unix_s)
    };
    let mut chosen: Vec<Paired> = Vec::new();
    for figure in figures(records) {
        if !all && !matches!(figure.sense(), Meaning::Time | Meaning::Speed) {
            continue;
        }
        match chosen.iter_mut().find(|known| key(known) == key(&figure)) {
            Some(known) if started(known) < started(&figure) => *known = figure,
            Some(_) => {}
            None => chosen.push(figure),
        }
    }
    chosen
}

/// What a session was asked to do, one `name value` each; how long that would take is no part of it.
fn conditions(session: &Session) -> Vec<String> {
    let parameters = session.parameters.iter().filter(|(name, _)| *name != "estimate_s");
    let mut all: Vec<String> = parameters.map(|(name, value)| format!("{name} {value}")).collect();
    all.extend(session.size.map(|size| format!("size {size}")));
    let json = [serde_json::to_string(&session.setting), serde_json::to_string(&session.limit)];
    all.extend(["setting", "limit"].iter().zip(json).filter_map(|(name, text)| {
        let text = text.ok().filter(|text| text != "null")?;
        Some(format!("{name} {text}"))
    }));
    all.extend(
        session
            .sides
            .iter()
            .filter_map(|side| Some(format!("{} {}", side.side, side.algorithm.as_deref()?))),
    );
    all
}

/// In what the two were measured differently.
fn differences(a: &Records, b: &Records) -> String {
    let lines = |records: &Records, of: &dyn Fn(&Session) -> String| {
        records
            .sessions
            .iter()
            .map(of)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
            .join("; ")
    };
    let mut text = String::new();
    let names = ["processors", "kernel", "file system", "build", "tree"];
    let mut differ = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let of = |session: &Session| session.machine.identity()[at].clone();
        let (of_a, of_b) = (lines(a, &of), lines(b, &of));
        if of_a != of_b {
            differ.push(format!("{name}: A {of_a}, B {of_b}"));
        }
    }
    let sqlite = |session: &Session| session.machine.sqlite.clone();
    let extension = |session: &Session| {
        let sides = session.sides.iter().filter_map(|side| side.extension_sha256.clone());
        sides.map(|sha| sha.chars().take(12).collect::<String>()).collect::<Vec<_>>().join(" ")
    };
    for (name, of) in
        [("SQLite", &sqlite as &dyn Fn(&Session) -> String), ("extension", &extension)]
    {
        let (of_a, of_b) = (lines(a, of), lines(b, of));
        if of_a != of_b {
            differ.push(format!("{name}: A {of_a}, B {of_b}"));
        }
    }
    let unknown =
        |records: &Records| records.sessions.iter().any(|session| session.machine.tree.is_none());
    if unknown(a) || unknown(b) {
        differ.push("tree: not known of every session".into());
    }
    let scenarios: BTreeSet<&str> =
        a.sessions.iter().map(|session| session.scenario.as_str()).collect();
    for scenario in scenarios {
        let of = |records: &Records| {
            let ours = records.sessions.iter().filter(|session| session.scenario == scenario);
            ours.flat_map(conditions).collect::<BTreeSet<String>>()
        };
        let (of_a, of_b) = (of(a), of(b));
        if !of_b.is_empty() && of_a != of_b {
            let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
                let only: Vec<&str> = one.difference(other).map(String::as_str).collect();
                if only.is_empty() {
                    "none of it".into()
                } else {
                    only.join(", ")
                }
            };
            let (in_a, in_b) = (only(&of_a, &of_b), only(&of_b, &of_a));
            differ.push(format!("{scenario}: A {in_a}, B {in_b}"));
        }
    }
    let _ = if differ.is_empty() {
        writeln!(text, "The same machine, tree, build and conditions.")
    } else {
        writeln!(text, "They differ in:\n  {}", differ.join("\n  "))
    };
    text
}
