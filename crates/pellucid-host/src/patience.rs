//! Waiting for others to give way, until a deadline.

use std::time::{Duration, Instant};

/// How long is left to wait, and how long to sleep between two tries.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    deadline: Instant,
    pause: Duration,
}

impl Patience {
    /// For `time` from now, with a sleep of `pause` between two tries.
    pub fn new(time: Duration, pause: Duration) -> Self {
        Self { deadline: Instant::now() + time, pause }
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Sleeps before the next try; false, without sleep, if the time is up.
    pub fn wait(&self) -> bool {
        let goes_on = !self.left().is_zero();
        if goes_on {
            std::thread::sleep(self.pause);
        }
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_ends_and_no_time_is_one_try() {
        assert!(!Patience::new(Duration::ZERO, Duration::from_secs(60)).wait());
        let patience = Patience::new(Duration::from_millis(20), Duration::from_millis(1));
        assert!(patience.wait() && patience.left() <= Duration::from_millis(19));
        while patience.wait() {}
        assert!(patience.left().is_zero());
    }
}
