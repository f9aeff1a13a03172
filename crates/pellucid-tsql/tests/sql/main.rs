//! The statements as they are written, parsed and printed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod articles;
mod backup;
mod errors;
mod generated;
mod keys;
mod statements;
mod variables;
