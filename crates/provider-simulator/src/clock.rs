//! The port for time: reading it and waiting for it. Nothing else in this crate reads the machine's
//! clock.
//!
//! Time never runs backwards. The wall clock is read once and then carried forward by a monotonic
//! clock, so a step of the machine's clock neither forgets idempotency keys nor revives them.

use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// A wait that ends when the clock has moved far enough.
pub type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The source of a simulator's time.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the Unix epoch; never less than an earlier answer.
    fn now_ms(&self) -> u64;
    /// Ends once `ms` milliseconds have passed on this clock.
    fn wait(&self, ms: u64) -> Waiting;
}

/// Real time.
#[derive(Debug, Clone)]
pub struct WallClock {
    started: Instant,
    started_ms: u64,
}

impl WallClock {
    /// Reads the machine's clock, once.
    #[expect(clippy::disallowed_methods, reason = "this type is the clock port")]
    pub fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallClock { started: Instant::now(), started_ms: millis(since_epoch) }
    }
}

impl Default for WallClock {
    fn default() -> Self {
        WallClock::new()
    }
}

impl Clock for WallClock {
    fn now_ms(&self) -> u64 {
        self.started_ms.saturating_add(millis(self.started.elapsed()))
    }

    #[expect(clippy::disallowed_methods, reason = "this type is the clock port")]
    fn wait(&self, ms: u64) -> Waiting {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

/// A clock that moves only when a test advances it.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: watch::Sender<u64>,
    waits: watch::Sender<u64>,
}

impl ManualClock {
    /// A clock standing at `now_ms`.
    pub fn at(now_ms: u64) -> Self {
        ManualClock { now_ms: watch::Sender::new(now_ms), waits: watch::Sender::new(0) }
    }

    /// Moves time forward and ends every expired wait.
    pub fn advance(&self, ms: u64) {
        self.now_ms.send_modify(|now| *now = now.saturating_add(ms));
    }

    /// Number of waits that are neither over nor dropped.
    pub fn waiting(&self) -> usize {
        self.now_ms.receiver_count()
    }

    /// Ends once `count` waits have begun on this clock: the moment to advance it.
    pub async fn waits_begun(&self, count: u64) {
        // The sender lives as long as `self`, so the wait can only end by reaching the count.
        let _ = self.waits.subscribe().wait_for(|begun| *begun >= count).await;
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        *self.now_ms.borrow()
    }

    fn wait(&self, ms: u64) -> Waiting {
        let mut time = self.now_ms.subscribe();
        let until = time.borrow().saturating_add(ms);
        self.waits.send_modify(|begun| *begun = begun.saturating_add(1));
        Box::pin(async move {
            // A dropped clock ends the wait, because nobody can move time any more.
            let _ = time.wait_for(|now| *now >= until).await;
        })
    }
}

/// RFC 3339 in UTC with milliseconds, as `2026-01-31T23:59:59.000Z`.
pub(crate) fn rfc3339(unix_ms: u64) -> String {
    let (days, ms_of_day) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute) = (ms_of_day / 3_600_000, ms_of_day / 60_000 % 60);
    let (second, milli) = (ms_of_day / 1000 % 60, ms_of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Converts days since 1970-01-01 to a Gregorian date. Years count from March, so that the leap day
/// comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn dates_are_gregorian() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_001), "2000-02-29T00:00:00.001Z");
        assert_eq!(rfc3339(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
