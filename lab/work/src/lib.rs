//! What the lab measures: each measurement with its options, its estimate and its run, and the workloads of their workers.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod backup_speed;
pub mod control;
pub mod crew;
pub mod estimate;
pub mod experiment;
pub mod fixture;
pub mod opening;
pub mod pool;
pub mod purchase;
pub mod scan_load;
pub mod scan_speed;
pub mod scenario;
pub mod speedtest1;
pub mod whole;
pub mod worker;
