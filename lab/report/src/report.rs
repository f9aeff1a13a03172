//! Reports: one page, Markdown or a summary on the terminal, made of records alone.
//!
//! All three are made of the same tables (`tables.rs`), so that they hold the same numbers.

mod articles;
mod cautions;
mod chart;
pub mod figures;
mod headline;
mod page;
mod promises;
mod reading;
mod section;
mod summary;
mod tables;
mod text;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use articles::Articles;
use cautions::cautions;
use chart::Row;
use figures::Word;
use headline::Lead;
use promises::Promises;
use reading::Material;
use section::Section;
use tables::Table;

pub use figures::{figures, like, mean_over, Figure as Paired, Sense as Meaning, Word as Verdict};
pub use headline::cost_words;
pub use reading::Material as Records;
pub use summary::wrapped;
pub use text::{change, of_ratio, quantity};

/// All that a report says.
#[derive(Debug)]
pub struct Report {
    pub sentence: String,
    /// What the sentence does not speak of.
    pub missing: Option<String>,
    /// What else was measured, by what became of it: losses first.
    pub rest: Vec<String>,
    /// The slowest single cells, where any is slower.
    pub most: Option<String>,
    pub promises: Promises,
    pub leads: Vec<Lead>,
    pub headlines: Table,
    pub cautions: Vec<String>,
    pub sections: Vec<Section>,
    /// What the articles printed and these records do not hold.
    pub absent: Option<Table>,
    pub machines: Table,
    pub sessions: Table,
}

/// Writes the page to `out`; prints Markdown, or without a page a summary: what comes first, or `all`.
///
/// # Errors
/// As [`Material::read`], and [`Error::Invalid`] for records without a run.
pub fn report(files: &[PathBuf], out: Option<&Path>, markdown: bool, all: bool) -> Result<bool> {
    let report = Report::of(&Material::read(files)?)?;
    if let Some(out) = out {
        std::fs::write(out, report.page()?).map_err(Error::io(out.display().to_string()))?;
    }
    match (markdown, out) {
        (true, _) => print(&summary::markdown(&report, all))?,
        (false, Some(_)) => print(&format!("{}\n", report.said()))?,
        (false, None) => print(&format!("{}\n", report.summary(all)))?,
    }
    Ok(true)
}

/// Prints what a pager or `head` may have read enough of.
///
/// # Errors
/// Standard output's, but for a pipe whose reader is gone.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Error::io("standard output")),
    }
}

impl Report {
    /// Makes the report of these records.
    ///
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
            sentence: headline::sentence(&leads, &headline::place(&material.sessions, &leads)),
            rest: headline::rest(&leads),
            promises: Promises::of(material),
            missing: headline::missing(&leads),
            most: most(&leads, &articles),
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
        let all = [&self.sentence].into_iter().chain(self.more());
        all.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// What stands behind the sentence on each first screen.
    pub fn more(&self) -> impl Iterator<Item = &String> {
        let said = self.promises.said.iter();
        self.rest.iter().chain(&self.missing).chain(&self.most).chain(said)
    }

    /// One HTML file that needs nothing else.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a chart cannot be drawn.
    pub fn page(&self) -> Result<String> {
        page::render(self)
    }

    /// For a terminal: what the page shows first.
    pub fn first_screen(&self) -> String {
        summary::first_screen(self)
    }

    /// For a terminal: what the page shows first, the goals and the articles' figures; or all tables but those of single
    /// figures and runs.
    pub fn summary(&self, all: bool) -> String {
        summary::terminal(self, all)
    }

    /// The articles' figures of all experiments, in one table.
    pub fn articles(&self) -> Option<Table> {
        let facts = || self.sections.iter().filter_map(|section| section.facts.as_ref());
        facts().next().map(|first| Table {
            id: "facts".into(),
            title: first.title.clone(),
            columns: first.columns.clone(),
            rows: facts().flat_map(|table| table.rows.clone()).collect(),
        })
    }

    /// Kinds of work that were measured and not resolved, those that were too few times for an interval among them.
    pub fn not_resolved(&self) -> Vec<&str> {
        headline::not_resolved(&self.leads)
    }

    /// The lines of the first chart.
    pub fn rows(&self) -> Vec<Row> {
        let row = |lead: &Lead| {
            let result = lead.result.as_ref();
            Row {
                label: lead.title(),
                text: match lead.uneven() {
                    Some(most) => {
                        let change = text::change(most.interval.mean - 1.0);
                        format!("{}, most {change}", lead.words())
                    }
                    None => lead.words(),
                },
                mean: result.map(|result| result.cost.mean),
                ends: result.map(|result| (result.cost.low, result.cost.high)),
                dots: result
                    .map(|result| result.cells.iter().map(|cell| cell.interval.mean).collect())
                    .unwrap_or_default(),
                word: lead.word(),
                star: None,
            }
        };
        self.leads.iter().filter(|lead| lead.measured).map(row).collect()
    }
}

/// The three single works that are slower by most.
fn most(leads: &[Lead], articles: &Articles) -> Option<String> {
    let mut cells: Vec<_> = leads
        .iter()
        .filter_map(|lead| lead.result.as_ref())
        .flat_map(|result| result.cells.iter().map(move |cell| (&result.experiment, cell)))
        .filter(|(_, cell)| Word::of(&cell.interval) == Word::Worse)
        .collect();
    cells.sort_by(|a, b| b.1.interval.mean.total_cmp(&a.1.interval.mean));
    let say = |(experiment, cell): &(&String, &headline::Cost)| {
        let title = articles.experiment(experiment).map_or(experiment.as_str(), |one| &one.title);
        format!("{} ({title}), {}", cell.cell, cost_words(&cell.interval))
    };
    let said: Vec<String> = cells.iter().take(3).map(say).collect();
    (!said.is_empty()).then(|| format!("Slowest: {}.", said.join("; ")))
}
