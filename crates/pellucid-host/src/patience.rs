//! Waiting until a deadline for other processes to give way.

use std::time::{Duration, Instant};

/// The time left to wait, and the pause between two tries.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    deadline: Instant,
    pause: Duration,
}

impl Patience {
    /// Makes the patience of `time` from now, with a sleep of `pause` between two tries.
    pub fn new(time: Duration, pause: Duration) -> Self {
        Self { deadline: Instant::now() + time, pause }
    }

    /// Returns the time that is left.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Sleeps before the next try. False, without sleep, if the time is up.
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
