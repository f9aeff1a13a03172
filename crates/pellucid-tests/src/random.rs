//! Numbers that a seed brings back.

/// SplitMix64 (Steele, Lea, Flood 2014). What is drawn from it is each test's own.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

/// A number below which one can be drawn.
pub trait Bound: Copy {
    /// As `u64`.
    fn wide(self) -> u64;
    /// A number that is not larger than this.
    fn narrow(drawn: u64) -> Self;
}

impl Bound for u64 {
    fn wide(self) -> u64 {
        self
    }

    fn narrow(drawn: u64) -> Self {
        drawn
    }
}

impl Bound for usize {
    fn wide(self) -> u64 {
        self as u64
    }

    fn narrow(drawn: u64) -> Self {
        drawn as usize
    }
}

impl Random {
    /// The seed is `PELLUCID_TEST_SEED`, or 1; it is printed, and shown when the test fails.
    pub fn from_environment() -> Self {
        let seed = std::env::var("PELLUCID_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or(1);
        println!("PELLUCID_TEST_SEED={seed}");
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to below `end`.
    pub fn below<B: Bound>(&mut self, end: B) -> B {
        B::narrow(self.draw() % end.wide())
    }

    /// So many bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length.div_ceil(8)).flat_map(|_| self.draw().to_le_bytes()).take(length).collect()
    }

    /// An array of bytes.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes(N));
        bytes
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            let word = self.draw().to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100usize) < percent
    }

    /// One of `from`.
    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// One of `from`, each as often as its weight says.
    pub fn weighted<T: Copy>(&mut self, from: &[(usize, T)]) -> T {
        let sum: usize = from.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(sum);
        for (weight, item) in from {
            if at < *weight {
                return *item;
            }
            at -= weight;
        }
        unreachable!("a number below the sum of the weights falls on one of them")
    }
}
