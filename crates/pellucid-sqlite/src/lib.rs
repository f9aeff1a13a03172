//! The VFS shim: sealed databases under an unmodified SQLite.
//!
//! It links no SQLite: every function comes from the table that SQLite hands to an extension. Calling those is unsafe
//! code; which other crates may have some, `.ci/unsafe` says.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod api;
pub mod audit;
pub mod backup;
pub mod code;
pub mod convert;
mod database;
pub mod ffi;
mod file;
mod frame_headers;
mod functions;
mod header_change;
mod held;
pub mod history;
pub mod inspect;
mod journal_file;
mod link;
mod lower;
mod main_file;
pub mod memory;
mod named_file;
mod overlay;
pub mod page_source;
mod pool;
pub mod protectors;
mod read_ahead;
mod registry;
pub mod scan;
pub mod seal_request;
pub mod snapshot;
mod super_journal;
mod temp_file;
mod vfs;
mod views;
mod wal_file;
mod wal_index;
mod write_out;

pub use functions::define as define_functions;
pub use vfs::{make_default, register, NAME};
