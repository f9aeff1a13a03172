//! Formats, ciphers and keys of Pellucid: bytes in, bytes out. Opens no file, reads no environment, knows no SQLite.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod algorithm;
pub mod certificate;
pub mod cipher;
pub mod clock;
pub mod derive;
pub mod error;
pub mod facts;
mod fields;
pub mod flags;
pub mod hash;
pub mod header;
pub mod journal;
pub mod keys;
pub mod media;
pub mod message;
pub mod nonce;
pub mod protector;
#[cfg(feature = "sabotage")]
pub mod sabotage;
pub mod scan;
pub mod secret;
pub mod sector;
pub mod sqlite;
pub mod transition;
pub mod unit;
pub mod wal;

pub use algorithm::Algorithm;
pub use error::{Error, Result, Subject};
pub use secret::Dek;
