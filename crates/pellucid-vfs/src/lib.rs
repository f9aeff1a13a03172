//! The VFS shim: what stands between SQLite and the files of a sealed database.
//!
//! SQLite's calls come in by [`vfs`] and `file`; behind them are the kinds of files (main, WAL, journal, temporary), the
//! [`link::Link`] that those of one database share, and the file of the VFS below ([`lower::Lower`]).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod copy;
pub mod database;
pub mod file;
pub mod frame_headers;
pub mod held;
pub mod journal_file;
pub mod laying;
pub mod link;
pub mod lower;
pub mod main_file;
pub mod memory;
pub mod named_file;
pub mod open_file;
pub mod opened;
pub mod overlay;
pub mod pool;
pub mod read_ahead;
pub mod registry;
pub mod seal_request;
pub mod super_journal;
pub mod temp_file;
pub mod vfs;
pub mod wal_file;
pub mod wal_index;
pub mod write_out;

pub use vfs::{make_default, register, NAME};
