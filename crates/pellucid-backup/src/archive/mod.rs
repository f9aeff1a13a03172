//! The archiver: ships the commits of databases to a directory or a store as they come.
//!
//! It stands on `backup --log`: what is synced and kept is made a small log set, put under a name that nothing has yet, and only
//! then the database's archive is told that it is backed up. So a store that fails, or a process that is killed, leaves commits that
//! are shipped once more and never some that are nowhere.
//!
//! - `names.rs`: what a set is called, from its place in the chain.
//! - `place.rs`: a directory, or a part of a store.
//! - `ship.rs`: one database's new commits, or its full backup.
//! - `merge.rs`: small sets made into one.
//! - `keep.rs`: what may go after a time.
//! - `run.rs`: many databases, for as long as the process lives.
//! - `witness.rs`: how far the database had come, as the place says it.
//! - `follow.rs`: a standby that is kept up to date from a place; `onto.rs`: how log sets get into it.
//! - `find.rs`: the sets of a place that lead to a point, for a restore.

mod find;
mod follow;
mod keep;
mod merge;
mod names;
mod onto;
mod place;
mod run;
mod set;
mod ship;
mod witness;

pub use find::{media_in, media_of};
pub use follow::{follow, FollowError, FollowNews, FollowOptions, Follower};
pub use place::Place;
pub use run::{run, Happened, News};
pub use ship::{folder_of, Options, Shipped, Shipper};
pub use witness::{furthest, look_at};
