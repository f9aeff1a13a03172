//! How the lab measures: processes, the machine and who else uses it, sides and how they are opened, rounds in random order,
//! and the session that writes the records.
//!
//! What is measured is not here: a session is handed its cells and what to do in a run.
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod blocks;
pub mod child;
pub mod choice;
pub mod cold;
pub mod common;
pub mod error;
pub mod extension;
pub mod files;
pub mod histogram;
pub mod interrupt;
pub mod machine;
pub mod pipeline;
pub mod program;
pub mod random;
pub mod session;
pub mod side;
pub mod sink;
pub mod sql;
pub mod work;
