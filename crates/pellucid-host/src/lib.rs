//! What the host offers, made safe: the functions of its SQLite, and those of its C library that no
//! other crate makes safe.
//!
//! Links no SQLite: every function comes from the table that SQLite hands to an extension.
//!
//! # Where is what
//!
//! In the order in which to read it:
//!
//! 1. [`ffi`] declares SQLite's C interface; [`api`] takes the functions from SQLite's table.
//! 2. [`code`]: SQLite's result codes, the code of each typed error, and the log. [`error`]: errors
//!    of a database in use.
//! 3. [`connection`] and [`statement`]: connections and statements of the shim's own. [`patience`]
//!    and [`Options`]: how long they wait.
//! 4. [`function`] and [`table`]: SQL functions and tables that the extension defines. [`lending`]:
//!    the application's collations and functions for connections of the shim's own.
//! 5. [`holders`]: the processes that hold locks on a file. [`byte_lock`]: a lock on one byte that
//!    belongs to the open file. [`folder`]: a directory by its descriptor.
//!
//! No page is sealed here, and this crate keeps no state on disk, so a crash leaves nothing of it.
//! SQLite's locks are taken by the connections that it opens; the lock of a scan is taken by
//! [`byte_lock`] and released by the kernel with the process.
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
pub mod over;
pub mod patience;
pub mod statement;
pub mod table;

pub use error::DatabaseError;
pub use options::Options;
