//! The store's clock: an anchor plus the time since then by the kernel's boot clock.
//!
//! Promises: store time never goes back, and moving the wall clock does not move it. The wall clock
//! is read once per boot of the machine, when the anchor is set. `CLOCK_BOOTTIME` also runs while
//! the machine sleeps.

use counterfoil_core::types::time::Time;
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The machine's clocks; tests replace them.
pub trait TimeSource: Send + Sync {
    /// The wall clock, in milliseconds since the Unix epoch.
    fn wall_ms(&self) -> i64;
    /// Milliseconds since the machine was booted, sleep included.
    fn boottime_ms(&self) -> i64;
    /// The id of this boot of the machine; none if the kernel does not tell it.
    fn boot_id(&self) -> Option<String>;
}

/// The kernel's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemTime;

impl TimeSource for SystemTime {
    fn wall_ms(&self) -> i64 {
        kernel_ms(ClockId::Realtime)
    }

    fn boottime_ms(&self) -> i64 {
        kernel_ms(ClockId::Boottime)
    }

    fn boot_id(&self) -> Option<String> {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned())
    }
}

fn kernel_ms(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}

/// A clock for durations that are reported or bound a wait, never stored.
pub(crate) fn monotonic() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A moment at which store time and boot time are both known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// The boot that the boot time belongs to.
    pub(crate) boot_id: Option<String>,
    pub(crate) boottime_ms: i64,
    pub(crate) store_ms: i64,
}

impl Anchor {
    /// The anchor of this opening. `stored` is the anchor of the last opening, `high_water` the
    /// time of the last commit.
    pub(crate) fn resume(stored: Option<Anchor>, high_water: Time, source: &dyn TimeSource) -> Anchor {
        let boot_id = source.boot_id();
        let boottime_ms = source.boottime_ms();
        let continued = stored
            .filter(|anchor| anchor.boot_id.is_some() && anchor.boot_id == boot_id)
            // A boot clock behind its own past means a restored machine image: treat it as a new
            // boot.
            .and_then(|anchor| {
                let passed = boottime_ms.checked_sub(anchor.boottime_ms).filter(|ms| *ms >= 0)?;
                Some(anchor.store_ms.saturating_add(passed))
            });
        Anchor {
            boot_id,
            boottime_ms,
            store_ms: continued.unwrap_or_else(|| source.wall_ms()).max(high_water.ms()),
        }
    }
}

/// The running clock.
pub(crate) struct Clock {
    source: Arc<dyn TimeSource>,
    anchor: Anchor,
    latest_ms: AtomicI64,
}

impl Clock {
    pub(crate) fn new(source: Arc<dyn TimeSource>, anchor: Anchor) -> Clock {
        Clock { latest_ms: AtomicI64::new(anchor.store_ms), source, anchor }
    }

    pub(crate) fn now(&self) -> Time {
        let passed = self.source.boottime_ms().saturating_sub(self.anchor.boottime_ms).max(0);
        let ms = self.anchor.store_ms.saturating_add(passed);
        Time::from_ms(self.latest_ms.fetch_max(ms, Ordering::Relaxed).max(ms))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("anchor", &self.anchor).finish_non_exhaustive()
    }
}
