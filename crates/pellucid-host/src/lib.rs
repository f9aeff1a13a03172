//! What the host offers, made safe: its SQLite's function table, result codes, connections and statements of our own, SQL
//! functions and tables; and of its C library what no crate makes safe.
//!
//! Links no SQLite: every function comes from the table that SQLite hands to an extension.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod api;
pub mod byte_lock;
pub mod code;
pub mod connection;
pub mod error;
pub mod ffi;
pub mod folder;
pub mod function;
pub mod holders;
pub mod lending;
mod options;
pub mod patience;
pub mod statement;
pub mod table;

pub use error::DatabaseError;
pub use options::Options;
