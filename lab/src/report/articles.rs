//! What the articles printed, and the same statistic of our records, by the article's own formula.
//!
//! The facts are in `lab/articles.json`; so are the first screen's lines and the experiments' titles.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::figures::like;
use super::reading::Material;
use crate::statistics::{jackknife, mean_within_fences};

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
    pub sources: Vec<Source>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub name: String,
    pub title: String,
    #[serde(default)]
    pub article: Option<usize>,
    /// Quantities whose values are drawn as well, not only their ratios.
    #[serde(default)]
    pub bars: Vec<String>,
    #[serde(default)]
    pub note: Option<String>,
    /// What the chart shows of some cells, instead of their time or speed.
    #[serde(default)]
    pub primary: Vec<Primary>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Primary {
    pub cells: String,
    /// The first that was observed.
    pub what: Vec<String>,
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
    /// compared with the second.
    #[serde(default)]
    pub pairs: Vec<[String; 2]>,
    /// The first that was observed.
    pub what: Vec<String>,
    /// The session's own, if empty.
    #[serde(default)]
    pub base: Option<String>,
    pub side: String,
}

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

/// Values of one case by round: a cell and a side.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub session: String,
    pub cell: String,
    pub side: String,
    pub base: Vec<f64>,
    pub values: Vec<f64>,
}

/// What a source found.
#[derive(Debug)]
pub struct Selected {
    pub what: String,
    pub cases: Vec<Case>,
}

/// An article's statistic of our own records, with half the width of its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub half: Option<f64>,
}

impl Articles {
    #[expect(clippy::expect_used, reason = "the file is compiled in, and a test reads it")]
    pub fn read() -> Self {
        serde_json::from_str(include_str!("../../articles.json")).expect("lab/articles.json")
    }

    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|one| one.name == name)
    }
}

impl Source {
    /// Of each cell the newest session that has it; the rounds that every case has.
    pub fn select(&self, material: &Material) -> Option<Selected> {
        self.what.iter().find_map(|what| {
            let cases = self.cases(material, what);
            (!cases.is_empty()).then(|| Selected { what: what.clone(), cases })
        })
    }

    fn wants(&self, cell: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| like(cell, pattern));
        (self.cells.is_empty() || any(&self.cells)) && !any(&self.not)
    }

    /// The cell that `cell` is compared with.
    fn base_cell<'a>(&'a self, cell: &'a str) -> Option<&'a str> {
        if self.pairs.is_empty() {
            return self.wants(cell).then_some(cell);
        }
        let pair = self.pairs.iter().find(|pair| like(cell, &pair[0]) && cell != pair[1]);
        pair.map(|pair| pair[1].as_str())
    }

    fn cases(&self, material: &Material, what: &str) -> Vec<Case> {
        type Rounds = BTreeMap<usize, f64>;
        let mut sessions: Vec<_> = material
            .sessions
            .iter()
            .filter(|session| session.scenario == self.experiment)
            .collect();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.started_unix_s));
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        let mut found: Vec<(&str, &str, &str, &Rounds, &Rounds)> = Vec::new();
        let mut values: BTreeMap<(&str, &str, &str), Rounds> = BTreeMap::new();
        let mut order: Vec<(&str, &str, &str)> = Vec::new();
        for one in &material.observations {
            if one.what == what && one.round > 0 {
                let key = (one.session.as_str(), one.cell.as_str(), one.side.as_str());
                let rounds = values.entry(key).or_insert_with(|| {
                    order.push(key);
                    Rounds::new()
                });
                rounds.insert(one.round, one.value);
            }
        }
        for session in sessions {
            let own = session.sides.first().map(|side| side.side.as_str()).unwrap_or_default();
            let base = self.base.as_deref().unwrap_or(own);
            let mut cells = BTreeSet::new();
            for (in_session, cell, side) in &order {
                let Some(base_cell) = self.base_cell(cell) else { continue };
                let itself = *side == base && base_cell == *cell;
                let wanted = *in_session == session.session && like(side, &self.side);
                if itself || !wanted || taken.contains(cell) {
                    continue;
                }
                // The control is no side of an article.
                if *side == "again" && self.side.contains('*') {
                    continue;
                }
                if let Some(of_base) = values.get(&(*in_session, base_cell, base)) {
                    let of_side = &values[&(*in_session, *cell, *side)];
                    found.push((in_session, cell, side, of_base, of_side));
                    cells.insert(*cell);
                }
            }
            taken.extend(cells);
        }
        let common = |rounds: &BTreeSet<usize>, of: &Rounds| {
            rounds.iter().copied().filter(|round| of.contains_key(round)).collect::<BTreeSet<_>>()
        };
        let mut rounds: BTreeSet<usize> =
            found.first().map(|one| one.3.keys().copied().collect()).unwrap_or_default();
        for (.., base, side) in &found {
            rounds = common(&common(&rounds, base), side);
        }
        if rounds.is_empty() {
            return Vec::new();
        }
        let of = |values: &Rounds| rounds.iter().map(|round| values[round]).collect();
        let case =
            |(session, cell, side, base, values): (&str, &str, &str, &Rounds, &Rounds)| Case {
                session: session.into(),
                cell: cell.into(),
                side: side.into(),
                base: of(base),
                values: of(values),
            };
        found.into_iter().map(case).collect()
    }
}

impl Selected {
    pub fn rounds(&self) -> usize {
        self.cases.first().map_or(0, |case| case.base.len())
    }

