//! The first screen: one line for each kind of work, and the sentence that they make.

use super::articles::{Articles, Headline, Source};
use super::figures::{like, mean_over, Figure, Sense, Word};
use super::reading::Material;
use super::text;
use crate::statistics::{Interval, LogMean};

/// One line.
#[derive(Debug)]
pub struct Lead {
    pub name: String,
    pub about: String,
    /// Whether it was measured at all.
    pub measured: bool,
    /// None if it was not, or not often enough for an interval.
    pub result: Option<Result>,
}

/// What encryption costs of the time, over all cells of a source.
#[derive(Debug)]
pub struct Result {
    pub experiment: String,
    pub side: String,
    pub what: String,
    /// Time over plain time, geometric mean over the cells.
    pub cost: Interval,
    pub cells: Vec<Cost>,
    /// Cells that were measured and are not in it: once, or a time of 0.
    pub left_out: usize,
}

/// Of one cell.
#[derive(Debug)]
pub struct Cost {
    pub cell: String,
    pub interval: Interval,
}

impl Lead {
    pub fn word(&self) -> Word {
        self.result.as_ref().map_or(Word::Told, |result| Word::of(&result.cost))
    }

    /// `slower by 1.9 % (1.2 to 2.6)`.
    pub fn words(&self) -> String {
        match &self.result {
            Some(result) => cost_words(&result.cost),
            None if self.measured => "measured too few times to say".into(),
            None => "not measured".into(),
        }
    }

    pub fn cell_with_most(&self) -> Option<&Cost> {
        let cells = self.result.iter().flat_map(|result| &result.cells);
        cells.max_by(|a, b| a.interval.mean.total_cmp(&b.interval.mean))
    }
}

/// What an interval of costs in time says, with its numbers.
pub fn cost_words(cost: &Interval) -> String {
    let word = Word::of(cost);
    let said = Sense::Time.words(word);
    let Interval { mean, low, high, .. } = cost;
    match word {
        Word::Worse | Word::Better => {
            let ends = text::ends(low - 1.0, high - 1.0, true);
            format!("{said} by {} ({ends})", text::amount(mean - 1.0))
        }
        _ => format!(
            "{said} ({}, {})",
            text::change(mean - 1.0),
            text::ends(low - 1.0, high - 1.0, false)
        ),
    }
}

pub fn leads(articles: &Articles, material: &Material, figures: &[Figure]) -> Vec<Lead> {
    articles.headlines.iter().filter_map(|headline| lead(headline, material, figures)).collect()
}

/// None of an optional line that was not measured.
fn lead(headline: &Headline, material: &Material, figures: &[Figure]) -> Option<Lead> {
    let sources = || headline.sources.iter();
    let result = sources().find_map(|source| result(source, material, figures));
    let measured = sources().any(|source| source.select(material).is_some());
    let (name, about) = (headline.name.clone(), headline.about.clone());
    (measured || !headline.optional).then_some(Lead { name, about, measured, result })
}

fn result(source: &Source, material: &Material, figures: &[Figure]) -> Option<Result> {
    let selected = source.select(material)?;
    let wanted = |figure: &&Figure| {
        figure.what == selected.what
            && selected.cases.iter().any(|case| {
                (&case.session, &case.cell, &case.side)
                    == (&figure.session, &figure.cell, &figure.side)
            })
            && like(&figure.side, &source.side)
    };
    let of_source = || figures.iter().filter(wanted);
    let costs: Vec<(&Figure, LogMean)> =
        of_source().filter_map(|figure| Some((figure, figure.cost()?))).collect();
    let left_out = of_source().count() - costs.len();
    let over: Vec<&Figure> = costs.iter().map(|(figure, _)| *figure).collect();
    let side = costs.first()?.0.side.clone();
    Some(Result {
        experiment: source.experiment.clone(),
        side,
        what: selected.what,
        cost: mean_over(&over, Figure::costs)?.interval(1),
        cells: costs
            .into_iter()
            .map(|(figure, cost)| Cost { cell: figure.cell.clone(), interval: cost.interval(1) })
            .collect(),
        left_out,
    })
}

/// `Not measured: restores.`
pub fn missing(leads: &[Lead]) -> Option<String> {
    let names = names_of_missing(leads);
    let some = !names.is_empty() && names.len() < leads.len();
    some.then(|| format!("Not measured: {}.", names.join(", ")))
}

fn names_of_missing(leads: &[Lead]) -> Vec<&str> {
    leads.iter().filter(|lead| !lead.measured).map(|lead| lead.name.as_str()).collect()
}

/// `On this machine: OLTP slower by 1.9 % (1.2 to 2.6), ...`
pub fn sentence(leads: &[Lead], machines: usize) -> String {
    let place = if machines > 1 {
        format!("On these {machines} machines")
    } else {
        "On this machine".into()
    };
    let measured: Vec<String> = leads
        .iter()
        .filter(|lead| lead.measured)
        .map(|lead| format!("{} {}", lead.name, lead.words()))
        .collect();
    match measured.is_empty() {
        true => format!("{place}: not measured: {}.", names_of_missing(leads).join(", ")),
        false => format!("{place}: {}.", measured.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(name: &str, interval: Option<(f64, f64, f64)>) -> Lead {
        let result = interval.map(|(mean, low, high)| Result {
            experiment: "hummer".into(),
            side: "sealed".into(),
            what: "elapsed_s".into(),
            cost: Interval { mean, low, high, confidence: 0.95 },
            cells: Vec::new(),
            left_out: 0,
        });
        Lead { name: name.into(), about: String::new(), measured: result.is_some(), result }
    }

    #[test]
    fn the_sentence_says_what_was_lost_and_what_was_not_measured() {
        let leads = [
            lead("OLTP", Some((1.03, 1.025, 1.035))),
            lead("backups", Some((1.004, 0.99, 1.012))),
            lead("restores", None),
            lead("checks", Some((1.05, 0.98, 1.12))),
            lead("rebuilds", Some((0.9, 0.89, 0.91))),
        ];
        assert_eq!(
            sentence(&leads, 1),
            "On this machine: OLTP slower by 3.0 % (2.5 to 3.5), backups no difference (+0.4 %, \
             −1.0 to +1.2), checks not resolved (+5.0 %, −2.0 to +12.0), rebuilds faster by 10.0 % \
             (9.0 to 11.0)."
        );
        assert_eq!(missing(&leads).unwrap(), "Not measured: restores.");
        let once = Lead { measured: true, ..lead("checks", None) };
        assert_eq!(sentence(&[once], 1), "On this machine: checks measured too few times to say.");
        let nothing = sentence(&[lead("OLTP", None)], 2);
        assert_eq!(nothing, "On these 2 machines: not measured: OLTP.");
        assert_eq!(missing(&[lead("OLTP", None)]), None);
    }
}
