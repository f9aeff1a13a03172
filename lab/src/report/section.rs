//! The part of a report that is of one experiment.

use std::collections::BTreeSet;

use super::articles::{Articles, Experiment, Primary};
use super::chart::{Bar, Group, Line, Row, Stroke};
use super::figures::{like, Figure, Sense, Word};
use super::headline::cost_words;
use super::reading::Material;
use super::tables::{self, Table};
use super::text;
use crate::cold;
use crate::record::Session;

/// Times and speeds that a chart is of: the first that a cell has.
const PRIMARY: [&str; 7] =
    ["elapsed_s", "busy_s", "ops_per_s", "mb_per_s", "scan_mb_per_s", "writes_per_s", "work_s"];

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

/// Whether a chart may be of it.
pub fn primary(figure: &Figure) -> bool {
    PRIMARY.contains(&figure.what.as_str())
}

impl Section {
    pub fn of(name: &str, articles: &Articles, material: &Material, all: &[Figure]) -> Self {
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
        notes.extend(cold_cache(name, material));
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

/// What cold means in these sessions, where anything was.
fn cold_cache(name: &str, material: &Material) -> Option<String> {
    let sessions = material.sessions.iter().filter(|session| session.scenario == name);
    let with_cold: Vec<&Session> =
        sessions.filter(|session| session.parameters.contains_key(cold::PARAMETER)).collect();
    let first = with_cold.first()?;
    let one = with_cold
        .iter()
        .all(|other| other.parameters[cold::PARAMETER] == first.parameters[cold::PARAMETER]);
    let how = match first.parameters[cold::PARAMETER].as_str().filter(|_| one) {
        Some(how) => format!(" ({how})"),
        None => String::new(),
    };
    let proved = "what a run fetched from the device proves it";
    Some(match with_cold.iter().any(|session| session.machine.is_virtual()) {
        true => format!(
            "Guest cold: the file was taken out of this virtual machine's page cache{how}, {proved}; its host may still have had it in memory."
        ),
        false => format!("Cold: the file was taken out of the page cache{how}, {proved}."),
    })
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
