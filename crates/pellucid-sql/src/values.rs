//! Values of the server: their types, decimals, moments, and how one type becomes another.
//!
//! Nothing here knows a message of the server: what fails is an [`Error`] of its own, and the messages say it.

pub mod convert;
pub mod decimal;
mod error;
pub mod moment;
pub mod types;
pub(crate) mod xml;

pub use error::{Error, Result};

/// A thumbprint as columns of SQL Server's have it, whose tables and scripts leave 20 bytes for it: the first of SHA-256's.
pub(crate) fn thumbprint(sha256: &[u8]) -> convert::Value {
    const BYTES: usize = 20;
    convert::Value::Blob(sha256.get(..BYTES).unwrap_or(sha256).to_vec())
}
