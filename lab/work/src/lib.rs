//! What the lab measures: each measurement with its options, its estimate and its run, and the workloads of their workers.
//!
//! A new measurement is a file of its own, and two lines here: its module, and its place in the list.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod acceleration;
mod article_0;
mod backup_load;
mod backup_matrix;
mod backup_overhead;
pub mod backup_speed;
mod control;
mod crew;
pub mod estimate;
mod experiment;
mod fixture;
pub mod full;
mod hummer;
mod load;
mod log_backups;
mod maintenance;
pub mod measurement;
mod opening;
pub mod piece;
mod pool;
mod purchase;
pub mod quick;
pub mod registry;
mod scan_load;
mod scan_speed;
mod scenario;
mod side_effects;
mod speedtest1;
mod whole;
pub mod worker;
mod yours;

use registry::Entry;

/// All measurements, in the order of the help; `lab full` runs their pieces in the order of the numbers.
static MEASUREMENTS: &[Entry] = &[
    Entry::of::<purchase::Purchase>(1),
    Entry::of::<control::Control>(2),
    Entry::of::<whole::Whole>(3),
    Entry::of::<speedtest1::Speedtest1>(4),
    Entry::of::<opening::Opening>(5),
    Entry::of::<scan_load::ScanLoad>(6),
    Entry::of::<backup_load::BackupLoad>(9),
    Entry::of::<scan_speed::ScanSpeed>(7),
    Entry::of::<backup_speed::BackupSpeed>(8),
    Entry::of::<backup_matrix::BackupMatrix>(10),
    Entry::of::<log_backups::LogBackups>(17),
    Entry::of::<backup_overhead::BackupOverhead>(11),
    Entry::of::<hummer::Hummer>(13),
    Entry::of::<maintenance::Maintenance>(12),
    Entry::of::<side_effects::SideEffects>(15),
    Entry::of::<yours::Yours>(16),
    Entry::of::<acceleration::Acceleration>(14),
];
