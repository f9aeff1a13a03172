//! Reads backup media: lists what is on them, verifies them, and brings pages back.
//!
//! A [`Family`] is one file of a media set as it was found; [`Media`] are the families of a media set put together; an
//! [`OpenSet`] is one backup set with its keys and its index, a [`LogSet`] one of a log with its commits. Nothing of a sealed set is handed out before it
//! authenticated.

mod counter;
mod family;
mod from_end;
mod log;
mod media;
mod open;
mod pages;
mod proof;
mod signer;
mod source;
mod target;
mod verify;

pub use counter::set_change_counter;
pub use family::{Family, FamilySet, Tail};
pub use log::{is_log_set, LogSet};
pub use media::{not_sealed, Media};
pub use open::OpenSet;
pub use pages::{restore_pages, PageTarget};
pub use signer::{not_signed, Signer};
pub use source::{FileSource, MediaSource};
pub use target::{PlainTarget, SealedTarget, UNFINISHED_MODE};
pub use verify::{same_manifest, verify_checksums, Verified};
