//! Order statistics of a handful of paired runs, and a histogram of latencies.
//!
//! Nothing here assumes a distribution: with seven rounds there is none to be seen.

use serde::{Deserialize, Serialize};

/// Five numbers of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    pub samples: usize,
    pub min: f64,
    pub lower_quartile: f64,
    pub median: f64,
    pub upper_quartile: f64,
    pub max: f64,
    /// Probability that the true median lies within `min..max`, whatever the distribution, if the
    /// rounds are independent: 1 - 2^(1-n). 0.984 for 7 rounds.
    pub range_confidence: f64,
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
            range_confidence: 1.0 - 0.5_f64.powi(sorted.len() as i32 - 1),
        })
    }
}

/// Geometric mean of ratios with its 95 % interval: Student's t over the logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GeometricMean {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl GeometricMean {
    /// `None` for fewer than two ratios or one that is not positive.
    pub fn of(ratios: &[f64]) -> Option<Self> {
        if ratios.len() < 2 || ratios.iter().any(|ratio| !ratio.is_finite() || *ratio <= 0.0) {
            return None;
        }
        let n = ratios.len() as f64;
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / n;
        let squares: f64 = ratios.iter().map(|ratio| (ratio.ln() - mean).powi(2)).sum();
        let half = student_t_95(ratios.len() - 1) * (squares / (n - 1.0) / n).sqrt();
        Some(Self { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
    }
}

/// Two-sided 95 % point of Student's t (NIST/SEMATECH e-Handbook, 1.3.6.7.2); past the table the
/// first terms of its expansion around the normal's 1.960.
fn student_t_95(degrees: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    let past = 1.95996 + 2.37227 / degrees as f64 + 2.8225 / (degrees as f64).powi(2);
    TABLE.get(degrees.wrapping_sub(1)).copied().unwrap_or(past)
}

/// Linear interpolation between the closest ranks (Hyndman and Fan's type 7).
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

const SUB_BITS: u32 = 6;
const SUB_BUCKETS: u64 = 1 << SUB_BITS;
const BUCKETS: usize = ((64 - SUB_BITS as usize) + 1) << SUB_BITS;

/// Counts of latencies in buckets at most 1/64 of their value wide, from 1 ns to 2^64 ns.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max_ns: u64,
}

/// The non-empty buckets of a [`Histogram`], as worker processes hand it over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SparseHistogram {
    buckets: Vec<(usize, u64)>,
    max_ns: u64,
}

/// Percentiles of operations, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latency {
    pub operations: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max_ns: 0 }
    }
}

impl Histogram {
    pub fn add(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.total += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn count(&self) -> u64 {
        self.total
    }

    pub fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
        self.total += other.total;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Adds what another process counted; buckets that do not exist are left out.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        for &(bucket, count) in &other.buckets {
            if let Some(mine) = self.counts.get_mut(bucket) {
                *mine += count;
                self.total += count;
            }
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub fn sparse(&self) -> SparseHistogram {
        let filled = self.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0);
        SparseHistogram { buckets: filled.collect(), max_ns: self.max_ns }
    }

    /// Middle of the bucket that holds the operation of rank ceil(q n); 0 if there is none.
    pub fn percentile_ns(&self, q: f64) -> f64 {
        let rank = ((q * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_ns(bucket);
            }
        }
        0.0
    }

    pub fn latency(&self) -> Latency {
        Latency {
            operations: self.total,
            p50_us: self.percentile_ns(0.50) / 1e3,
            p99_us: self.percentile_ns(0.99) / 1e3,
            max_us: self.max_ns as f64 / 1e3,
        }
    }
}

fn bucket(ns: u64) -> usize {
    if ns < SUB_BUCKETS {
        return ns as usize;
    }
    let shift = 63 - ns.leading_zeros() - SUB_BITS;
    ((u64::from(shift) + 1) * SUB_BUCKETS + (ns >> shift) % SUB_BUCKETS) as usize
}

fn middle_ns(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < SUB_BUCKETS {
        return bucket as f64;
    }
    let shift = bucket / SUB_BUCKETS - 1;
    let width = (1_u64 << shift) as f64;
    (SUB_BUCKETS + bucket % SUB_BUCKETS) as f64 * width + (width - 1.0) / 2.0
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
        assert_eq!(summary.range_confidence, 0.875);
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
        assert_eq!(summary.range_confidence, 0.0);
    }

    #[test]
    fn geometric_mean_treats_twice_and_half_alike() {
        let mean = GeometricMean::of(&[0.5, 2.0]).unwrap();
        assert!((mean.mean - 1.0).abs() < 1e-12, "{mean:?}");
        assert!((mean.low * mean.high - 1.0).abs() < 1e-9, "{mean:?}");
        // By hand: mean log -0.0025, standard deviation 0.0793, t 2.776.
        let mean = GeometricMean::of(&[0.9, 1.0, 1.1, 1.05, 0.95]).unwrap();
        assert!((mean.low - 0.9039).abs() < 5e-4, "{mean:?}");
        assert!((mean.high - 1.1007).abs() < 5e-4, "{mean:?}");
        assert_eq!(GeometricMean::of(&[1.0]), None);
        assert_eq!(GeometricMean::of(&[1.0, 0.0]), None);
        assert!(
            (student_t_95(30) - 2.042).abs() < 0.002 && (student_t_95(21) - 2.080).abs() < 0.002
        );
    }

    #[test]
    fn buckets_are_in_order_without_gaps_and_at_most_a_64th_wide() {
        let mut last = 0;
        for ns in 0..100_000_u64 {
            let here = bucket(ns);
            assert!(here == last || here == last + 1, "{ns}");
            assert!((middle_ns(here) - ns as f64).abs() <= ns as f64 / 64.0, "{ns}");
            last = here;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_of_a_known_sample() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|us| histogram.add(us * 1000));
        let latency = histogram.latency();
        assert_eq!(latency.operations, 100);
        assert!((latency.p50_us - 50.0).abs() < 0.8, "{latency:?}");
        assert!((latency.p99_us - 99.0).abs() < 1.6, "{latency:?}");
        assert_eq!(latency.max_us, 100.0);
        assert_eq!(Histogram::default().latency().p99_us, 0.0);
    }

    #[test]
    fn merging_is_counting_together() {
        let (mut left, mut right, mut both) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for ns in [3, 70, 900, 12_345, 10_000_000] {
            left.add(ns);
            right.add(ns * 7);
            both.add(ns);
            both.add(ns * 7);
        }
        let mut merged = left.clone();
        merged.merge(&right);
        assert_eq!(merged.latency(), both.latency());
        left.merge_sparse(&right.sparse());
        assert_eq!(left.latency(), both.latency());
    }
}
