//! The VFS shim: it stands between SQLite and the files of a sealed database, and seals what SQLite
//! writes.
//!
//! # Where is what
//!
//! In the order in which to read it. docs/how-it-works.md has the pictures, docs/format.md says
//! what each byte means.
//!
//! 1. `vfs` registers the VFS and opens files; `vfs/named.rs` finds a lower VFS that was named. `file` has the functions that SQLite calls on an
//!    open file; `sqlite_file` is what all five kinds of file do.
//! 2. `main_file`: whether a file is plain or sealed, and the locks that SQLite takes (`lock`,
//!    `unlock`, `shm_lock`).
//! 3. `database`: a page is sealed in `write_page` and opened in `open_unit`.
//!    `database/page_size.rs` and `overlay` change the page size.
//! 4. `wal_file` seals a frame in `emit` and opens one in `read_piece`, `journal_file` a record in its `emit`, `temp_file`
//!    a block in `seal`.
//!    [`log_end`] finds commits behind a damaged frame, and [`lost_log`] keeps them aside. [`log_archive`] has the frames that a
//!    chain of log backups needs, once the log begins anew.
//! 5. [`container`]: what the files of one database share: keys, header, wear, and what is expected
//!    at its path. Each page, frame and record that SQLite writes is sealed by
//!    `Container::seal_with`. `transaction` has what one connection has under way: locks, nonces.
//!    `files`: where a call on one of the files needs another of them.
//! 6. `pool`: nonces, drawn before the write lock, wiped when it is released and in a forked
//!    child.
//! 7. [`seal_request`]: the keys that may open a database, and the keys and protectors of a new
//!    one.
//!    [`pins`]: what the keyring expects at the path of a database.
//!    `newcomer` decides what a new database beside a sealed one becomes.
//!    `in_memory` gives databases in memory the room that a copy of them needs.
//! 8. [`copy`] is the copy that a conversion fills; [`laying`] lays it over the original.
//!    [`lent_pages`] is a database that SQLite reads from memory, and has no file.
//! 9. `lower`: a file of the VFS below, where bytes reach the system. `held` gathers units for
//!    one call of it. `shared_memory` is the wal-index in the machine's memory, of a header that asks for it.
//! 10. [`opened`] and [`open_file`]: the files of an open connection, for the other crates.
//!
//! Smaller parts: `read_ahead`, `frame_headers`, `wal_index` and `write_out` serve the WAL;
//! [`super_journal`] the journal; `registry` finds the database of a journal or WAL;
//! [`named_file`] checks that a name leads to an open file; [`memory`] keeps keys out of core
//! dumps; [`streams`] finds a closed standard output.
//!
//! # What a crash can do
//!
//! The shim adds no write-ahead of its own: it keeps SQLite's order of writes and syncs, and what
//! it holds was never promised to SQLite.
//!
//! - A page of the database file: old, new or torn. A torn page does not open; SQLite restores it
//!   from the WAL or the journal.
//! - Frames: `held` keeps at most 64 KiB. Held frames are written at the latest together with the
//!   commit frame. After a crash before that, the log has no commit frame for the transaction, and
//!   recovery ignores its frames.
//! - Journal records: written before any write to the database file (`Files::flush_journal`).
//! - The header: copy 0, sync, copy 1, sync (`Container::write_header`), so one copy is always whole. A
//!   new container gets its sector 0 last (`Container::give_birth`).
//! - A laying: sector 0 says that it is under way, and the next connection that may write finishes
//!   it (`laying::roll_forward`).
//!
//! # Who holds which lock
//!
//! All locks are SQLite's own, passed to the lower VFS, but for the scan's byte 2^62 and that of an index in memory, 2^62 + 2. Those of WAL
//! mode lie in the wal-index (`-shm`).
//!
//! - A page is written under EXCLUSIVE or, by a checkpoint, under the wal-index's checkpoint lock.
//! - A frame is written under the wal-index's write lock, or under EXCLUSIVE in an exclusive
//!   locking mode.
//! - The header changes under EXCLUSIVE, or under the write and checkpoint locks together
//!   (`Container::with_header_locks`). A reader of the header takes no lock: it checks the HMAC and the
//!   sequence number, and reads again.
//! - A copy is made under RESERVED and laid under EXCLUSIVE.
//! - A scan holds byte 2^62 of the file, in the crate `pellucid-engine`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod attached;
pub mod container;
pub mod copy;
mod database;
mod file;
mod files;
mod frame_headers;
mod held;
mod in_memory;
mod journal_file;
pub mod laying;
pub mod lent_pages;
pub mod log_archive;
mod log_chain;
pub mod log_end;
pub mod lost_log;
mod lower;
mod main_file;
pub mod mark;
pub mod memory;
pub mod named_file;
pub mod names;
mod newcomer;
pub mod open_file;
pub mod opened;
mod overlay;
pub mod pins;
mod pool;
mod read_ahead;
mod registry;
pub mod seal_request;
pub mod shared_memory;
mod sqlite_file;
pub mod streams;
pub mod super_journal;
mod temp_file;
mod transaction;
mod vfs;
mod wal_file;
mod wal_index;
pub mod witness;
mod write_out;

pub use database::truncated as truncated_page;
pub use in_memory::reserve as reserve_in_memory;
pub use lower::{ReadEnd, CALL_BYTES};
pub use main_file::truncated as truncated_file;
pub use vfs::{by_default as over_by_default, make_default, register, NAME};
pub use wal_file::{refuse_other_at, Standing};
