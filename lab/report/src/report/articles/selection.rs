//! The numbers of our records beside an article's, and the article's statistic of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{wanted, Source, Statistic};
use crate::record::Session;
use crate::report::figures::{last_star, like};
use crate::report::reading::Material;
use crate::statistics::{jackknife, mean, mean_within_fences};

/// Values of one case by round: a cell and a side.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub session: String,
    pub cell: String,
    pub side: String,
    /// The rounds that both have.
    pub rounds: Vec<usize>,
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

impl Source {
    /// Of each cell the newest session that has it, of those on the machine and at the scale of the newest; of each case the
    /// rounds that both of its sides have.
    pub fn select(&self, material: &Material) -> Option<Selected> {
        self.each_quantity(material).next()
    }

    /// The statistic of the first quantity that has one: a history in whole milliseconds says that a quick backup took
    /// none, and nothing is a multiple of that.
    pub fn estimate(
        &self,
        material: &Material,
        statistic: Statistic,
    ) -> Option<(Selected, Estimate)> {
        self.each_quantity(material)
            .find_map(|selected| selected.estimate(statistic).map(|estimate| (selected, estimate)))
    }

    fn each_quantity<'a>(&'a self, material: &'a Material) -> impl Iterator<Item = Selected> + 'a {
        let cases =
            |what: &String| Selected { what: what.clone(), cases: self.cases(material, what) };
        self.what.iter().map(cases).filter(|selected| !selected.cases.is_empty())
    }

    fn wants(&self, cell: &str) -> bool {
        wanted(cell, &self.cells, &self.not)
    }

    /// The cell that `cell` is compared with.
    fn base_cell(&self, cell: &str) -> Option<String> {
        if self.pairs.is_empty() {
            return self.wants(cell).then(|| cell.into());
        }
        let base =
            |[first, second]: &[String; 2]| Some(second.replacen('*', last_star(cell, first)?, 1));
        self.pairs.iter().find_map(base).filter(|base| base != cell)
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
        let mut like_first: Option<String> = None;
        for session in sessions {
            if like_first.as_ref().is_some_and(|first| *first != place(session)) {
                continue;
            }
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
                let key = order.iter().find(|key| **key == (*in_session, &*base_cell, base));
                if let Some(of_base) = key.and_then(|key| values.get(key)) {
                    let of_side = &values[&(*in_session, *cell, *side)];
                    found.push((in_session, cell, side, of_base, of_side));
                    cells.insert(*cell);
                }
            }
            if !cells.is_empty() {
                like_first.get_or_insert_with(|| place(session));
            }
            taken.extend(cells);
        }
        let longest = found.iter().filter_map(|one| mib(one.1)).reduce(f64::max);
        found.retain(|one| !self.largest || mib(one.1) == longest);
        let case = |(session, cell, side, base, values): (&str, &str, &str, &Rounds, &Rounds)| {
            let rounds: Vec<usize> =
                base.keys().copied().filter(|round| values.contains_key(round)).collect();
            let of = |values: &Rounds| rounds.iter().map(|round| values[round]).collect();
            Case {
                session: session.into(),
                cell: cell.into(),
                side: side.into(),
                base: of(base),
                values: of(values),
                rounds,
            }
        };
        found.into_iter().map(case).filter(|case| !case.rounds.is_empty()).collect()
    }
}

/// What sessions have in common whose cells may make one number.
fn place(session: &Session) -> String {
    let scale = session.parameters.get("scale").and_then(serde_json::Value::as_f64).unwrap_or(1.0);
    format!("{}, {scale}", session.machine.identity()[0])
}

/// Of `encrypt AES_128, 32 MiB` the 32.
fn mib(cell: &str) -> Option<f64> {
    cell.rsplit_once(", ")?.1.strip_suffix(" MiB")?.parse().ok()
}

impl Case {
    /// Whether the side has the lower mean, of all runs and of those without outliers: of the articles' surprising cases.
    pub fn below(&self) -> [bool; 2] {
        let lower = |of: fn(&[f64]) -> Option<f64>| of(&self.values) < of(&self.base);
        [lower(mean), lower(|values| Some(mean_within_fences(values)?.0))]
    }
}

impl Selected {
    /// `10`, or `1 to 10` if an interrupted cell has fewer than the others.
    pub fn rounds(&self) -> String {
        let counts = || self.cases.iter().map(|case| case.rounds.len());
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        if least == most {
            most.to_string()
        } else {
            format!("{least} to {most}")
        }
    }

    /// The statistic of the means over all rounds, and its jackknife interval over the rounds.
    pub fn estimate(&self, statistic: Statistic) -> Option<Estimate> {
        let value = self.without(statistic, None)?;
        let counted =
            matches!(statistic, Statistic::ShareBelow | Statistic::ShareBelowWithinFences);
        let rounds: BTreeSet<usize> =
            self.cases.iter().flat_map(|case| case.rounds.iter().copied()).collect();
        let rounds = Vec::from_iter(rounds);
        let without = |left_out: Option<usize>| {
            self.without(statistic, left_out.and_then(|at| rounds.get(at).copied()))
        };
        let half = (!counted).then(|| jackknife(rounds.len(), without)).flatten();
        Some(Estimate { value, half })
    }

