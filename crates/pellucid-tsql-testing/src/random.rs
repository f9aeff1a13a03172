//! Random numbers from a seed that a test prints.

/// xorshift64*: small, seeded, good enough.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// Draws the next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Draws one to `most` bytes.
    pub fn bytes(&mut self, most: u64) -> Vec<u8> {
        let length = 1 + self.number() % most;
        (0..length).map(|_| (self.number() >> 32) as u8).collect()
    }
}
