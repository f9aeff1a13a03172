//! Databases that other encrypting SQLites made, for one purpose: to read them once and leave them.
//!
//! Bytes in, bytes out: it opens no file and links no SQLite. [`find::find`] finds the settings of a file by its first pages
//! and its secret, and returns an [`Opener`], which opens page by page. [`log`] finds the committed frames of a write-ahead
//! log. [`looks`] says what a file seems to be without any key.
//!
//! Nothing of a page is used before its tag matched, where its format has a tag. Formats without one say so
//! ([`Opener::is_authenticated`]).
//!
//! Sources: SQLCipher 4.20 (`sqlcipher.c`), SQLite3 Multiple Ciphers 2.3.5 (`cipher_*.c`).
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod cipher;
pub mod find;
pub mod log;
pub mod looks;
mod secret;
pub mod settings;

pub use cipher::{Opener, Unopened};
pub use secret::{RawKey, Secret};

/// A salt from its hexadecimal digits.
pub fn salt(digits: &str) -> Option<[u8; secret::SALT_BYTES]> {
    let text = digits.strip_prefix("x'").and_then(|rest| rest.strip_suffix('\'')).unwrap_or(digits);
    secret::from_hex(text.as_bytes())?[..].try_into().ok()
}
