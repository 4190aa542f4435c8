//! The end of one call, on two clocks.
//!
//! Waiting uses the runtime's timers, whose clock stands still while the machine sleeps. Whether a request may still
//! leave is asked of `CLOCK_BOOTTIME`, which runs on: a timer tells only those who are awake, and the lease this
//! request was allowed under has run on as well.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::time::Instant;

/// When a call is over.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    timer: Instant,
    boot: Duration,
}

impl Deadline {
    /// This long from now.
    pub fn after(timeout: Duration) -> Deadline {
        // The boot clock first: what passes between the two must not be added to it.
        let boot = boot_clock().saturating_add(timeout);
        Deadline { timer: Instant::now() + timeout, boot }
    }

    /// Whether it has passed, sleep included.
    pub fn is_over(self) -> bool {
        boot_clock() >= self.boot
    }

    /// The instant to wait for.
    pub fn timer(self) -> Instant {
        self.timer
    }
}

fn boot_clock() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
