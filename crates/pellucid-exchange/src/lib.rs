//! Certificates and private keys as other programs read and write them: PEM, DER, PKCS#8, PKCS#1, PFX and SQL Server's PVK.
//!
//! A crate of its own, so that `libpellucid.so`, which every program loads, has no reader of such files in it.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod companion;
mod export;
mod import;

pub use export::{to_encrypted_pem, to_pem, PEM};
pub use import::{import, FILE_BYTES_MOST};
