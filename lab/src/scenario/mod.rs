//! Workloads: what the workers of a run do.

pub mod mix;
pub mod purchase;
pub mod whole;
