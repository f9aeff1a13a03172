//! Reports: one page, Markdown or a summary on the terminal, made of records alone.
//!
//! All three are made of the same tables (`tables.rs`), so that they hold the same numbers.

mod articles;
mod chart;
pub mod figures;
mod headline;
mod page;
mod reading;
mod summary;
mod tables;
mod text;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::record::{Observation, Session};
use crate::statistics::{at_least, CONFIDENCE};
use articles::{Articles, Experiment, Primary};
use chart::{Bar, Group, Line, Row, Stroke};
use figures::{Figure, Sense, Word};
use headline::Lead;
use reading::Material;
use tables::Table;

pub use figures::{figures, like, Figure as Paired, Sense as Meaning, Word as Verdict};
pub use headline::cost_words;
pub use reading::Material as Records;
pub use text::{change, ends, of_ratio, quantity};

/// More than this of the machine in others' hands, and the reader is told.
const QUIET_SHARE: f64 = 0.05;
/// Times and speeds that a chart is of: the first that a cell has.
const PRIMARY: [&str; 7] =
    ["elapsed_s", "busy_s", "ops_per_s", "mb_per_s", "scan_mb_per_s", "writes_per_s", "work_s"];

/// All that a report says.
#[derive(Debug)]
pub struct Report {
    pub sentence: String,
    /// What the sentence does not speak of.
    pub missing: Option<String>,
    /// The slowest single cells, where any is slower.
    pub most: Option<String>,
    pub leads: Vec<Lead>,
    pub headlines: Table,
    pub cautions: Vec<String>,
    pub sections: Vec<Section>,
    /// What the articles printed and these records do not hold.
    pub absent: Option<Table>,
    pub machines: Table,
    pub sessions: Table,
}

/// One experiment.
#[derive(Debug)]
pub struct Section {
    pub id: String,
    pub title: String,
    /// What times are divided by, if it is not plain: the name of a side, or words for several.
    pub other_base: Option<String>,
    pub notes: Vec<String>,
    pub rows: Vec<Row>,
    pub bars: Vec<Bars>,
    pub through: Vec<Through>,
    pub facts: Option<Table>,
    pub bases: Table,
    pub figures: Table,
    pub runs: Table,
}

#[derive(Debug)]
pub struct Bars {
    pub title: String,
    pub unit: String,
    pub groups: Vec<Group>,
}

/// Processor time through one run of each side.
#[derive(Debug)]
pub struct Through {
    pub title: String,
    /// Which line is which.
    pub key: String,
    pub lines: Vec<Line>,
}

/// Writes the page to `out`; prints Markdown, or without a page a summary.
///
/// # Errors
/// As [`Material::read`], and [`Error::Invalid`] for records without a run.
pub fn report(files: &[PathBuf], out: Option<&Path>, markdown: bool) -> Result<bool> {
    let report = Report::of(&Material::read(files)?)?;
    if let Some(out) = out {
        std::fs::write(out, report.page()?).map_err(Error::io(out.display().to_string()))?;
    }
    match (markdown, out) {
        (true, _) => print!("{}", summary::markdown(&report)),
        (false, Some(_)) => println!("{}", report.said()),
        (false, None) => println!("{}", report.summary()),
    }
    Ok(true)
}

impl Report {
    /// # Errors
    /// [`Error::Invalid`] for records without a run.
    pub fn of(material: &Material) -> Result<Self> {
        if material.sessions.is_empty() {
            return Err(Error::invalid("no runs in these records"));
        }
        let articles = Articles::read();
        let figures = figures(material);
        let leads = headline::leads(&articles, material, &figures);
        let machines: BTreeSet<_> = material.sessions.iter().map(tables::machine_name).collect();
        let mut measured: Vec<&str> = Vec::new();
        for session in &material.sessions {
            if !measured.contains(&session.scenario.as_str()) {
                measured.push(&session.scenario);
            }
        }
        // In the order of the articles, then what has none.
        let place = |name: &&str| {
            articles.experiments.iter().position(|one| one.name == *name).unwrap_or(usize::MAX)
        };
        measured.sort_by_key(place);
        let sections =
            measured.iter().map(|name| Section::of(name, &articles, material, &figures)).collect();
        let missing = articles
            .facts
            .iter()
            .filter(|fact| !measured.contains(&fact.experiment.as_str()))
            .collect::<Vec<_>>();
        let absent = (!missing.is_empty()).then(|| {
            let mut table = tables::facts(missing.into_iter(), material, "absent");
            table.title = "Not measured in these records".into();
            table
        });
        Ok(Self {
            sentence: headline::sentence(&leads, machines.len()),
            missing: headline::missing(&leads),
            most: most(&leads),
            headlines: tables::headlines(&leads),
            cautions: cautions(material, &figures, machines.len()),
            leads,
            sections,
            absent,
            machines: tables::machines(&material.sessions),
            sessions: tables::sessions(&material.sessions),
        })
    }

