//! Figures: of each cell, quantity and side the ratio to the base, round by round.

use std::collections::BTreeMap;

use super::reading::Material;
use crate::record::Session;
use crate::statistics::{Interval, LogMean, Summary, NO_DIFFERENCE};

/// What more of a quantity means to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// Less is better.
    Time,
    /// More is better.
    Speed,
    /// Processor time: less is better.
    Effort,
    /// Bytes: less is better.
    Size,
    /// Told, not judged: pages, rows, shares of the machine.
    Told,
}

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    NoDifference,
    NotResolved,
    Worse,
    Better,
    /// One pair, or a quantity that is not judged.
    Told,
}

/// The values of one side in the rounds that both sides have, with the ratios to the base.
#[derive(Debug, Clone)]
pub struct Figure {
    pub session: String,
    pub scenario: String,
    pub cell: String,
    pub what: String,
    pub base: String,
    pub side: String,
    pub rounds: Vec<usize>,
    pub base_values: Vec<f64>,
    pub side_values: Vec<f64>,
    /// Runs whose round has no partner.
    pub unpaired: usize,
}

impl Sense {
    /// What the quantity means, by the words and the unit of its name.
    pub fn of(what: &str) -> Self {
        let words: Vec<&str> = what.split('_').collect();
        let unit = words.last().copied().unwrap_or_default();
        let has = |word: &str| words.contains(&word);
        match unit {
            _ if what.ends_with("_per_s") => Self::Speed,
            _ if has("cpu") => Self::Effort,
            "s" | "ms" | "us" | "ns" => Self::Time,
            "bytes" | "kib" | "mib" => Self::Size,
            _ => Self::Told,
        }
    }

    /// What a reader is told of this quantity when its interval says `word`.
    pub fn words(self, word: Word) -> &'static str {
        match (word, self) {
            (Word::NoDifference, _) => "no difference",
            (Word::NotResolved, _) => "not resolved",
            (Word::Told, _) => "not judged",
            (Word::Worse, Self::Time | Self::Speed) => "slower",
            (Word::Better, Self::Time | Self::Speed) => "faster",
            (Word::Worse, Self::Size) => "larger",
            (Word::Better, Self::Size) => "smaller",
            (Word::Worse, _) => "more",
            (Word::Better, _) => "less",
        }
    }
}

impl Word {
    /// Of an interval of ratios in which above 1 is worse.
    pub fn of(interval: &Interval) -> Self {
        if interval.low >= 1.0 / NO_DIFFERENCE && interval.high <= NO_DIFFERENCE {
            Self::NoDifference
        } else if (interval.low..=interval.high).contains(&1.0) {
            Self::NotResolved
        } else if interval.mean > 1.0 {
            Self::Worse
        } else {
            Self::Better
        }
    }
}

impl Figure {
    /// What more of its quantity means.
    pub fn sense(&self) -> Sense {
        Sense::of(&self.what)
    }

    /// Side over base, one for each round.
    pub fn ratios(&self) -> Vec<f64> {
        self.side_values.iter().zip(&self.base_values).map(|(side, base)| side / base).collect()
    }

    /// The mean of the log ratios; a single pair has none.
    pub fn log_mean(&self) -> Option<LogMean> {
        LogMean::of(&self.ratios())
    }

    /// The mean of the log ratios; a single pair has none.
    pub fn interval(&self) -> Option<Interval> {
        self.log_mean().map(|mean| mean.interval(1))
    }

    /// Median and range of the ratios.
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(&self.ratios())
    }

    /// Mean of the log ratios, also of a single pair.
    pub fn mean(&self) -> Option<f64> {
        let ratios = self.ratios();
        let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
        let mean = (logs / ratios.len() as f64).exp();
        (mean.is_finite() && mean > 0.0).then_some(mean)
    }

    /// The base's seconds, if they are so few that a share of them says little.
    pub fn short(&self) -> Option<f64> {
        const SECONDS: f64 = 0.05;
        let is_time = self.sense() == Sense::Time && self.what.ends_with("_s");
        let mean = self.base_values.iter().sum::<f64>() / self.base_values.len() as f64;
        (is_time && mean < SECONDS).then_some(mean)
    }

    /// The ratios as costs: of speeds turned over, so that above 1 is worse.
    pub fn cost(&self) -> Option<LogMean> {
        let mean = self.log_mean()?;
        Some(if self.sense() == Sense::Speed { mean.inverse() } else { mean })
    }

    /// The cost of each round.
    pub fn costs(&self) -> Vec<f64> {
        let turned = self.sense() == Sense::Speed;
        self.ratios().iter().map(|ratio| if turned { 1.0 / ratio } else { *ratio }).collect()
    }

    /// What its interval of costs says; nothing of a single pair, nor of what is not judged.
    pub fn word(&self) -> Word {
        match self.cost() {
            _ if self.sense() == Sense::Told => Word::Told,
            Some(cost) => Word::of(&cost.interval(1)),
            None => Word::Told,
        }
    }

    /// What a reader is told of it.
    pub fn words(&self) -> &'static str {
        match self.ratios().len() {
            _ if self.sense() == Sense::Told => "not judged",
            1 => "one pair, not resolved",
            _ => self.sense().words(self.word()),
        }
    }
}

