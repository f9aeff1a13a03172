//! How many pages at a time, and how long a pause after them.

use std::time::Duration;

/// Pages of the first batch.
const FIRST: usize = 16;
const MOST: usize = 4096;
/// A batch with nobody to wait for it.
const EXCLUSIVE: usize = 2048;

/// Sizes batches by how long the last one held the lock.
#[derive(Debug)]
pub struct Pace {
    hold: Duration,
    batch: usize,
    exclusive: bool,
    /// Bytes a second, and how much time they have cost and should have cost so far.
    throttle: Option<u64>,
    ahead: Duration,
}

impl Pace {
    /// One that holds the lock for `hold`.
    pub fn new(hold: Duration, exclusive: bool, throttle: Option<u64>) -> Self {
        let batch = if exclusive { EXCLUSIVE } else { FIRST };
        Self { hold, batch, exclusive, throttle, ahead: Duration::ZERO }
    }

    /// Pages of the next batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Told that `pages` pages, `bytes` long, held the lock for `held`: how long to leave it free.
    pub fn after(&mut self, pages: usize, bytes: u64, held: Duration) -> Duration {
        if !self.exclusive && pages > 0 {
            let fits = pages as f64 * self.hold.as_secs_f64() / held.as_secs_f64().max(1e-6);
            // Up by half at most, down at once: a slow disk or a checkpoint of its own was in the way.
            let most = self.batch + self.batch / 2 + 1;
            self.batch = (fits as usize).clamp(1, most.min(MOST));
        }
        let free = if self.exclusive { Duration::ZERO } else { held.max(self.hold) };
        let Some(rate) = self.throttle else { return free };
        let due = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64) + self.ahead;
        let pause = due.saturating_sub(held).max(free);
        self.ahead = due.saturating_sub(held + pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_millis(4);

    #[test]
    fn batches_grow_to_the_hold_and_shrink_at_once() {
        let mut pace = Pace::new(HOLD, false, None);
        for _ in 0..40 {
            // 10 us a page.
            let pages = pace.batch();
            pace.after(pages, 0, Duration::from_micros(10) * pages as u32);
        }
        assert!((390..=400).contains(&pace.batch()), "{}", pace.batch());
        pace.after(400, 0, Duration::from_millis(400));
        assert_eq!(pace.batch(), 4);
    }

    #[test]
    fn the_lock_is_left_free_as_long_as_it_was_held_and_no_shorter_than_meant() {
        let mut pace = Pace::new(HOLD, false, None);
        assert_eq!(pace.after(16, 0, Duration::from_millis(30)), Duration::from_millis(30));
        assert_eq!(pace.after(16, 0, Duration::from_millis(1)), HOLD);
        assert_eq!(Pace::new(HOLD, true, None).after(16, 0, HOLD), Duration::ZERO);
    }

    #[test]
    fn a_throttle_holds_on_average() {
        let mut pace = Pace::new(HOLD, false, Some(1_000_000));
        let mut spent = Duration::ZERO;
        for _ in 0..100 {
            let held = Duration::from_millis(3);
            spent += held + pace.after(16, 65_536, held);
        }
        let meant = Duration::from_secs_f64(100.0 * 65_536.0 / 1e6);
        assert!(spent >= meant && spent < meant + Duration::from_millis(100), "{spent:?}");
    }
}
