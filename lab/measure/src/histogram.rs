//! A histogram of latencies, and percentiles of it.

use pellucid_lab_report::record::Latency;
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SparseHistogram {
    buckets: Vec<(usize, u64)>,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Counts one operation of this length.
    pub fn add(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.total += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// How many operations were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Adds what another histogram counted.
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

    /// The buckets that hold something, for another process.
    pub fn sparse(&self) -> SparseHistogram {
        let filled = self.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0);
        SparseHistogram { buckets: filled.collect(), max_ns: self.max_ns }
    }

    /// Middle of the bucket that holds the operation of rank ceil(q n), but no more than the longest; 0 if there is none.
    pub fn percentile_ns(&self, q: f64) -> f64 {
        let rank = ((q * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_ns(bucket).min(self.max_ns as f64);
            }
        }
        0.0
    }

    /// Percentiles and maximum, as records have them.
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
    fn no_percentile_is_longer_than_the_longest() {
        let mut histogram = Histogram::default();
        // The first of its bucket: the middle is half a bucket further.
        histogram.add(1 << 20);
        let latency = histogram.latency();
        assert_eq!((latency.p50_us, latency.p99_us), (latency.max_us, latency.max_us));
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
