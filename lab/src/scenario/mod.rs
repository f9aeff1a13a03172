//! Workloads: what the workers of a run do. One module each, after the article it reproduces.

pub mod mix;
pub mod purchase;
