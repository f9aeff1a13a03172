//! Workloads: what the workers of a run do.

pub mod application;
pub mod hummer;
pub mod mix;
pub mod purchase;
pub mod rewrite;
pub mod step;
pub mod whole;
pub mod world;