    /// The sentence, and what it does not speak of.
    pub fn said(&self) -> String {
        let missing = self.missing.iter().map(|missing| format!(" {missing}"));
        std::iter::once(self.sentence.clone()).chain(missing).collect()
    }

    /// One HTML file that needs nothing else.
    ///
    /// # Errors
    /// As [`chart::forest`].
    pub fn page(&self) -> Result<String> {
        page::render(self)
    }

    /// For a terminal.
    pub fn summary(&self) -> String {
        summary::terminal(self)
    }

    /// Kinds of work that were measured and not resolved, those that were too few times for an interval among them.
    pub fn not_resolved(&self) -> Vec<&str> {
        let open = self.leads.iter().filter(|lead| {
            lead.measured && (lead.result.is_none() || lead.word() == Word::NotResolved)
        });
        open.map(|lead| lead.name.as_str()).collect()
    }

    /// The lines of the first chart.
    pub fn rows(&self) -> Vec<Row> {
        let row = |lead: &Lead| {
            let result = lead.result.as_ref();
            Row {
                label: lead.name.clone(),
                text: lead.words(),
                mean: result.map(|result| result.cost.mean),
                ends: result.map(|result| (result.cost.low, result.cost.high)),
                dots: result
                    .map(|result| result.cells.iter().map(|cell| cell.interval.mean).collect())
                    .unwrap_or_default(),
                word: lead.word(),
            }
        };
        self.leads.iter().filter(|lead| lead.measured).map(row).collect()
    }
}

/// The three cells that are slower by most.
fn most(leads: &[Lead]) -> Option<String> {
    let mut cells: Vec<_> = leads
        .iter()
        .filter_map(|lead| lead.result.as_ref())
        .flat_map(|result| result.cells.iter().map(move |cell| (&result.experiment, cell)))
        .filter(|(_, cell)| Word::of(&cell.interval) == Word::Worse)
        .collect();
    cells.sort_by(|a, b| b.1.interval.mean.total_cmp(&a.1.interval.mean));
    let say = |(experiment, cell): &(&String, &headline::Cost)| {
        format!("{} of {experiment}, {}", cell.cell, cost_words(&cell.interval))
    };
    let said: Vec<String> = cells.iter().take(3).map(say).collect();
    (!said.is_empty()).then(|| format!("Slowest cells: {}.", said.join("; ")))
}

