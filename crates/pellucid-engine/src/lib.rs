//! Work on databases in use, through connections of the host's SQLite: first encryption and
//! decryption, scans, audits, pages past damage, changes of the header, SQL functions and tables.
//!
//! # Where is what
//!
//! In the order in which to read it. No page is sealed here: SQLite writes pages, and the crate
//! `pellucid-vfs` seals them.
//!
//! 1. [`inspect`]: what a file is, without a key and without SQLite. [`look`]: a read-only
//!    connection to a database that other processes may use.
//! 2. [`header_change`]: the next header of a database in use. [`protectors`]: protectors added,
//!    dropped, exchanged. [`version`]: a database gets the other format version.
//!    [`index_place`]: the wal-index in the file or in memory. [`log_chain`]: recovery models, and the commits that a log backup
//!    has to have.
//! 3. [`convert`]: first encryption and decryption: a copy beside the file, then its laying over
//!    the file.
//! 4. [`scan`]: a new DEK (`scan/switch.rs`), every page rewritten under it (`scan/rewrite.rs`),
//!    the proof that no older unit is left (`scan/proof.rs`).
//! 5. [`audit`]: every page, frame and record authenticated, then SQLite's checks. [`page_source`]:
//!    single pages past damage.
//!    [`checked`]: its result, in the keyring.
//! 6. [`functions`] and [`views`]: the SQL functions and tables of the extension.
//!
//! # What a crash can do
//!
//! - A header change: one of the two copies is whole, and the next change makes both equal.
//! - A conversion: before its commit point (sector 0) nothing is changed; after it the next
//!   connection that may write finishes it.
//! - A scan: each page says which generation sealed it, so a killed scan goes on by starting again.
//!   The older DEK stays in the header until the proof.
//!
//! # Who holds which lock
//!
//! - A header change: EXCLUSIVE, or the WAL's write and checkpoint locks together.
//! - Another format version: EXCLUSIVE, without any other connection.
//! - A conversion: RESERVED while the copy is built, EXCLUSIVE while it is laid.
//! - A scan: byte 2^62 of the file (`scan/turn.rs`), and for each batch of pages the lock of an
//!   ordinary short transaction.
//! - An audit: none while it reads pages; a read transaction for SQLite's checks and for a second
//!   look at a damaged page.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod audit;
pub mod checked;
pub mod convert;
pub mod functions;
pub mod header_change;
pub mod index_place;
pub mod inspect;
pub mod log_chain;
pub mod look;
pub mod page_source;
pub mod protectors;
pub mod scan;
pub mod standing;
mod units;
pub mod version;
pub mod views;
