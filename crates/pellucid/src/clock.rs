//! What time it is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970; 0 where the clock is before that.
pub fn now() -> u64 {
    since_1970().as_secs()
}

/// Microseconds since 1970; 0 where the clock is before that.
pub fn now_micros() -> u64 {
    since_1970().as_micros() as u64
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
