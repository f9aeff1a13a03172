//! Workloads: what the workers of a run do.

pub mod adopt;
pub mod application;
pub mod hummer;
pub mod purchase;
pub mod rewrite;
pub mod statements;
pub mod step;
pub mod temporary;
pub mod whole;
pub mod world;
