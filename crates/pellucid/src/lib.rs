//! Formats, ciphers and keys of Pellucid: bytes in, bytes out. Opens no file, reads no environment,
//! knows no SQLite.
//!
//! In the order in which to read it: [`unit`] is the sealed unit that every page, frame and record
//! is, [`keys`] chooses the generation's key and the nonce, [`cipher`] encrypts. [`header`],
//! [`sector`] and [`scan`] are the header region; [`protector`] wraps the DEK in the header.
//! [`wal`] and [`journal`] lay out SQLite's logs, [`lsn`] numbers their commits, [`memory_index`] the index of a log in memory, [`media`] backups, [`sqlite`] reads SQLite's own
//! pages. [`error`] and [`message`] have the words, [`shown`] keeps
//! other people's control characters out of them.
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
pub mod log_archive;
pub mod log_sector;
pub mod lsn;
pub mod media;
pub mod memory_index;
pub mod message;
pub mod nonce;
pub mod protector;
#[cfg(feature = "sabotage")]
pub mod sabotage;

/// Does something instead where a test has switched a rule off (`sabotage.rs`). The feature `sabotage` of this crate decides for all
/// that use it; no release has it.
#[cfg(feature = "sabotage")]
#[macro_export]
macro_rules! sabotage {
    ($rule:ident => $instead:expr) => {
        if $crate::sabotage::Sabotage::$rule.is_on() {
            $instead
        }
    };
}

/// Nothing, in whatever is not built for such tests.
#[cfg(not(feature = "sabotage"))]
#[macro_export]
macro_rules! sabotage {
    ($rule:ident => $instead:expr) => {};
}
pub mod scan;
pub mod secret;
pub mod sector;
pub mod shown;
pub mod sqlite;
pub mod transition;
pub mod unit;
pub mod wal;

pub use algorithm::Algorithm;
pub use error::{Error, Result, Subject};
pub use secret::Dek;
