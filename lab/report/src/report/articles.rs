//! What the articles printed, and the same statistic of our records, by the article's own formula.
//!
//! The facts are in `lab/articles.json`; so are the first screen's lines and the experiments' titles.

mod selection;

use serde::Deserialize;

use super::figures::{last_star, like};

/// What a page says beside the records: its first lines, titles, and what the articles claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Articles {
    pub headlines: Vec<Headline>,
    pub experiments: Vec<Experiment>,
    /// Titles by number.
    pub articles: Vec<String>,
    pub facts: Vec<Fact>,
}

/// One line of the first screen: the first source with records.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    pub name: String,
    pub about: String,
    /// Nothing is said of it where it was not measured.
    #[serde(default)]
    pub optional: bool,
    /// Whether the sentence has a clause for it, as far as it was measured.
    #[serde(default)]
    pub clause: Clause,
    pub sources: Vec<Source>,
}

/// What the first screen's sentence says of a line. The worst has a clause in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clause {
    #[default]
    None,
    Time,
    /// Processor time beside it.
    TimeAndEffort,
}

/// How an experiment's section is titled and drawn.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub name: String,
    pub title: String,
    #[serde(default)]
    pub article: Option<usize>,
    /// Quantities whose values are drawn as well, not only their ratios.
    #[serde(default)]
    pub bars: Vec<Drawn>,
    /// Cells whose processor time is drawn through the seconds of a run.
    #[serde(default)]
    pub through: Vec<String>,
    #[serde(default)]
    pub note: Option<String>,
    /// What the chart shows of some cells, instead of their time or speed.
    #[serde(default)]
    pub primary: Vec<Primary>,
    /// What its cells are called for readers; the first that fits.
    #[serde(default)]
    pub names: Vec<Name>,
    /// Parts of its chart that are charts of their own; what is in none is in the last.
    #[serde(default)]
    pub charts: Vec<Part>,
}

/// Values as bars.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drawn {
    pub title: String,
    /// All, if empty.
    #[serde(default)]
    pub cells: Vec<String>,
    #[serde(default)]
    pub not: Vec<String>,
    /// The first that was observed.
    pub what: Vec<String>,
    /// Another quantity, marked on each bar: wall time beside what a program says of itself.
    #[serde(default)]
    pub beside: Option<Beside>,
}

/// A quantity that is marked on the bars of another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    pub what: String,
    pub name: String,
}

/// A part of a chart that is a chart of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub title: String,
    pub cells: String,
}

/// What the chart shows of some cells.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Primary {
    pub cells: String,
    /// The first that was observed.
    pub what: Vec<String>,
}

/// What cells are called for readers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Name {
    pub cells: String,
    /// With `{*}` for what the last `*` of the cells stands for, and `{cell}` for all of it.
    pub name: String,
}

/// Which numbers: names in which each `*` stands for anything.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub experiment: String,
    /// All, if empty.
    #[serde(default)]
    pub cells: Vec<String>,
    #[serde(default)]
    pub not: Vec<String>,
    /// Cells against another cell of the same run, instead of sides against a side: the first are
    /// compared with the second, whose `*` is what the last `*` of the first stands for.
    #[serde(default)]
    pub pairs: Vec<[String; 2]>,
    /// The first that was observed.
    pub what: Vec<String>,
    /// Of cells that end with the length of their database, `.., 32 MiB`: those of the longest.
    #[serde(default)]
    pub largest: bool,
    /// The session's own, if empty.
    #[serde(default)]
    pub base: Option<String>,
    pub side: String,
    /// What it was done on or by, in which `{name}` is a parameter of the session; not said if the session has no such.
    #[serde(default)]
    pub named: Option<String>,
}

/// One claim of an article, with the figure that it prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    pub article: usize,
    /// Of the article's text.
    pub line: usize,
    pub experiment: String,
    pub claim: String,
    pub printed: String,
    pub formula: String,
    pub ours: Vec<Ours>,
}

/// Our own number beside a claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ours {
    pub label: String,
    pub statistic: Statistic,
    pub sources: Vec<Source>,
}

/// How an article makes one number of its means. `side` and `base` are means over the runs of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Mean of side / base - 1 over the cases.
    Change,
    LeastChange,
    LargestChange,
    /// Mean of 1 - side / base.
    Less,
    LargestLess,
    /// Mean of base / side - 1, of speeds.
    Slowness,
    /// Of the cases' sums: (side - base) / side.
    OfEncryptedTime,
    /// Of the cases' sums: (side - base) / base.
    OverPlainTime,
    /// Cases whose side has the lower mean, of all cases.
    ShareBelow,
    /// The same of means without outliers.
    ShareBelowWithinFences,
}

impl Articles {
    /// Reads the file that is compiled in.
    #[expect(clippy::expect_used, reason = "the file is compiled in, and a test reads it")]
    pub fn read() -> Self {
        serde_json::from_str(include_str!("../../../articles.json")).expect("lab/articles.json")
    }

    /// What is known of the experiment of this name.
    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|one| one.name == name)
    }

    /// What a cell of an experiment is called for readers.
    pub fn work(&self, experiment: &str, cell: &str) -> String {
        let names = self.experiment(experiment).map(|one| one.names.as_slice()).unwrap_or_default();
        let named = names.iter().find_map(|one| {
            let part = last_star(cell, &one.cells)?;
            Some(one.name.replace("{*}", part).replace("{cell}", cell))
        });
        named.unwrap_or_else(|| cell.to_string())
    }
}

/// Whether `cell` is of the form of one of `cells`, or there are none, and of none of `not`.
fn wanted(cell: &str, cells: &[String], not: &[String]) -> bool {
    let any = |patterns: &[String]| patterns.iter().any(|pattern| like(cell, pattern));
    (cells.is_empty() || any(cells)) && !any(not)
}

impl Drawn {
    /// Whether the bars have this cell.
    pub fn wants(&self, cell: &str) -> bool {
        wanted(cell, &self.cells, &self.not)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_articles() {
        let articles = Articles::read();
        assert_eq!(articles.articles.len(), 5);
        for fact in &articles.facts {
            assert!(fact.article < 5 && fact.line > 0 && !fact.ours.is_empty(), "{fact:?}");
            assert!(articles.experiment(&fact.experiment).is_some(), "{fact:?}");
        }
        let sources = articles.facts.iter().flat_map(|fact| &fact.ours);
        assert!(sources.flat_map(|ours| &ours.sources).all(|source| !source.what.is_empty()));
    }
}
