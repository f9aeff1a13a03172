//! The pace of a scan: how many pages a batch has, and how long the pause after it is.

use std::time::Duration;

/// Pages of the first batch, which shows what a transaction costs by itself.
const FIRST: usize = 4;
/// The fewest pages of a batch. A smaller one costs a transaction as well: beside other programs
/// that wait for a busy disk, a batch became one page, and 2 MiB took minutes.
const FEWEST: usize = 16;
const MOST: usize = 4096;
/// Pages of a batch of an exclusive scan, for which no other connection waits.
const EXCLUSIVE: usize = 2048;

/// How long the lock is left free, in multiples of how long it was held. In rollback mode the end
/// of a batch keeps readers out too, so more readers have to be let through before the next batch
/// (docs/design/speed.md, "A scan under load, first look").
const FREE_WAL: u32 = 1;
const FREE_ROLLBACK: u32 = 4;

/// Sizes batches by how long the last one held the lock.
#[derive(Debug)]
pub struct Pace {
    hold: Duration,
    free: u32,
    batch: usize,
    /// The shortest time for which the lock was held so far. No batch, however small, takes less.
    least: Duration,
    exclusive: bool,
    /// The limit in bytes a second, and the times that the bytes have taken and should have taken
    /// so far.
    throttle: Option<u64>,
    ahead: Duration,
}

impl Pace {
    /// Makes the pace that holds the lock for `hold`, in WAL mode or in rollback mode.
    pub fn new(hold: Duration, wal: bool, exclusive: bool, throttle: Option<u64>) -> Self {
        let batch = match exclusive {
            true => EXCLUSIVE,
            false if hold.is_zero() => 1,
            false => FIRST,
        };
        let free = if wal { FREE_WAL } else { FREE_ROLLBACK };
        Self { hold, free, batch, least: Duration::MAX, exclusive, throttle, ahead: Duration::ZERO }
    }

    /// The number of pages of the next batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Notes that `pages` pages of `bytes` bytes held the lock for `held`. Returns how long to
    /// leave it free.
    pub fn after(&mut self, pages: usize, bytes: u64, held: Duration) -> Duration {
        if !self.exclusive && pages > 0 {
            // If one sync of the disk takes as long as `hold`, a fitting batch would be one page.
            // So at least half of the time is for pages.
            self.least = self.least.min(held);
            let hold = if self.hold.is_zero() { self.hold } else { self.hold.max(self.least * 2) };
            let fits = pages as f64 * hold.as_secs_f64() / held.as_secs_f64().max(1e-6);
            // A batch grows by half at most and shrinks at once, because a slow disk or the
            // connection's own checkpoint may have been in the way.
            let most = self.batch + self.batch / 2 + 1;
            let fewest = if self.hold.is_zero() { 1 } else { FEWEST };
            self.batch = (fits as usize).clamp(fewest, most.clamp(fewest, MOST));
        }
        let free = if self.exclusive { Duration::ZERO } else { held.max(self.hold) * self.free };
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
        let mut pace = Pace::new(HOLD, true, false, None);
        for _ in 0..40 {
            // 10 us a page.
            let pages = pace.batch();
            pace.after(pages, 0, Duration::from_micros(10) * pages as u32);
        }
        assert!((390..=400).contains(&pace.batch()), "{}", pace.batch());
        pace.after(400, 0, Duration::from_millis(400));
        assert_eq!(pace.batch(), FEWEST);
    }

    #[test]
    fn a_disk_that_was_quick_once_does_not_bring_a_scan_to_a_halt() {
        let mut pace = Pace::new(HOLD, false, false, None);
        pace.after(4, 0, Duration::from_millis(1));
        for _ in 0..20 {
            pace.after(pace.batch(), 0, Duration::from_millis(150));
            assert!(pace.batch() >= FEWEST, "{}", pace.batch());
        }
    }

    #[test]
    fn a_disk_that_syncs_slowly_gets_batches_that_are_worth_a_sync() {
        let mut pace = Pace::new(HOLD, false, false, None);
        for _ in 0..40 {
            // 30 ms a transaction, 20 us a page.
            let pages = pace.batch();
            pace.after(
                pages,
                0,
                Duration::from_millis(30) + Duration::from_micros(20) * pages as u32,
            );
        }
        assert!((1000..=2000).contains(&pace.batch()), "{}", pace.batch());
    }

    #[test]
    fn no_hold_is_a_page_at_a_time() {
        let mut pace = Pace::new(Duration::ZERO, true, false, None);
        for _ in 0..3 {
            assert_eq!(pace.batch(), 1);
            pace.after(1, 0, HOLD);
        }
    }

    #[test]
    fn the_lock_is_left_free_as_long_as_it_was_held_and_no_shorter_than_meant() {
        let mut pace = Pace::new(HOLD, true, false, None);
        assert_eq!(pace.after(16, 0, Duration::from_millis(30)), Duration::from_millis(30));
        assert_eq!(pace.after(16, 0, Duration::from_millis(1)), HOLD);
        let mut rollback = Pace::new(HOLD, false, false, None);
        assert_eq!(rollback.after(16, 0, Duration::from_millis(5)), Duration::from_millis(20));
        assert_eq!(Pace::new(HOLD, false, true, None).after(16, 0, HOLD), Duration::ZERO);
    }

    #[test]
    fn a_throttle_holds_on_average() {
        let mut pace = Pace::new(HOLD, true, false, Some(1_000_000));
        let mut spent = Duration::ZERO;
        for _ in 0..100 {
            let held = Duration::from_millis(3);
            spent += held + pace.after(16, 65_536, held);
        }
        let meant = Duration::from_secs_f64(100.0 * 65_536.0 / 1e6);
        assert!(spent >= meant && spent < meant + Duration::from_millis(100), "{spent:?}");
    }
}
