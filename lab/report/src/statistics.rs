//! Order statistics of a handful of paired runs, and intervals of the mean of log ratios.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

/// Of every interval that is not corrected for a number of cells.
pub const CONFIDENCE: f64 = 0.95;
/// An interval of 95 % corrected for so many cells is one of 99 %.
pub const CELLS_OF_99_PERCENT: usize = 5;
/// An interval of ratios within this factor either way says: no difference.
pub const NO_DIFFERENCE: f64 = 1.02;

/// Five numbers of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub samples: usize,
    pub min: f64,
    pub lower_quartile: f64,
    pub median: f64,
    pub upper_quartile: f64,
    pub max: f64,
}

impl Summary {
    /// The five numbers of `sample`, or `None` if it is empty or holds something not finite.
    pub fn of(sample: &[f64]) -> Option<Self> {
        if sample.is_empty() || sample.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            samples: sorted.len(),
            min: sorted[0],
            lower_quartile: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            upper_quartile: quantile(&sorted, 0.75),
            max: sorted[sorted.len() - 1],
        })
    }
}

/// The mean of the logarithms of some ratios, with what its interval follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogMean {
    mean: f64,
    /// Of the mean, not of one ratio.
    variance: f64,
    degrees: f64,
}

/// A geometric mean of ratios with the interval that holds the true one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    /// Probability, 0 to 1.
    pub confidence: f64,
}

impl LogMean {
    /// `None` for fewer than two ratios or one that is not positive.
    pub fn of(ratios: &[f64]) -> Option<Self> {
        if ratios.len() < 2 || ratios.iter().any(|ratio| !ratio.is_finite() || *ratio <= 0.0) {
            return None;
        }
        let n = ratios.len() as f64;
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / n;
        let squares: f64 = ratios.iter().map(|ratio| (ratio.ln() - mean).powi(2)).sum();
        Some(Self { mean, variance: squares / (n - 1.0) / n, degrees: n - 1.0 })
    }

    /// The mean of independent means, each with the same weight: the geometric mean over cells.
    /// Its degrees of freedom are those of Satterthwaite (Biometrics Bulletin 2, 1946). `None` of
    /// nothing.
    pub fn over(means: &[Self]) -> Option<Self> {
        let n = means.len() as f64;
        let sum = |of: fn(&Self) -> f64| means.iter().map(of).sum::<f64>();
        let variance = sum(|mean| mean.variance);
        let below = sum(|mean| mean.variance.powi(2) / mean.degrees);
        // Without any spread there is nothing to weigh.
        let degrees = if below > 0.0 { variance.powi(2) / below } else { sum(|m| m.degrees) };
        (n > 0.0).then(|| Self { mean: sum(|m| m.mean) / n, variance: variance / (n * n), degrees })
    }

    /// The mean of what was measured in the same rounds, each of `cells` with the same weight. A bad minute may be in all of
    /// them: each round gives one number, and the interval is of those. `None` unless all have the same number of ratios.
    pub fn over_rounds(cells: &[Vec<f64>]) -> Option<Self> {
        let rounds = cells.first()?.len();
        if cells.iter().any(|ratios| ratios.len() != rounds || Self::of(ratios).is_none()) {
            return None;
        }
        let of_round = |round: usize| {
            let logs: f64 = cells.iter().map(|ratios| ratios[round].ln()).sum();
            (logs / cells.len() as f64).exp()
        };
        Self::of(&(0..rounds).map(of_round).collect::<Vec<_>>())
    }

    /// Of `self` over `other`, measured apart from each other: degrees of freedom are Welch's
    /// (Biometrika 34, 1947).
    pub fn minus(&self, other: &Self) -> Self {
        let variance = self.variance + other.variance;
        let below = self.variance.powi(2) / self.degrees + other.variance.powi(2) / other.degrees;
        let degrees =
            if below > 0.0 { variance.powi(2) / below } else { self.degrees + other.degrees };
        Self { mean: self.mean - other.mean, variance, degrees }
    }

    /// Of the ratios turned over: times of speeds.
    pub fn inverse(&self) -> Self {
        Self { mean: -self.mean, ..*self }
    }