/// What a reader must know before believing a number.
fn cautions(material: &Material, figures: &[Figure], machines: usize) -> Vec<String> {
    let mut cautions = Vec::new();
    if machines > 1 {
        cautions.push(format!(
            "These records are of {machines} machines, systems or builds: compare figures only within a session."
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
        let scale = session.parameters.get("scale").and_then(serde_json::Value::as_f64);
        if let Some(scale) = scale.filter(|scale| *scale != 1.0) {
            cautions.push(format!(
                "{} was run at scale {scale}, not at the article's size.",
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
        let of = material.sessions.iter().find(|session| session.session == figure.session);
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
        let runs = material.observations.iter().filter(|one| one.round > 0);
        runs.filter_map(of_run).fold(0.0, f64::max)
    });
    if busy.iter().any(|share| *share > QUIET_SHARE) {
        cautions.push(format!(
            "Others used up to {:.0} % of the machine during a run, its host took up to {:.0} %.",
            busy[0] * 100.0,
            busy[1] * 100.0
        ));
    }
    let unpaired: usize = figures.iter().filter(|one| primary(one)).map(|one| one.unpaired).sum();
    if unpaired > 0 {
        cautions.push(format!(
            "Runs without a partner in their round, which are in no ratio: {unpaired}."
        ));
    }
    cautions
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

fn primary(figure: &Figure) -> bool {
    PRIMARY.contains(&figure.what.as_str())
}

impl Section {
    fn of(name: &str, articles: &Articles, material: &Material, all: &[Figure]) -> Self {
        let known: Option<&Experiment> = articles.experiment(name);
        let figures: Vec<&Figure> = all.iter().filter(|figure| figure.scenario == name).collect();
        let special = known.map(|known| known.primary.as_slice()).unwrap_or_default();
        let primary = primaries(&figures, special);
        let id: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let mut notes = Vec::new();
        if let Some(article) = known.and_then(|known| known.article) {
            let title = articles.articles.get(article).map_or("", String::as_str);
            notes.push(format!("Article {article}: {title}."));
        }
        notes.extend(known.and_then(|known| known.note.clone()));
        notes.extend(control(&primary));
        let mut facts = articles.facts.iter().filter(|fact| fact.experiment == name).peekable();
        let facts = facts.peek().is_some().then(|| tables::facts(facts, material, &id));
        let bars = known.map(|known| known.bars.as_slice()).unwrap_or_default();
        Self {
            title: known.map_or_else(|| name.to_string(), |known| known.title.clone()),
            other_base: other_base(&primary),
            notes,
            rows: rows(&primary),
            bars: bars.iter().filter_map(|what| Bars::of(what, &figures)).collect(),
            through: known
                .iter()
                .flat_map(|known| &known.through)
                .filter_map(|cell| Through::of(cell, name, material))
                .collect(),
            facts,
            bases: tables::bases(&id, &primary, &figures),
            figures: tables::figures(&id, &figures),
            runs: tables::raw(&id, material, name),
            id,
        }
    }
}

/// A base that is not plain; where sessions have different ones, each of which is its own.
fn other_base(figures: &[&Figure]) -> Option<String> {
    if figures.iter().all(|figure| tables::has_plain_base(figure)) {
        return None;
    }
    let bases: BTreeSet<&str> = figures.iter().map(|figure| figure.base.as_str()).collect();
    match bases.into_iter().collect::<Vec<_>>()[..] {
        [base] => Some(base.into()),
        _ => Some("each session's own base".into()),
    }
}

/// Of each cell and side the figure that its chart shows.
fn primaries<'a>(figures: &[&'a Figure], special: &[Primary]) -> Vec<&'a Figure> {
    let key = |figure: &Figure| (figure.session.clone(), figure.cell.clone(), figure.side.clone());
    let mut seen = BTreeSet::new();
    let mut chosen = Vec::new();
    for figure in figures {
        if !seen.insert(key(figure)) {
            continue;
        }
        let of_key = || figures.iter().filter(|other| key(other) == key(figure));
        let named = |whats: &[&str]| {
            whats.iter().find_map(|what| of_key().find(|figure| figure.what == *what))
        };
        let own = special.iter().find(|one| like(&figure.cell, &one.cells));
        let own: Vec<&str> = own.iter().flat_map(|one| &one.what).map(String::as_str).collect();
        let named = named(&own).or_else(|| named(&PRIMARY));
        let timed = || of_key().find(|figure| matches!(figure.sense(), Sense::Time | Sense::Speed));
        chosen.extend(named.or_else(timed).copied());
    }
    chosen
}

/// How the control came out.
fn control(primary: &[&Figure]) -> Option<String> {
    let controls: Vec<_> = primary.iter().filter(|figure| figure.side == "again").collect();
    if controls.is_empty() {
        return None;
    }
    let count = |words: &[Word]| controls.iter().filter(|one| words.contains(&one.word())).count();
    Some(format!(
        "Control, plain against plain: no difference in {}, not resolved in {}, a difference in {} of {} cells.",
        count(&[Word::NoDifference]),
        count(&[Word::NotResolved, Word::Told]),
        count(&[Word::Worse, Word::Better]),
        controls.len()
    ))
}

fn rows(primary: &[&Figure]) -> Vec<Row> {
    let several_sides = primary.windows(2).any(|two| two[0].side != two[1].side);
    let several_whats = primary.windows(2).any(|two| two[0].what != two[1].what);
    let again = |figure: &Figure| {
        primary
            .iter()
            .filter(|other| (&other.cell, &other.side) == (&figure.cell, &figure.side))
            .count()
            > 1
    };
    let row = |figure: &&Figure| {
        let mut label = figure.cell.clone();
        if several_sides {
            label = format!("{label} · {}", figure.side);
        }
        if several_whats {
            label = format!("{label} · {}", text::quantity(&figure.what));
        }
        if again(figure) {
            label = format!("{label} ({})", text::began(&figure.session));
        }
        let cost = figure.cost().map(|cost| cost.interval(1));
        let costs = figure.costs();
        let alone = (costs.len() == 1 && costs[0] > 0.0).then(|| costs[0]);
        let text = match (&cost, alone) {
            (Some(cost), _) => cost_words(cost),
            (None, Some(one)) => format!("{}, one pair", text::change(one - 1.0)),
            (None, None) => "–".into(),
        };
        Row {
            label,
            text,
            mean: cost.map(|cost| cost.mean).or(alone),
            ends: cost.map(|cost| (cost.low, cost.high)),
            dots: if cost.is_some() { costs } else { Vec::new() },
            word: figure.word(),
        }
    };
    primary.iter().map(row).collect()
}

impl Bars {
    /// Of every cell in which `what` was observed: the base and each side.
    fn of(what: &str, figures: &[&Figure]) -> Option<Self> {
        let mut groups: Vec<Group> = Vec::new();
        let mut seen = BTreeSet::new();
        // Of each cell the newest session, as for the articles' figures; their names begin with the time.
        let mut newest: Vec<_> = figures.iter().filter(|figure| figure.what == what).collect();
        newest.sort_by(|a, b| b.session.cmp(&a.session));
        for figure in newest {
            if !seen.insert((&figure.cell, &figure.side)) {
                continue;
            }
            let bar = |label: &str, values: &[f64], base: bool| {
                let shown = |value: f64| if what.ends_with("_bytes") { value / 1e6 } else { value };
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(0.0, f64::max);
                let text = match (low == high, what.ends_with("_bytes")) {
                    (true, _) => text::value(what, mean),
                    (false, true) => {
                        format!("{} to {}", text::value(what, low), text::value(what, high))
                    }
                    (false, false) => format!(
                        "{} ({} to {})",
                        text::value(what, mean),
                        text::value(what, low),
                        text::value(what, high)
                    ),
                };
                Bar {
                    label: label.into(),
                    text,
                    mean: shown(mean),
                    range: (shown(low), shown(high)),
                    base,
                }
            };
            let side = bar(&figure.side, &figure.side_values, false);
            match groups.iter_mut().find(|group| group.name == figure.cell) {
                Some(group) => group.bars.push(side),
                None => groups.push(Group {
                    name: figure.cell.clone(),
                    bars: vec![bar(&figure.base, &figure.base_values, true), side],
                }),
            }
        }
        let title = match what {
            "media_bytes" => "Size of the media, MB".to_string(),
            "elapsed_s" => {
                "Duration, seconds: mean, from the shortest to the longest run".to_string()
            }
            other => text::quantity(other),
        };
        let unit =
            if what.ends_with("_bytes") { "MB" } else { what.rsplit('_').next().unwrap_or("") };
        (!groups.is_empty()).then(|| Self { title, unit: unit.into(), groups })
    }
}

impl Through {
    /// Of the newest session that has the series of `cell`, in its first round.
    fn of(cell: &str, scenario: &str, material: &Material) -> Option<Self> {
        let of = |session: &Session, side: &str| -> Vec<(f64, f64)> {
            let mut points: Vec<(f64, f64)> = material
                .observations
                .iter()
                .filter(|one| one.session == session.session && one.round == 1)
                .filter(|one| one.cell == cell && one.side == side)
                .filter_map(|one| {
                    let second = one.what.strip_prefix("workers_second_")?;
                    let second: u32 = second.strip_suffix("_percent_cpu")?.parse().ok()?;
                    Some((f64::from(second) + 0.5, one.value))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        let has = |session: &&Session| {
            session.scenario == scenario
                && !session.sides.is_empty()
                && session.sides.iter().all(|side| of(session, &side.side).len() >= 2)
        };
        let with_series = material.sessions.iter().filter(has);
        let session = with_series.max_by(|a, b| a.session.cmp(&b.session))?;
        let strokes = [(Stroke::Dashed, "dashed"), (Stroke::Dotted, "dotted")];
        let last = session.sides.len() - 1;
        let (mut lines, mut key) = (Vec::new(), Vec::new());
        for (at, side) in session.sides.iter().enumerate() {
            let solid = (Stroke::Solid, "line");
            let (stroke, word) = *strokes.get(at).filter(|_| at < last).unwrap_or(&solid);
            lines.push(Line { points: of(session, &side.side), stroke });
            key.push(format!("{word}: {}", side.side));
        }
        let title = format!(
            "Processor time of the workers through one run, {cell}: percent of all processors"
        );
        Some(Self { title, key: key.join("; "), lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(base: &str) -> Figure {
        Figure {
            session: format!("s-{base}"),
            scenario: "side-effects".into(),
            cell: "reads".into(),
            what: "elapsed_s".into(),
            base: base.into(),
            side: "other".into(),
            rounds: vec![1],
            base_values: vec![1.0],
            side_values: vec![1.1],
            unpaired: 0,
        }
    }

    #[test]
    fn a_section_names_its_base_only_where_it_has_one() {
        let (plain, sealed, none) = (figure("plain"), figure("sealed"), figure("none"));
        assert_eq!(other_base(&[&plain, &none]), None);
        assert_eq!(other_base(&[&sealed, &sealed]).as_deref(), Some("sealed"));
        assert_eq!(other_base(&[&plain, &sealed]).as_deref(), Some("each session's own base"));
    }
}
