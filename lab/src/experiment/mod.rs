//! Experiments: the articles' tests, each with its scenario file; every number of every run becomes an observation.

pub mod hummer;
