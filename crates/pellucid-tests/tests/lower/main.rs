//! Goal: a database lies sealed over a lower VFS that was named (`pellucid_over=`, `PELLUCID_OVER`), nothing falls back to another VFS,
//! and what such a VFS cannot have is refused by name.
//!
//! Method: over VFSes that SQLite brings: `unix-dotfile`, `unix-none` and `memdb` in this process, and in the stock `sqlite3` its
//! `apndvfs`, which stacks on the platform's VFS. Commands are the built `pellucid`. One instance for all, whose certificate seals.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod attacks;
mod kills;
mod names;
mod place;
mod refused;
mod shell;
mod uses;
