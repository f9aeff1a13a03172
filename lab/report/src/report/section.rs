//! The part of a report that is of one experiment.

mod bars;
mod through;

use std::collections::BTreeSet;

use super::articles::{Articles, Experiment, Fact, Part, Primary, Statistic};
use super::chart::{Row, Star};
use super::figures::{like, Figure, Sense, Word};
use super::headline::{cost_words, words_of, CONTROL};
use super::reading::Material;
use super::tables::{self, Table};
use super::text;
use crate::record::{parameter, Session};

pub use bars::Bars;
pub use through::Through;

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
    pub charts: Vec<Chart>,
    pub bars: Vec<Bars>,
    pub surprises: Vec<Chart>,
    pub through: Vec<Through>,
    pub facts: Option<Table>,
    pub bases: Table,
    pub figures: Table,
    pub runs: Table,
}

/// Intervals on one axis.
#[derive(Debug)]
pub struct Chart {
    /// None where it is the only one of its section.
    pub title: Option<String>,
    /// What is divided by what.
    pub caption: String,
    pub rows: Vec<Row>,
}

/// Whether a chart may be of it.
pub fn primary(figure: &Figure) -> bool {
    PRIMARY.contains(&figure.what.as_str())
}

impl Section {
    /// Makes the section of the experiment `name` from its figures.
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
        let sessions: Vec<&Session> =
            material.sessions.iter().filter(|session| session.scenario == name).collect();
        notes.push(control(&primary, &sessions));
        notes.extend(cold_cache(name, material));
        let of_name = || articles.facts.iter().filter(|fact| fact.experiment == name);
        let facts = of_name().next().map(|_| tables::facts(of_name(), material, &id));
        let bars = known.map(|known| known.bars.as_slice()).unwrap_or_default();
        let parts = known.map(|known| known.charts.as_slice()).unwrap_or_default();
        Self {
            title: known.map_or_else(|| name.to_string(), |known| known.title.clone()),
            other_base: other_base(&primary),
            notes,
            charts: charts(&primary, parts, articles),
            bars: bars.iter().filter_map(|drawn| Bars::of(drawn, &figures, &sessions)).collect(),
            surprises: of_name()
                .filter_map(|fact| surprises(fact, material, &figures, &sessions))
                .collect(),
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
    // Cells were measured in the order that their seed drew; who reads them looks for one.
    chosen.sort_by_cached_key(|figure| natural(&figure.cell));
    chosen
}

/// An order in which `32 MiB` comes before `256 MiB`, and numbers before words.
fn natural(name: &str) -> Vec<(u64, String)> {
    let mut parts: Vec<(u64, String)> = Vec::new();
    for c in name.chars() {
        let last = parts.last_mut();
        match (c.to_digit(10), last) {
            (Some(digit), Some((number, word))) if word.is_empty() => {
                *number = number.saturating_mul(10).saturating_add(digit.into());
            }
            (Some(digit), _) => parts.push((digit.into(), String::new())),
            (None, Some((_, word))) if !word.is_empty() => word.push(c),
            (None, _) => parts.push((u64::MAX, c.to_string())),
        }
    }
    parts
}

/// The chart of a section, in parts as `articles.json` says: each cell is in the first that it is of.
fn charts(primary: &[&Figure], parts: &[Part], articles: &Articles) -> Vec<Chart> {
    let mut left = primary.to_vec();
    let mut charts = Vec::new();
    for part in parts {
        let (of_part, others): (Vec<&Figure>, _) =
            left.into_iter().partition(|figure| like(&figure.cell, &part.cells));
        left = others;
        charts.extend(Chart::of(Some(part.title.clone()), &of_part, articles));
    }
    // The general part is named last, and read first.
    charts.reverse();
    charts.extend(Chart::of((!charts.is_empty()).then(|| "Others".into()), &left, articles));
    charts
}

impl Chart {
    fn of(title: Option<String>, figures: &[&Figure], articles: &Articles) -> Option<Self> {
        let base = match other_base(figures) {
            Some(base) => base,
            None if figures.iter().all(|figure| figure.base == "none") => "no encryption".into(),
            None => "plain".into(),
        };
        let sides: BTreeSet<&str> = figures.iter().map(|figure| figure.side.as_str()).collect();
        let side = match Vec::from_iter(sides)[..] {
            [side] => side.to_string(),
            _ => "each side".to_string(),
        };
        let caption = format!("Time: {side} over {base}. Ticks are single rounds.");
        (!figures.is_empty()).then(|| Self { title, caption, rows: rows(figures, articles) })
    }
}

/// The chart that article 0 promised: of each choice and cell how it differs, with the cases marked that have the lower mean.
fn surprises(
    fact: &Fact,
    material: &Material,
    figures: &[&Figure],
    sessions: &[&Session],
) -> Option<Chart> {
    let ours = fact.ours.iter().find(|ours| ours.statistic == Statistic::ShareBelow)?;
    let selected = ours.sources.iter().find_map(|source| source.select(material))?;
    let sense = Sense::of(&selected.what);
    let better = sense.words(Word::Better);
    let mut rows = Vec::new();
    let mut order: Vec<_> = selected.cases.iter().collect();
    order.sort_by_cached_key(|case| (natural(&case.cell), natural(&case.side)));
    for case in order {
        let is_of = |figure: &&&Figure| {
            (&figure.session, &figure.cell, &figure.side) == (&case.session, &case.cell, &case.side)
                && figure.what == selected.what
        };
        let Some(figure) = figures.iter().find(is_of) else { continue };
        let star = match case.below() {
            [true, _] => Some(Star::Full),
            [false, true] => Some(Star::Open),
            [false, false] => None,
        };
        let cost = figure.cost().map(|cost| cost.interval(1));
        let told = cost.map_or_else(|| "–".into(), |cost| words_of(figure.sense(), &cost));
        let text = match star {
            Some(Star::Full) => format!("surprising: {told}"),
            Some(Star::Open) => format!("surprising without outliers: {told}"),
            None => told,
        };
        rows.push(Row {
            label: format!("{} · {}", case.cell, case.side),
            text,
            mean: cost.map(|cost| cost.mean),
            ends: cost.map(|cost| (cost.low, cost.high)),
            dots: if cost.is_some() { figure.costs() } else { Vec::new() },
            word: figure.word(),
            star,
        });
    }
    let count = |star| rows.iter().filter(|row| row.star == Some(star)).count();
    let (full, open) = (count(Star::Full), count(Star::Open));
    let name = if sense == Sense::Size { "Size" } else { "Time" };
    let what = format!("{name} ({})", text::quantity(&selected.what));
    let one = selected.cases.iter().all(|case| one_device(sessions, &case.session, &case.cell));
    let device = if one { " Source and target are the same device." } else { "" };
    let caption = format!(
        "{what}: encrypted over not encrypted. ★ the mean is lower with encryption: {full} of {} cases; ☆ only that without \
         outliers: {open}. A lower mean whose interval holds 0 is not resolved.{device}",
        rows.len()
    );
    let title = format!("The surprising cases: {better} with encryption");
    (!rows.is_empty()).then_some(Chart { title: Some(title), caption, rows })
}

/// Whether source and target of a cell, `.., NAME to NAME`, are one disk: the session says which it had.
fn one_device(sessions: &[&Session], session: &str, cell: &str) -> bool {
    let Some(session) = sessions.iter().find(|known| known.session == session) else {
        return false;
    };
    let disk = |list: &str, name: &str| {
        let known = session.parameters.get(list)?.as_array()?;
        let disk = known.iter().find(|disk| disk["name"] == name)?;
        disk["disk"].as_str()
    };
    let ends = cell.rsplit_once(", ").and_then(|(_, ends)| ends.split_once(" to "));
    match ends.map(|(from, to)| (disk("sources", from), disk("targets", to))) {
        Some((Some(from), Some(to))) => from == to,
        _ => session.parameters.get("same_device").is_some_and(|same| *same == true),
    }
}

/// How the control came out, or that there was none.
fn control(primary: &[&Figure], sessions: &[&Session]) -> String {
    let controls: Vec<_> = primary.iter().filter(|figure| figure.side == CONTROL).collect();
    let has = |session: &&&Session| session.sides.iter().any(|side| side.side == CONTROL);
    let without = sessions.len() - sessions.iter().filter(has).count();
    let lack = match (without, sessions.len()) {
        (0, _) => String::new(),
        (1, 1) => "No control in this session.".into(),
        (without, all) if without == all => format!("No control in these {all} sessions."),
        (without, all) => format!(" No control in {without} of {all} sessions."),
    };
    if controls.is_empty() {
        return lack;
    }
    let count = |words: &[Word]| controls.iter().filter(|one| words.contains(&one.word())).count();
    format!(
        "Control, plain against plain: no difference in {}, not resolved in {}, a difference in {} of {} cells.{lack}",
        count(&[Word::NoDifference]),
        count(&[Word::NotResolved, Word::Told]),
        count(&[Word::Worse, Word::Better]),
        controls.len()
    )
}

/// What cold means in these sessions, where anything was.
fn cold_cache(name: &str, material: &Material) -> Option<String> {
    let sessions = material.sessions.iter().filter(|session| session.scenario == name);
    let with_cold: Vec<&Session> =
        sessions.filter(|session| session.parameters.contains_key(parameter::COLD)).collect();
    let first = with_cold.first()?;
    let one = with_cold
        .iter()
        .all(|other| other.parameters[parameter::COLD] == first.parameters[parameter::COLD]);
    let how = match first.parameters[parameter::COLD].as_str().filter(|_| one) {
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

fn rows(primary: &[&Figure], articles: &Articles) -> Vec<Row> {
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
        let mut label = articles.work(&figure.scenario, &figure.cell);
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
            (Some(cost), _) => {
                let short = figure.short().map(|base| text::in_time(base, cost));
                format!("{}{}", cost_words(cost), short.unwrap_or_default())
            }
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
            star: None,
        }
    };
    primary.iter().map(row).collect()
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
    fn cells_are_in_an_order_in_which_one_is_found() {
        let mut cells = [
            "encrypt AES_256, 32 MiB",
            "10: SELECT",
            "encrypt AES_128, 256 MiB",
            "2: SELECT",
            "encrypt AES_128, 32 MiB",
        ];
        cells.sort_by_cached_key(|cell| natural(cell));
        assert_eq!(cells[..2], ["2: SELECT", "10: SELECT"]);
        assert!(cells[2].contains("128, 32") && cells[3].contains("128, 256"), "{cells:?}");
    }

    #[test]
    fn a_cell_is_in_one_chart_and_the_general_one_comes_first() {
        let of = |cell: &str| Figure { cell: cell.into(), ..figure("plain") };
        let (rate, busy, other) = (of("rate-4/3/3"), of("busy-4/3/3"), of("other"));
        let part = |title: &str, cells: &str| Part { title: title.into(), cells: cells.into() };
        let parts = [part("p99", "rate-*"), part("busy", "b*")];
        let charts = charts(&[&rate, &busy, &other], &parts, &Articles::read());
        let told: Vec<_> =
            charts.iter().map(|one| (one.title.as_deref(), one.rows.len())).collect();
        assert_eq!(told, [(Some("busy"), 1), (Some("p99"), 1), (Some("Others"), 1)]);
        assert!(charts[0].caption.contains("other over plain"), "{}", charts[0].caption);
    }

    #[test]
    fn a_section_names_its_base_only_where_it_has_one() {
        let (plain, sealed, none) = (figure("plain"), figure("sealed"), figure("none"));
        assert_eq!(other_base(&[&plain, &none]), None);
        assert_eq!(other_base(&[&sealed, &sealed]).as_deref(), Some("sealed"));
        assert_eq!(other_base(&[&plain, &sealed]).as_deref(), Some("each session's own base"));
    }
}