    fn without(&self, statistic: Statistic, left_out: Option<usize>) -> Option<f64> {
        let keep = |case: &Case, values: &[f64]| -> Vec<f64> {
            let kept =
                case.rounds.iter().zip(values).filter(|(round, _)| Some(**round) != left_out);
            kept.map(|(_, value)| *value).collect()
        };
        let average = |case: &Case, values: &[f64]| mean(&keep(case, values));
        let within = |case: &Case, values: &[f64]| {
            mean_within_fences(&keep(case, values)).map(|(mean, _)| mean)
        };
        let means: Vec<(f64, f64)> = self
            .cases
            .iter()
            .map(|case| match statistic {
                Statistic::ShareBelowWithinFences => {
                    Some((within(case, &case.base)?, within(case, &case.values)?))
                }
                _ => Some((average(case, &case.base)?, average(case, &case.values)?)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(cases: &[(&[f64], &[f64])]) -> Selected {
        let case = |(base, values): &(&[f64], &[f64])| Case {
            session: "1".into(),
            cell: "cell".into(),
            side: "sealed".into(),
            rounds: (1..=base.len()).collect(),
            base: base.to_vec(),
            values: values.to_vec(),
        };
        let cases = cases.iter().map(case).collect();
        Selected { what: "elapsed_s".into(), cases }
    }

    /// A backup of less than a millisecond takes none by msdb, beside which nothing has a ratio.
    #[test]
    fn the_next_quantity_is_taken_where_the_first_has_no_ratio() {
        let source: Source = serde_json::from_value(serde_json::json!({
            "experiment": "backups", "what": ["msdb_s", "elapsed_s"], "side": "sealed", "base": "plain",
        }))
        .unwrap();
        let mut session = crate::verdict::tests::session("1", None);
        session.scenario = "backups".into();
        let observed = |side: &str, what: &str, value| crate::record::Observation {
            session: "1".into(),
            cell: "backup".into(),
            round: 1,
            place: 0,
            side: side.into(),
            what: what.into(),
            value,
        };
        let observations = vec![
            observed("plain", "msdb_s", 0.0),
            observed("sealed", "msdb_s", 0.001),
            observed("plain", "elapsed_s", 0.5),
            observed("sealed", "elapsed_s", 0.75),
        ];
        let material = Material { sessions: vec![session], observations, ..Material::default() };
        assert_eq!(source.select(&material).unwrap().what, "msdb_s");
        let (selected, estimate) = source.estimate(&material, Statistic::Change).unwrap();
        assert_eq!((selected.what.as_str(), estimate.value), ("elapsed_s", 0.5));
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
        assert_eq!((of(Statistic::ShareBelow), two.rounds().as_str()), (0.5, "2"));
        assert!(
            (of(Statistic::Slowness) - (2.0 / 3.0 - 1.0 + 4.0 / 3.0 - 1.0) / 2.0).abs() < 1e-12
        );
        assert!(two.estimate(Statistic::Change).unwrap().half.is_some());
        assert_eq!(two.estimate(Statistic::ShareBelow).unwrap().half, None);
    }

    #[test]
    fn an_interrupted_case_leaves_the_others_their_rounds() {
        let mut three = selected(&[
            (&[1.0, 1.0, 1.0, 1.0], &[1.1, 1.2, 1.1, 1.2]),
            (&[1.0, 1.0, 1.0, 1.0], &[1.3, 1.4, 1.3, 1.4]),
            (&[1.0, 1.0], &[1.5, 1.5]),
        ]);
        let estimate = three.estimate(Statistic::Change).unwrap();
        assert!((estimate.value - (0.15 + 0.35 + 0.5) / 3.0).abs() < 1e-12);
        assert!(estimate.half.is_some());
        assert_eq!(three.rounds(), "2 to 4");
        three.cases.pop();
        assert_eq!(three.rounds(), "4");
        assert_eq!(mib("CHECKDB PHYSICAL_ONLY plain, 25.6 MiB"), Some(25.6));
        assert_eq!(mib("CHECKDB"), None);
    }

    #[test]
    fn an_outlier_moves_only_the_mean_of_all() {
        let base = [1.0, 1.0, 1.1, 1.0, 1.0, 1.1];
        let cases = selected(&[(&base, &[0.9, 0.9, 0.91, 0.9, 0.9, 9.0])]);
        assert_eq!(cases.estimate(Statistic::ShareBelow).unwrap().value, 0.0);
        assert_eq!(cases.estimate(Statistic::ShareBelowWithinFences).unwrap().value, 1.0);
    }
}
