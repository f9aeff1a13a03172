//! Goal: the experiments, each from the command line to records that a report can be made of.
//!
//! Method: databases of a few megabytes and a few rounds; the program `pellucid` lies beside the lab. What the lab checks
//! itself (rows of a restore, no row's text where it is sealed, that a switch did something) ends the session if it is not
//! so. No figure is judged, only how they belong together.
#![allow(clippy::unwrap_used)]

mod backup;
mod log_backups;
mod maintenance;
mod records;
mod side_effects;
mod yours;
