//! The VFS shim: what stands between SQLite and the files of a sealed database.
//!
//! SQLite's calls come in by `vfs` and `file`; behind them are the kinds of files (main, WAL, journal, temporary), the
//! [`link::Link`] that those of one database share, and the file of the VFS below ([`lower::Lower`]).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod copy;
mod database;
mod file;
mod frame_headers;
mod held;
mod journal_file;
pub mod laying;
pub mod link;
pub mod lower;
mod main_file;
pub mod memory;
pub mod named_file;
pub mod open_file;
pub mod opened;
mod overlay;
mod pool;
mod read_ahead;
mod registry;
pub mod seal_request;
pub mod super_journal;
mod temp_file;
mod vfs;
mod wal_file;
mod wal_index;
mod write_out;

pub use database::truncated as truncated_page;
pub use main_file::truncated as truncated_file;
pub use vfs::{make_default, register, NAME};
pub use wal_file::refuse_newer_at;
