//! CPU use of other programs during a measurement. Figures of a busy machine must say so.

use crate::failure::{Failure, Result};
use std::time::Duration;

/// CPU time of the whole machine so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Machine {
    busy: Duration,
    total: Duration,
}

impl Machine {
    pub(super) fn read() -> Result<Machine> {
        let text = std::fs::read_to_string("/proc/stat").map_err(Failure::while_("reading /proc/stat"))?;
        Machine::parse(&text, rustix::param::clock_ticks_per_second())
            .ok_or_else(|| Failure::new("/proc/stat is unreadable"))
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal; user includes guests.
    fn parse(text: &str, ticks_per_second: u64) -> Option<Machine> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let ticks: Vec<u64> = fields.take(8).filter_map(|field| field.parse().ok()).collect();
        let &[user, nice, system, idle, iowait, irq, softirq, steal] = ticks.as_slice() else { return None };
        let time =
            |ticks: u64| Duration::from_micros(ticks.saturating_mul(1_000_000) / ticks_per_second.max(1));
        let busy = time(user + nice + system + irq + softirq + steal);
        Some(Machine { busy, total: busy + time(idle + iowait) })
    }
}

/// Adds up the shares over all measurements of a run.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    theirs: Duration,
    total: Duration,
}

impl Neighbours {
    /// Adds a measurement; `own` is the CPU time of our processes in it.
    pub(super) fn add(&mut self, before: Machine, after: Machine, own: Duration) {
        self.theirs += after.busy.saturating_sub(before.busy).saturating_sub(own);
        self.total += after.total.saturating_sub(before.total);
    }

    /// The other programs' share of the machine, in percent.
    pub(super) fn percent(&self) -> f64 {
        super::targets::percent(self.theirs.as_secs_f64(), self.total.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_that_is_not_ours_belongs_to_other_programs() {
        let before = Machine::parse("cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 1\n", 100).unwrap();
        let after = Machine::parse("cpu  200 10 60 200 20 5 5 20 0 0\n", 100).unwrap();
        let mut neighbours = Neighbours::default();
        neighbours.add(before, after, Duration::from_secs(1));
        // 2 s busy of 3.2 s, 1 s of it ours.
        assert_eq!(format!("{:.2}", neighbours.percent()), "31.25");
        assert_eq!(Machine::parse("intr 1", 100), None);
        assert!(Machine::read().is_ok());
    }
}
