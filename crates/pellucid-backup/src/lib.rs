//! Backups in one house: sets are written and read ([`set`], [`restore`]), jobs take them of databases in use and make databases
//! of them ([`job`]), and the history says where they are ([`history`]).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod history;
pub mod job;
#[cfg(feature = "objects")]
pub mod objects;
pub mod restore;
pub mod set;
pub mod snapshot;
