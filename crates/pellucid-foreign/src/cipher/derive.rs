//! Keys from passphrases.

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2;

use crate::settings::{Hash, ITERATIONS_MOST};

/// Iterations that may be computed: not none, and not more than [`ITERATIONS_MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iterations(NonZeroU32);

impl Iterations {
    /// `None` if they are too many, or none.
    pub const fn new(count: u32) -> Option<Self> {
        match NonZeroU32::new(count) {
            Some(count) if count.get() <= ITERATIONS_MOST => Some(Self(count)),
            _ => None,
        }
    }
}

/// PBKDF2 with an HMAC (RFC 8018, 5.2).
pub fn pbkdf2(hash: Hash, count: Iterations, salt: &[u8], secret: &[u8], key: &mut [u8]) {
    let algorithm = match hash {
        Hash::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
        Hash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        Hash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
    };
    pbkdf2::derive(algorithm, count.0, salt, secret, key);
}