/// The mean over `figures`, each with the same weight, of the ratios or costs that `of` gives. `None` if one has no mean.
///
/// Those of one session share its rounds; what does not share every round counts as independent.
pub fn mean_over(figures: &[&Figure], of: fn(&Figure) -> Vec<f64>) -> Option<LogMean> {
    let costs: Vec<Vec<f64>> = figures.iter().map(|figure| of(figure)).collect();
    let first = figures.first()?;
    let shared = |one: &&Figure| (&one.session, &one.rounds) == (&first.session, &first.rounds);
    if figures.iter().all(shared) {
        return LogMean::over_rounds(&costs);
    }
    let means = costs.iter().map(|ratios| LogMean::of(ratios)).collect::<Option<Vec<_>>>()?;
    LogMean::over(&means)
}

/// Of each side the value of each round.
type BySide<'a> = BTreeMap<&'a str, BTreeMap<usize, f64>>;

/// All figures of some material, in the order in which it was measured. The warm-up is in none.
pub fn figures(material: &Material) -> Vec<Figure> {
    material.sessions.iter().flat_map(|session| of_session(session, material)).collect()
}

fn of_session(session: &Session, material: &Material) -> Vec<Figure> {
    let Some(base) = session.sides.first().map(|side| side.side.clone()) else {
        return Vec::new();
    };
    // Cells and quantities in the order in which they first appear; values by side and round.
    let mut order: Vec<(&str, &str)> = Vec::new();
    let mut values: BTreeMap<(&str, &str), BySide<'_>> = BTreeMap::new();
    for one in &material.observations {
        if one.session != session.session || one.round == 0 || sampled(&one.what) {
            continue;
        }
        let key = (one.cell.as_str(), one.what.as_str());
        let of_key = values.entry(key).or_insert_with(|| {
            order.push(key);
            BTreeMap::new()
        });
        of_key.entry(&one.side).or_default().insert(one.round, one.value);
    }
    let none = BTreeMap::new();
    let mut figures = Vec::new();
    for key in order {
        let of_key = &values[&key];
        let of_base = of_key.get(base.as_str()).unwrap_or(&none);
        for side in session.sides.iter().skip(1) {
            let of_side = of_key.get(side.side.as_str()).unwrap_or(&none);
            let paired =
                of_base.iter().filter_map(|(round, a)| Some((*round, *a, *of_side.get(round)?)));
            let paired: Vec<(usize, f64, f64)> = paired.collect();
            if paired.is_empty() {
                continue;
            }
            figures.push(Figure {
                session: session.session.clone(),
                scenario: session.scenario.clone(),
                cell: key.0.into(),
                what: key.1.into(),
                base: base.clone(),
                side: side.side.clone(),
                rounds: paired.iter().map(|pair| pair.0).collect(),
                base_values: paired.iter().map(|pair| pair.1).collect(),
                side_values: paired.iter().map(|pair| pair.2).collect(),
                unpaired: of_base.len() + of_side.len() - 2 * paired.len(),
            });
        }
    }
    figures
}

/// True for one of a series of samples through a run, by the second: they are in the records, and
/// no figure by themselves.
pub fn sampled(what: &str) -> bool {
    what.contains("_second_")
}

/// True if `name` is of the form `pattern`, in which each `*` stands for anything; without regard to
/// the case of letters.
pub fn like(name: &str, pattern: &str) -> bool {
    last_star(name, pattern).is_some()
}

