//! Backup sets of a database in use, and databases from backup sets.
//!
//! [`crate::set`] and [`crate::restore`] write and read media. This module connects them with a
//! database: its snapshot, its keys, and files that appear completely or not at all.

mod aside;
mod back_up;
mod chain;
mod clear;
mod error;
mod leftovers;
mod media;
mod mend;
mod occupant;
mod older;
mod overwrite;
mod plan;
mod point;
mod points;
mod replace;
mod restore;
mod seal;
mod standing;
mod store;
mod taking_back;
mod targets;
mod timeline;
mod working;

pub(crate) use back_up::log::{back_up_kept, bytes_of_log, check_log, open_log, write_log, LogOf};
pub(crate) use back_up::sealed_header;
pub use back_up::{back_up, compare_with_last, Done, Phase, Progress};
pub use chain::Chain;
pub use clear::{refuse_looked_at, Believe};
pub use error::JobError;
pub use leftovers::{leftovers, Leftover};
pub use media::{open_family, open_media};
pub use mend::{mend, Mended, Mending};
pub use older::{compare, Compared, Comparing};
pub use overwrite::{Existing, Rules};
pub use plan::{processors, Job, LogJob, Retention};
pub use point::{shown as shown_moment, Library, Plan, Point, Spot};
pub use points::{ForkPoints, Gap, MarkPoint, Missing, Moment, Range};
pub use restore::{restore, restore_and, Restored, Restoring};
pub(crate) use seal::signer as signer_of;
pub use standing::{standing, standing_of_base, Looked};
pub(crate) use store::{store_of, url_of};
pub use store::{use_store, Commit, Content, Created, Store};
pub use targets::Files;
pub(crate) use targets::{is_file, new_name, STDIO};
pub use timeline::{Covers, Timeline, TimelineFork, TimelineSet, Unread};
pub use working::remove_working_files;
