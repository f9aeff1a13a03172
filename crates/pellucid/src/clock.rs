//! The present time, since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the seconds since 1970, or 0 if the clock is before that.
pub fn now() -> u64 {
    since_1970().as_secs()
}

/// Returns the microseconds since 1970, or 0 if the clock is before that.
pub fn now_micros() -> u64 {
    since_1970().as_micros() as u64
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