    /// Student's t around the mean; with `cells` above 1 corrected for them (Bonferroni), so that
    /// all their intervals hold at once with the same confidence.
    pub fn interval(&self, cells: usize) -> Interval {
        let miss = (1.0 - CONFIDENCE) / cells.max(1) as f64;
        let half = student_t(self.degrees, 1.0 - miss / 2.0) * self.variance.sqrt();
        Interval {
            mean: self.mean.exp(),
            low: (self.mean - half).exp(),
            high: (self.mean + half).exp(),
            confidence: 1.0 - miss,
        }
    }
}

impl Interval {
    /// Half its width as a factor above 1: 1.05 is +-5 %.
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt()
    }
}

/// Half the width of the interval around an estimate, by leaving out one of its `n` rounds at a time
/// (Tukey's jackknife; Miller, Biometrika 61, 1974). `None` for fewer than two rounds, or where an
/// estimate is not to be had without one of them.
pub fn jackknife(n: usize, estimate: impl Fn(Option<usize>) -> Option<f64>) -> Option<f64> {
    if n < 2 {
        return None;
    }
    let without: Vec<f64> =
        (0..n).map(|left_out| estimate(Some(left_out))).collect::<Option<_>>()?;
    let (count, degrees) = (n as f64, (n - 1) as f64);
    let mean = without.iter().sum::<f64>() / count;
    let squares: f64 = without.iter().map(|one| (one - mean).powi(2)).sum();
    let half = student_t(degrees, 0.5 + CONFIDENCE / 2.0) * (squares * degrees / count).sqrt();
    half.is_finite().then_some(half)
}

/// The mean of what lies within one and a half interquartile ranges of the quartiles (Tukey's
/// fences), and how many lie outside. Shown beside the mean of all, never instead of it.
pub fn mean_within_fences(sample: &[f64]) -> Option<(f64, usize)> {
    let summary = Summary::of(sample)?;
    let reach = 1.5 * (summary.upper_quartile - summary.lower_quartile);
    let (low, high) = (summary.lower_quartile - reach, summary.upper_quartile + reach);
    let within: Vec<f64> =
        sample.iter().copied().filter(|value| (low..=high).contains(value)).collect();
    Some((within.iter().sum::<f64>() / within.len() as f64, sample.len() - within.len()))
}

