//! Backup media of the history, and what is exchanged in them.

use pellucid::certificate::CertificateRequest;

use crate::world::World;

/// A certificate for tests.
pub fn request() -> CertificateRequest {
    CertificateRequest { rsa_bits: 2048, ..CertificateRequest::new("second", 300) }
}

pub fn plain(_: &mut World) {}
pub fn first(_: &mut World) {}
pub fn second(_: &mut World) {}
