//! Executes SQL Server's statements: values and their types, queries translated to SQLite's, sessions, views and messages.
//!
//! The crate `pellucid-tsql` turns text into syntax trees. Queries are translated to SQLite ([`translate`]) and use
//! functions that a connection has to know ([`functions`]); a [`session`] executes them and every other statement. What
//! SQL Server knows and Pellucid does not do is refused by name ([`message::UNSUPPORTED`]), never skipped.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod execute;
pub mod features;
pub mod functions;
mod instance;
mod jobs;
mod known;
pub mod message;
mod savepoint;
pub mod session;
pub mod translate;
pub mod values;
mod views;

pub use jobs::agent;
