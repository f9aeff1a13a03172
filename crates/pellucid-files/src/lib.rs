//! Files that are opened by a name: what they are, whose they are, and the secrets that some of them hold.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod locked;
pub mod machine_memory;
pub mod new_file;
pub mod open_at;
pub mod paths;
pub mod regular;
pub mod secrets;
pub mod stamp;
pub mod trusted;
pub mod volume;
pub mod way;
