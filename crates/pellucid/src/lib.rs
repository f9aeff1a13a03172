//! Formats, ciphers and keys of Pellucid: bytes in, bytes out, no SQLite.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod algorithm;
pub mod certificate;
pub mod cipher;
pub mod derive;
pub mod error;
pub mod hash;
pub mod header;
pub mod journal;
pub mod keyring;
pub mod keys;
pub mod message;
pub mod nonce;
pub mod protector;
pub mod scan;
pub mod secret;
pub mod sector;
pub mod transition;
pub mod unit;
pub mod wal;

pub use algorithm::Algorithm;
pub use error::{Error, Result, Subject};
pub use secret::Dek;
