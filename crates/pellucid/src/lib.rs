//! Formats, ciphers and keys of Pellucid: bytes in, bytes out, no SQLite.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod algorithm;
pub mod cipher;
pub mod error;
pub mod secret;

pub use algorithm::Algorithm;
pub use error::{Error, Result, Subject};
pub use secret::Dek;
