//! Queries translated to SQLite and executed there.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod article;
mod assignments;
mod changes;
mod dates;
mod errors;
mod functions;
mod generated;
mod limits;
mod odd;
mod outputs;
mod queries;
mod server;
mod types;
mod views;
mod xml;
