//! Work on databases in use, through connections of the host's SQLite: first encryption and decryption, scans, audits, pages
//! past damage, changes of the header, SQL functions and tables.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod audit;
pub mod convert;
pub mod functions;
pub mod header_change;
pub mod inspect;
pub mod look;
pub mod page_source;
pub mod protectors;
pub mod scan;
mod units;
pub mod views;
