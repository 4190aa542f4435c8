//! The deadline of one call, measured on two clocks.
//!
//! Waiting uses the runtime's timers. Their clock stops while the machine sleeps. The check before
//! sending uses `CLOCK_BOOTTIME`, which keeps running. The lease that allows the request keeps
//! running as well, so a timer alone could send after the lease ended.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::time::Instant;

/// The deadline of a call.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    timer: Instant,
    boot: Duration,
}

impl Deadline {
    /// A deadline `timeout` from now.
    pub fn after(timeout: Duration) -> Deadline {
        // Read the boot clock first: a pause between the two readings must not extend its deadline.
        let boot = boot_clock().saturating_add(timeout);
        Deadline { timer: Instant::now() + timeout, boot }
    }

    /// Whether the deadline has passed, time asleep included.
    pub fn is_over(self) -> bool {
        boot_clock() >= self.boot
    }

    /// The instant for the runtime's timers.
    pub fn timer(self) -> Instant {
        self.timer
    }
}

fn boot_clock() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
