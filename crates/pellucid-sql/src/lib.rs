//! SQL Server's statements: scripts, batches and tokens.
#![forbid(unsafe_code)]

pub mod batch;
mod error;
pub mod keyword;
pub mod lexer;
pub mod secret;

pub use error::{ErrorKind, ParseError, Result};