/// The point below which Student's t lies with this probability.
fn student_t(degrees: f64, probability: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

/// Linear interpolation between the closest ranks (Hyndman and Fan's type 7).
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Probability that of `n` things that happen by themselves with probability `p` at least `k` do.
pub fn at_least(k: usize, n: usize, p: f64) -> f64 {
    let Some(below) = k.checked_sub(1) else { return 1.0 };
    Binomial::new(p, n as u64).map_or(1.0, |happened| happened.sf(below as u64))
}

/// `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Of a sample; `None` of fewer than two.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_of_a_known_sample() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.min, summary.max, summary.samples), (1.0, 4.0, 4));
        // R: quantile(1:4) -> 1.75 2.50 3.25
        assert_eq!(
            (summary.lower_quartile, summary.median, summary.upper_quartile),
            (1.75, 2.5, 3.25)
        );
    }

    #[test]
    fn one_outlier_moves_the_range_and_not_the_median() {
        let calm = Summary::of(&[0.98, 0.99, 1.0, 1.01, 1.02]).unwrap();
        let noisy = Summary::of(&[0.98, 0.99, 1.0, 1.01, 9.0]).unwrap();
        assert_eq!(calm.median, noisy.median);
        assert_eq!(noisy.max, 9.0);
    }

    #[test]
    fn no_summary_of_nothing_or_of_what_is_not_a_number() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn one_sample_is_all_five_numbers() {
        let summary = Summary::of(&[2.0]).unwrap();
        assert_eq!((summary.min, summary.median, summary.max), (2.0, 2.0, 2.0));
    }

    #[test]
    fn student_t_is_the_tables() {
        // NIST/SEMATECH e-Handbook, 1.3.6.7.2, and for 0.999 the same table's last column.
        for (degrees, probability, expected) in [
            (1.0, 0.975, 12.706),
            (6.0, 0.975, 2.447),
            (9.0, 0.975, 2.262),
            (9.0, 0.999, 4.297),
            (30.0, 0.975, 2.042),
            (100.0, 0.95, 1.660),
        ] {
            let found = student_t(degrees, probability);
            assert!((found - expected).abs() < 6e-4, "{degrees} {probability}: {found}");
        }
    }

    #[test]
    fn the_mean_treats_twice_and_half_alike() {
        let interval = LogMean::of(&[0.5, 2.0]).unwrap().interval(1);
        assert!((interval.mean - 1.0).abs() < 1e-12, "{interval:?}");
        assert!((interval.low * interval.high - 1.0).abs() < 1e-9, "{interval:?}");
        // By hand: mean log -0.0025, standard deviation 0.0793, t 2.776.
        let interval = LogMean::of(&[0.9, 1.0, 1.1, 1.05, 0.95]).unwrap().interval(1);
        assert!((interval.low - 0.9039).abs() < 5e-4, "{interval:?}");
        assert!((interval.high - 1.1007).abs() < 5e-4, "{interval:?}");
        assert_eq!(LogMean::of(&[1.0]), None);
        assert_eq!(LogMean::of(&[1.0, 0.0]), None);
    }

    #[test]
    fn a_difference_of_two_means_is_welchs() {
        let (a, b) =
            (LogMean::of(&[1.1, 1.2, 1.3]).unwrap(), LogMean::of(&[1.0, 1.1, 1.0]).unwrap());
        let difference = a.minus(&b);
        assert!((difference.mean - (a.mean - b.mean)).abs() < 1e-12);
        assert!((difference.variance - (a.variance + b.variance)).abs() < 1e-15);
        assert!(difference.degrees > 2.0 && difference.degrees <= 4.0, "{difference:?}");
        let (turned, straight) = (a.inverse().interval(1), a.interval(1));
        assert!((turned.mean - 1.0 / straight.mean).abs() < 1e-12);
        assert!((turned.low - 1.0 / straight.high).abs() < 1e-12);
    }

    #[test]
    fn the_jackknife_of_a_mean_is_students_t() {
        // For a mean both are the same: mean 3, standard error 0.7071, t 2.776.
        let sample = [1.0, 2.0, 3.0, 4.0, 5.0];
        let half = jackknife(5, |left_out| {
            let kept = sample.iter().enumerate().filter(|(at, _)| Some(*at) != left_out);
            Some(kept.map(|(_, value)| value).sum::<f64>() / 4.0)
        });
        assert!((half.unwrap() - 1.9632).abs() < 1e-3, "{half:?}");
        assert_eq!(jackknife(1, |_| Some(1.0)), None);
    }

    #[test]
    fn the_mean_within_fences_leaves_out_what_is_far_and_counts_it() {
        let (mean, outside) = mean_within_fences(&[1.0, 1.0, 2.0, 2.0, 90.0]).unwrap();
        assert_eq!((mean, outside), (1.5, 1));
        assert_eq!(mean_within_fences(&[1.0, 2.0]), Some((1.5, 0)));
        assert_eq!(mean_within_fences(&[]), None);
    }

    #[test]
    fn more_cells_make_each_interval_wider() {
        let mean = LogMean::of(&[0.9, 1.0, 1.1, 1.05, 0.95]).unwrap();
        let (one, all) = (mean.interval(1), mean.interval(24));
        assert!(all.low < one.low && all.high > one.high && all.mean == one.mean);
        assert!((all.confidence - (1.0 - 0.05 / 24.0)).abs() < 1e-12);
    }

    #[test]
    fn a_mean_over_equal_cells_has_their_mean_and_a_narrower_interval() {
        let cell = LogMean::of(&[0.90, 0.92, 0.94]).unwrap();
        let (one, four) = (cell.interval(1), LogMean::over(&[cell; 4]).unwrap());
        assert!((four.mean - cell.mean).abs() < 1e-12);
        assert!((four.degrees - 8.0).abs() < 1e-9, "{four:?}");
        assert!((four.variance - cell.variance / 4.0).abs() < 1e-12);
        assert!(four.interval(1).half_width() < one.half_width());
        assert_eq!(LogMean::over(&[]), None);
        let still = LogMean::of(&[1.0, 1.0]).unwrap();
        assert_eq!(LogMean::over(&[still, still]).unwrap().interval(1).half_width(), 1.0);
    }

    #[test]
    fn mean_and_deviation_are_those_of_a_sample() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(deviation(&[1.0, 2.0, 6.0]), Some(7.0_f64.sqrt()));
        assert_eq!((mean(&[]), deviation(&[1.0])), (None, None));
    }

    #[test]
    fn chance_has_its_share() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-4;
        assert!(near(at_least(1, 16, 0.05), 0.5599) && near(at_least(3, 16, 0.05), 0.0429));
        assert_eq!((at_least(0, 5, 0.05), at_least(6, 5, 0.05)), (1.0, 0.0));
    }
}
