//! One figure against its record.
//!
//! A selector is `RECORDS | EXPERIMENT | CELL | WHAT`; further fields may be `side=NAME`, `session=NAME`,
//! `statistic=NAME` and `not=CELL`. A cell with `*` stands for the geometric mean over all cells like it, without those
//! like `not=CELL`. A figure with `%` is a change, one without a ratio; an interval behind it is recomputed too. All
//! are compared to their last digit.

use std::path::Path;

use super::page::Page;
use super::written::{interval, looks_like_an_interval, percent, Written};
use crate::error::{Error, Result};
use crate::report::{figures, like, mean_over, Paired, Records};
use crate::statistics::Interval;

/// A unit between a number and its interval has so many bytes at most.
const UNIT_BYTES: usize = 16;

/// What stands behind a figure.
#[derive(Debug)]
pub enum Evidence {
    /// A record, by the fields of a selector: the figure is recomputed.
    Record(Vec<String>),
    /// A file that says it, which has to be there.
    Source(String),
    /// No record was kept.
    Unrecorded,
}

/// One figure of a document.
#[derive(Debug)]
pub struct Quote<'a> {
    /// The byte of the page that it begins with.
    pub at: usize,
    /// The byte of its interval's bracket, if it has one.
    pub interval_at: Option<usize>,
    evidence: Evidence,
    /// The page from the figure on.
    rest: &'a str,
}

impl<'a> Quote<'a> {
    /// The figure at a place of a page.
    pub fn new(page: &Page<'a>, at: usize, evidence: Evidence) -> Self {
        let rest = &page.text[at..];
        let behind = Written::read(rest).map_or("", |(_, behind)| behind);
        let bracket = behind.find('(').filter(|bracket| {
            *bracket <= UNIT_BYTES && !behind[..*bracket].contains([';', ',', '.', '\n', '|'])
        });
        let interval_at = bracket.map(|bracket| page.text.len() - behind.len() + bracket);
        Self { at, interval_at, evidence, rest }
    }

    /// The difference in words, or nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a selector that names no figure, or none alone, and for a figure that is not written as
    /// one.
    pub fn check(&self, root: &Path) -> Result<Option<String>> {
        let selector = match &self.evidence {
            Evidence::Record(fields) => Selector::new(fields)?,
            Evidence::Source(source) if root.join(source).is_file() => return Ok(None),
            Evidence::Source(source) => {
                return Err(Error::invalid(format!("there is no `{source}`")));
            }
            Evidence::Unrecorded => return Ok(None),
        };
        let recomputed = recompute(&selector.figures(root)?, selector.statistic)?;
        let (mean, rest) = Written::read(self.rest)
            .ok_or_else(|| Error::invalid("no number stands at its place"))?;
        let percent = percent(rest);
        let shown = |ratio: f64| if percent { (ratio - 1.0) * 100.0 } else { ratio };
        let mut wanted = vec![(mean, shown(recomputed.mean))];
        if let Some((low, high)) = interval(rest) {
            wanted.push((low, shown(recomputed.low)));
            wanted.push((high, shown(recomputed.high)));
        } else if looks_like_an_interval(rest) {
            return Err(Error::invalid("an interval is written as (0.95..1.02) or (-1.0 to +2.1)"));
        }
        if wanted.iter().all(|(written, value)| written.is(*value)) {
            return Ok(None);
        }
        let say = |of: fn(&(Written, f64)) -> f64| {
            let texts = wanted.iter().map(|pair| format!("{:.*}", pair.0.digits, of(pair)));
            texts.collect::<Vec<_>>().join(", ")
        };
        let (quoted, recorded) = (say(|pair| pair.0.value), say(|pair| pair.1));
        let Selector { records, cell, what, .. } = selector;
        Ok(Some(format!("{what} of `{cell}`: quoted {quoted}; {records} says {recorded}")))
    }
}

/// Which figures of which records.
struct Selector<'f> {
    records: &'f str,
    experiment: &'f str,
    cell: &'f str,
    what: &'f str,
    side: &'f str,
    session: Option<&'f str>,
    statistic: &'f str,
    not: Option<&'f str>,
}

impl<'f> Selector<'f> {
    fn new(fields: &'f [String]) -> Result<Self> {
        let [records, experiment, cell, what, options @ ..] = fields else {
            return Err(Error::invalid("a figure names RECORDS | EXPERIMENT | CELL | WHAT"));
        };
        let mut selector = Self {
            records,
            experiment,
            cell,
            what,
            side: "sealed",
            session: None,
            statistic: "mean",
            not: None,
        };
        for option in options {
            match option.split_once('=') {
                Some(("side", name)) => selector.side = name,
                Some(("session", name)) => selector.session = Some(name),
                Some(("statistic", name)) => selector.statistic = name,
                Some(("not", name)) => selector.not = Some(name),
                _ => {
                    return Err(Error::invalid(format!(
                        "`{option}` is not side=, session=, statistic= or not="
                    )));
                }
            }
        }
        Ok(selector)
    }

    /// The figures that are like it; more than one only for a cell with `*`.
    fn figures(&self, root: &Path) -> Result<Vec<Paired>> {
        let Self { records, cell, what, side, .. } = self;
        let found: Vec<Paired> = figures(&Records::read(&[root.join(records)])?)
            .into_iter()
            .filter(|figure| figure.scenario == self.experiment && figure.what == *what)
            .filter(|figure| like(&figure.cell, cell) && figure.side == *side)
            .filter(|figure| self.not.is_none_or(|name| !like(&figure.cell, name)))
            .filter(|figure| self.session.is_none_or(|name| figure.session == name))
            .collect();
        if found.is_empty() {
            return Err(Error::invalid(format!("{what} of `{cell}`, {side}, is not in {records}")));
        }
        if found.len() > 1 && !cell.contains('*') {
            return Err(Error::invalid(format!(
                "`{cell}` is in {records} more than once: session=NAME"
            )));
        }
        Ok(found)
    }
}

fn recompute(found: &[Paired], statistic: &str) -> Result<Interval> {
    let none = || Error::invalid("too few pairs for an interval");
    let over = |of: fn(&Paired) -> Vec<f64>| -> Result<Interval> {
        let found: Vec<&Paired> = found.iter().collect();
        Ok(mean_over(&found, of).ok_or_else(none)?.interval(1))
    };
    let alone = |value: Option<f64>| -> Result<Interval> {
        match (value, found.len()) {
            (Some(mean), 1) => Ok(Interval { mean, low: mean, high: mean, confidence: 1.0 }),
            _ => Err(Error::invalid(format!("no {statistic} over several cells, or of nothing"))),
        }
    };
    let summary = || found[0].summary();
    match statistic {
        "mean" if found.len() == 1 && found[0].log_mean().is_none() => alone(found[0].mean()),
        "mean" => over(Paired::ratios),
        // Speeds turned over: the time of an operation.
        "cost" => over(Paired::costs),
        "median" => alone(summary().map(|summary| summary.median)),
        "min" => alone(summary().map(|summary| summary.min)),
        "max" => alone(summary().map(|summary| summary.max)),
        other => {
            Err(Error::invalid(format!("no statistic `{other}`: mean, cost, median, min or max")))
        }
    }
}
