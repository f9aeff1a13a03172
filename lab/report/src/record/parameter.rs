//! Names of the parameters of sessions that more than their own experiment reads.

/// How cold runs were made cold.
pub const COLD: &str = "cold";
/// The cells of the session end when their intervals are this narrow.
pub const UNTIL_PERCENT: &str = "until_percent";
/// What all cells of hummer would take at scale 1, in seconds: why they were run at another.
pub const WHOLE_ESTIMATE: &str = "whole_estimate_s";