/// What the last `*` of `pattern` stands for if `name` is of that form: nothing, without a `*`.
pub fn last_star<'a>(name: &'a str, pattern: &str) -> Option<&'a str> {
    let (lower, pattern) = (name.to_ascii_lowercase(), pattern.to_ascii_lowercase());
    let mut parts = pattern.split('*');
    let mut rest = lower.strip_prefix(parts.next().unwrap_or_default())?;
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            rest = &rest[rest.find(middle)? + middle.len()..];
        }
    }
    // Letters of ASCII are as long in both cases.
    let start = name.len() - rest.len();
    match last {
        None => rest.is_empty().then_some(""),
        Some(end) => rest.strip_suffix(end).and_then(|found| name.get(start..start + found.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(what: &str, base: &[f64], side: &[f64]) -> Figure {
        Figure {
            session: "1".into(),
            scenario: "hummer".into(),
            cell: "4/3/3".into(),
            what: what.into(),
            base: "plain".into(),
            side: "sealed".into(),
            rounds: (1..=base.len()).collect(),
            base_values: base.to_vec(),
            side_values: side.to_vec(),
            unpaired: 0,
        }
    }

    #[test]
    fn a_quantity_says_what_is_better() {
        for (what, sense) in [
            ("elapsed_s", Sense::Time),
            ("read_p99_us", Sense::Time),
            ("ops_per_s", Sense::Speed),
            ("mb_per_s", Sense::Speed),
            ("cpu_s", Sense::Effort),
            ("percent_cpu", Sense::Effort),
            ("cpu_us_per_op", Sense::Effort),
            ("media_bytes", Sense::Size),
            ("pages", Sense::Told),
            ("others_share", Sense::Told),
        ] {
            assert_eq!(Sense::of(what), sense, "{what}");
        }
    }

    #[test]
    fn the_words_follow_the_whole_interval() {
        let one = [1.0; 5];
        let words = |side: &[f64]| figure("elapsed_s", &one, side).words();
        assert_eq!(words(&[1.001, 0.999, 1.0, 1.002, 0.998]), "no difference");
        // Resolved, and within two percent.
        assert_eq!(words(&[1.010, 1.011, 1.009, 1.010, 1.010]), "no difference");
        assert_eq!(words(&[1.1, 0.9, 1.0, 1.05, 0.95]), "not resolved");
        assert_eq!(words(&[1.1, 1.11, 1.09, 1.1, 1.1]), "slower");
        assert_eq!(words(&[0.9, 0.91, 0.89, 0.9, 0.9]), "faster");
        assert_eq!(words(&[2.0]), "one pair, not resolved");
        // A speed is the other way round.
        assert_eq!(figure("ops_per_s", &one, &[0.9, 0.91, 0.89, 0.9, 0.9]).words(), "slower");
        assert_eq!(figure("media_bytes", &one, &[1.1, 1.1, 1.1, 1.1, 1.1]).words(), "larger");
        assert_eq!(figure("pages", &one, &[1.1, 1.1, 1.1, 1.1, 1.1]).words(), "not judged");
    }

    #[test]
    fn nothing_that_is_not_positive_gets_an_interval() {
        let zero = figure("cpu_s", &[0.0, 0.0], &[1.0, 1.0]);
        assert_eq!((zero.interval(), zero.mean(), zero.word()), (None, None, Word::Told));
    }

    #[test]
    fn a_bad_minute_that_several_cells_share_is_no_more_certain_for_that() {
        let cell = |side: &[f64]| figure("elapsed_s", &[1.0; 4], side);
        let (one, other) = (cell(&[1.0, 1.2, 1.0, 1.1]), cell(&[1.0, 1.2, 1.0, 1.1]));
        let alone = one.interval().unwrap();
        let together = mean_over(&[&one, &other], Figure::costs).unwrap().interval(1);
        assert!(
            (together.low - alone.low).abs() < 1e-12 && (together.high - alone.high).abs() < 1e-12
        );
        // Of another session they are independent, and what one says the other makes more certain.
        let other = Figure { session: "2".into(), ..other };
        let apart = mean_over(&[&one, &other], Figure::costs).unwrap().interval(1);
        assert!((apart.mean - alone.mean).abs() < 1e-12 && apart.high < alone.high, "{apart:?}");
        let speed = figure("ops_per_s", &[2.0; 4], &[1.0; 4]);
        assert_eq!(mean_over(&[&speed], Figure::costs).unwrap().interval(1).mean, 2.0);
        assert_eq!(mean_over(&[&speed, &cell(&[1.0, 0.0])], Figure::costs), None);
        assert_eq!(mean_over(&[], Figure::costs), None);
    }

    #[test]
    fn patterns() {
        for (name, pattern, expected) in [
            ("CHECKDB", "CHECKDB", true),
            ("CHECKDB AES_128", "CHECKDB", false),
            ("CHECKDB AES_128", "CHECKDB *", true),
            ("NO_COMPRESSION, a to b", "COMPRESSION*", false),
            ("NO_COMPRESSION, a to b", "*COMPRESSION*", true),
            ("restore, NO_COMPRESSION", "RESTORE*", true),
            ("busy-4/3/3", "busy-*-*", false),
            ("busy-4/3/3-FULL", "busy-*-*", true),
            ("4/3/3 with DELAY", "*with*DELAY", true),
            ("4/3/3", "*with*DELAY", false),
            ("aa", "a*a", true),
            ("a", "a*a", false),
            ("x", "*", true),
        ] {
            assert_eq!(like(name, pattern), expected, "{name} {pattern}");
        }
        assert_eq!(last_star("CHECKDB AES_128, 256 MiB", "checkdb *, *"), Some("256 MiB"));
        assert_eq!(last_star("CHECKDB AES_128", "CHECKDB *_128"), Some("AES"));
        assert_eq!(last_star("CHECKDB", "CHECKDB"), Some(""));
    }
}
