//! Formats, ciphers and keys of Pellucid, without SQLite. Files are opened by `keyring`, `backup` and `restore` and what
//! serves them; the environment and syslog are the keyring's.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod algorithm;
pub mod backup;
pub mod certificate;
pub mod cipher;
pub mod derive;
pub mod error;
pub mod facts;
mod fields;
pub mod flags;
pub mod hash;
pub mod header;
pub mod journal;
pub mod keyring;
pub mod keys;
pub mod media;
pub mod message;
pub mod nonce;
pub mod policy;
pub mod protector;
pub mod regular;
pub mod restore;
#[cfg(feature = "sabotage")]
pub mod sabotage;
pub mod scan;
pub mod secret;
pub mod sector;
pub mod sqlite;
pub mod transition;
pub mod trusted;
pub mod unit;
pub mod wal;

pub use algorithm::Algorithm;
pub use error::{Error, Result, Subject};
pub use secret::Dek;
