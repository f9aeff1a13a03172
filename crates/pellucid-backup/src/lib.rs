//! Backups: sets are written and read, jobs make them of databases in use and make databases of
//! them, and the history says where they are.
//!
//! # Where is what
//!
//! In the order in which to read it:
//!
//! 1. [`snapshot`]: one state of a database, page by page, which a backup reads.
//! 2. [`set`] writes a backup set: pages in, media out, compressed and sealed in one pass on
//!    several cores. A chunk of pages is sealed by its workers (`set/worker.rs`).
//! 3. [`restore`] reads media: lists and verifies sets, and returns their pages.
//! 4. [`job`]: a backup (`job/back_up.rs`, with its rules in `plan.rs`, `overwrite.rs` and
//!    `targets.rs`), a restore (`restore.rs`, `replace.rs`) and a page restore (`mend.rs`).
//! 5. [`history`]: the backups and restores of an instance, in SQL Server's tables of `msdb`.
//! 6. `objects`: media in object stores, behind the feature `objects`.
//!
//! # What a crash can do
//!
//! - A new file of media lies under a temporary name until its set is complete. A rest of it is
//!   removed by the next backup. If the machine stopped between two renames, the next reader or
//!   writer uses the complete files.
//! - A set that is appended counts when its manifest is written; without it readers see the earlier
//!   sets.
//! - A restore into a new name gives the complete file its name last. A restore over an existing
//!   database is laid over it, and from sector 0 on the next connection that may write finishes it.
//!
//! # Who holds which lock
//!
//! - A backup holds a read transaction of the database. In WAL mode writers go on; in the other
//!   modes none commits, unless the pages are copied aside first (`set/spool.rs`).
//! - A page restore, and a restore over an existing database, hold EXCLUSIVE.
//! - Each file of media that is written has an advisory lock, so that two backups do not write the
//!   same one.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod archive;
pub mod history;
pub mod job;
#[cfg(feature = "objects")]
pub mod objects;
pub mod restore;
pub mod set;
pub mod snapshot;
