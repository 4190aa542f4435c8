//! The store's clock: the server's clock, extrapolated between two reads with this machine's boot
//! clock.
//!
//! Promises: the clock never goes back, is never behind a known commit, and does not use this
//! machine's wall clock. A read may be up to one round trip old, so the clock is late rather than
//! early.

use counterfoil_core::types::time::Time;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The largest lead over the server that counts as drift and is corrected. A larger lead means that
/// the server's clock was set back. Then this clock continues at its own pace, and the row of
/// `head` keeps commit times in order.
const DRIFT_MAX_US: i64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Clock {
    /// Server time minus boot time, in microseconds.
    offset_us: AtomicI64,
    latest_ms: AtomicI64,
}

impl Clock {
    /// Starts at the later of the server's time and the last commit's time.
    pub(crate) fn new(server_us: i64, last_commit: Time) -> Clock {
        let start = server_us.max(last_commit.ms().saturating_mul(1_000));
        Clock {
            offset_us: AtomicI64::new(start.saturating_sub(boot_us())),
            latest_ms: AtomicI64::new(last_commit.ms()),
        }
    }

    /// The store's time.
    pub(crate) fn now(&self) -> Time {
        let ms = self.at(boot_us()).div_euclid(1_000);
        Time::from_ms(self.latest_ms.fetch_max(ms, Ordering::AcqRel).max(ms))
    }

    /// Adjusts to a read of the server's clock, taken at most `took` ago.
    pub(crate) fn observe_server(&self, server_us: i64, took: Duration) {
        let now = boot_us();
        let (known, ahead) = (self.at(now), i64::try_from(took.as_micros()).unwrap_or(i64::MAX));
        let excess = known.saturating_sub(server_us.saturating_add(ahead));
        if server_us > known || (0..DRIFT_MAX_US).contains(&excess) {
            self.offset_us.store(server_us.saturating_sub(now), Ordering::Release);
        }
    }

    /// Records the time of a commit. The clock never falls behind it.
    pub(crate) fn observe_commit(&self, at: Time) {
        self.latest_ms.fetch_max(at.ms(), Ordering::AcqRel);
    }

    fn at(&self, boot_us: i64) -> i64 {
        self.offset_us.load(Ordering::Acquire).saturating_add(boot_us)
    }
}

fn boot_us() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1_000)
}

/// A monotonic clock for durations.
pub(crate) fn monotonic() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: i64 = 3_600_000_000;

    #[test]
    fn a_server_clock_set_back_does_not_take_time_back() {
        let clock = Clock::new(10 * HOUR_US, Time::EPOCH);
        let before = clock.now();
        clock.observe_server(9 * HOUR_US, Duration::ZERO);
        assert!(clock.now() >= before && before.ms() >= 36_000_000);
    }

    #[test]
    fn a_server_clock_ahead_is_followed_and_drift_is_corrected() {
        let clock = Clock::new(HOUR_US, Time::EPOCH);
        clock.observe_server(2 * HOUR_US, Duration::from_millis(1));
        let now = clock.now();
        assert!(now.ms() >= 7_200_000);
        clock.observe_server(2 * HOUR_US - 500_000, Duration::ZERO);
        assert!(clock.at(boot_us()) < 2 * HOUR_US, "the drift stays");
        assert!(clock.now() >= now, "time went back");
    }

    #[test]
    fn a_commit_is_never_in_the_future() {
        let clock = Clock::new(HOUR_US, Time::from_ms(9_000_000));
        assert!(clock.now().ms() >= 9_000_000);
        clock.observe_commit(Time::from_ms(99_000_000));
        assert_eq!(clock.now().ms(), 99_000_000);
    }
}
