//! SHA-256 over data in pieces, and hexadecimal digits.

use aws_lc_rs::digest;

/// A running SHA-256 (FIPS 180-4).
#[derive(Clone)]
pub struct Sha256(digest::Context);

impl std::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sha256(..)")
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl Sha256 {
    /// Starts a SHA-256 over no data.
    pub fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    /// Adds the next piece of the data.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// Returns the digest of all pieces.
    pub fn finish(self) -> [u8; 32] {
        let mut out = [0; 32];
        out.copy_from_slice(self.0.finish().as_ref());
        out
    }
}

/// Writes `bytes` in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
