//! What the lab's records are, and what follows from them: verdicts, tables, figures and pages.
//!
//! Nothing here measures: no process is started and no database is opened. The program that writes a record and the page
//! that is made of it have one type for it, which is here.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod clock;
pub mod compare;
pub mod error;
pub mod goals;
pub mod plan;
pub mod record;
pub mod recorded;
pub mod report;
pub mod statistics;
pub mod table;
pub mod verdict;
