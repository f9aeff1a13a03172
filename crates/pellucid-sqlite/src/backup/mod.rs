//! Backup sets of a database in use, and databases from backup sets.
//!
//! The core writes and reads media ([`pellucid_backup`], [`pellucid_backup::restore`]); here is what they have to do with a
//! database: its snapshot, its keys, and files that appear whole or not at all.

mod chain;
mod clear;
mod folder;
mod job;
mod media;
mod mend;
mod occupant;
mod overwrite;
mod replace;
mod restore;
mod seal;
mod store;
mod targets;

pub use chain::Chain;
pub use clear::{refuse_looked_at, Believe};
pub(crate) use folder::{name_of, Folder};
pub use job::{back_up, Done, Job, Phase, Progress};
pub use media::{open_family, open_media};
pub use mend::{mend, Mending};
pub use overwrite::{Existing, Rules};
pub(crate) use replace::rename_new;
pub use restore::{restore, Restored, Restoring};
pub(crate) use store::url_of;
pub use store::{use_store, Commit, Created, Store};
pub use targets::Files;
pub(crate) use targets::{is_file, STDIO};
