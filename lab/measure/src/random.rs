//! SplitMix64: a small generator whose sequence is the same in every version of the lab.
//!
//! For workloads only; keys come from the operating system. Steele, Lea, Flood: "Fast splittable
//! pseudorandom number generators", OOPSLA 2014; constants as in its reference code.

/// A generator; equal seeds give equal sequences.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator for one use, named by numbers such as seed, round and worker.
    pub fn of(parts: &[u64]) -> Self {
        let mut random = Self(0);
        for part in parts {
            random.0 ^= *part;
            random.0 = random.draw();
        }
        random
    }

    /// Draws the next number of the sequence.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..limit`; 0 if `limit` is 0. The bias of 2^-64 x limit is of no account here.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(limit)) >> 64) as u64
    }

    /// A number in `1..=last`.
    pub fn id(&mut self, last: u64) -> u64 {
        self.below(last) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // Reference values of splitmix64.c for seed 1234567.
        let mut random = Random(1_234_567);
        assert_eq!(random.draw(), 6_457_827_717_110_365_317);
        assert_eq!(random.draw(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut random = Random::of(&[1, 2]);
        let mut seen = [0; 10];
        (0..10_000).for_each(|_| seen[random.below(10) as usize] += 1);
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn names_differ_in_order_and_value() {
        let first = |parts: &[u64]| Random::of(parts).draw();
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_ne!(first(&[1, 2]), first(&[1, 3]));
        assert_eq!(first(&[1, 2]), first(&[1, 2]));
    }
}