    /// The statistic of the means over all rounds, and its jackknife interval over the rounds.
    pub fn estimate(&self, statistic: Statistic) -> Option<Estimate> {
        let value = self.without(statistic, None)?;
        let counted =
            matches!(statistic, Statistic::ShareBelow | Statistic::ShareBelowWithinFences);
        let half = (!counted)
            .then(|| jackknife(self.rounds(), |left_out| self.without(statistic, left_out)))
            .flatten();
        Some(Estimate { value, half })
    }

    fn without(&self, statistic: Statistic, left_out: Option<usize>) -> Option<f64> {
        let keep = |values: &[f64]| -> Vec<f64> {
            let kept = values.iter().enumerate().filter(|(at, _)| Some(*at) != left_out);
            kept.map(|(_, value)| *value).collect()
        };
        let average = |values: &[f64]| mean(&keep(values));
        let within = |values: &[f64]| mean_within_fences(&keep(values)).map(|(mean, _)| mean);
        let means: Vec<(f64, f64)> = self
            .cases
            .iter()
            .map(|case| match statistic {
                Statistic::ShareBelowWithinFences => {
                    Some((within(&case.base)?, within(&case.values)?))
                }
                _ => Some((average(&case.base)?, average(&case.values)?)),
            })
            .collect::<Option<_>>()?;
        let of = |one: fn(f64, f64) -> f64| -> Vec<f64> {
            means.iter().map(|(base, side)| one(*base, *side)).collect()
        };
        let changes = of(|base, side| side / base - 1.0);
        let sum = |of: fn(&(f64, f64)) -> f64| means.iter().map(of).sum::<f64>();
        let (base, side) = (sum(|two| two.0), sum(|two| two.1));
        let value = match statistic {
            Statistic::Change => mean(&changes)?,
            Statistic::LeastChange => changes.iter().copied().reduce(f64::min)?,
            Statistic::LargestChange => changes.iter().copied().reduce(f64::max)?,
            Statistic::Less => -mean(&changes)?,
            Statistic::LargestLess => -changes.iter().copied().reduce(f64::min)?,
            Statistic::Slowness => mean(&of(|base, side| base / side - 1.0))?,
            Statistic::OfEncryptedTime => (side - base) / side,
            Statistic::OverPlainTime => (side - base) / base,
            Statistic::ShareBelow | Statistic::ShareBelowWithinFences => {
                changes.iter().filter(|change| **change < 0.0).count() as f64 / means.len() as f64
            }
        };
        value.is_finite().then_some(value)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(cases: &[(&[f64], &[f64])]) -> Selected {
        let case = |(base, values): &(&[f64], &[f64])| Case {
            session: "1".into(),
            cell: "cell".into(),
            side: "sealed".into(),
            base: base.to_vec(),
            values: values.to_vec(),
        };
        let cases = cases.iter().map(case).collect();
        Selected { what: "elapsed_s".into(), cases }
    }

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

    /// Article 4: 1:27 h to 2:22 h is printed as 38.8 %, 0:49 h to 0:59 h as 16.9 %: of the encrypted
    /// time. Over the plain time they are 63.2 and 20.4 %.
    #[test]
    fn article_4s_own_numbers_come_out_by_its_own_formula() {
        let slow = selected(&[(&[87.0, 87.0], &[142.0, 142.0])]);
        let fast = selected(&[(&[49.0, 49.0], &[59.0, 59.0])]);
        let of = |selected: &Selected, statistic| {
            (selected.estimate(statistic).unwrap().value * 1000.0).round() / 10.0
        };
        assert_eq!(of(&slow, Statistic::OfEncryptedTime), 38.7);
        assert_eq!(of(&fast, Statistic::OfEncryptedTime), 16.9);
        assert_eq!(of(&slow, Statistic::OverPlainTime), 63.2);
        assert_eq!(of(&fast, Statistic::OverPlainTime), 20.4);
    }

    #[test]
    fn statistics_are_of_means_over_the_runs() {
        let two = selected(&[(&[1.0, 3.0], &[2.0, 4.0]), (&[4.0, 4.0], &[3.0, 3.0])]);
        let of = |statistic| two.estimate(statistic).unwrap().value;
        assert_eq!(of(Statistic::Change), 0.125);
        assert_eq!((of(Statistic::LeastChange), of(Statistic::LargestChange)), (-0.25, 0.5));
        assert_eq!((of(Statistic::Less), of(Statistic::LargestLess)), (-0.125, 0.25));
        assert_eq!(of(Statistic::OverPlainTime), 0.0);
        assert_eq!((of(Statistic::ShareBelow), two.rounds()), (0.5, 2));
        assert!(
            (of(Statistic::Slowness) - (2.0 / 3.0 - 1.0 + 4.0 / 3.0 - 1.0) / 2.0).abs() < 1e-12
        );
        assert!(two.estimate(Statistic::Change).unwrap().half.is_some());
        assert_eq!(two.estimate(Statistic::ShareBelow).unwrap().half, None);
    }

    #[test]
    fn an_outlier_moves_only_the_mean_of_all() {
        let base = [1.0, 1.0, 1.1, 1.0, 1.0, 1.1];
        let cases = selected(&[(&base, &[0.9, 0.9, 0.91, 0.9, 0.9, 9.0])]);
        assert_eq!(cases.estimate(Statistic::ShareBelow).unwrap().value, 0.0);
        assert_eq!(cases.estimate(Statistic::ShareBelowWithinFences).unwrap().value, 1.0);
    }
}
