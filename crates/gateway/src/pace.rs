//! The pace of recovery: how many payments may be worked on at once. Every answer raises the limit
//! by one, and every failure halves it. An outage leaves one probe at a time, and the backlog
//! afterwards drains no faster than the provider answers. Pure: the caller counts the work under
//! way.

use crate::breaker::Health;
use counterfoil_core::payments::provider::ProviderOutcome;

/// The concurrency limit of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    allowed: u32,
    running: u32,
    max: u32,
}

impl Pace {
    /// Starts at a quarter of `max`, the upper bound.
    pub const fn new(max: u32) -> Pace {
        let quarter = max / 4;
        Pace { allowed: if quarter == 0 { 1 } else { quarter }, running: 0, max }
    }

    /// The current limit.
    pub const fn allowed(&self) -> u32 {
        self.allowed
    }

    /// Takes a slot if one is free.
    pub const fn enter(&mut self) -> bool {
        if self.running >= self.allowed {
            return false;
        }
        self.running = self.running.saturating_add(1);
        true
    }

    /// Gives a slot back.
    pub const fn leave(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Records the outcome of any call to the provider. A requested pause also halves the limit.
    pub fn learn(&mut self, outcome: &ProviderOutcome) {
        self.allowed = match Health::of(outcome) {
            Health::Well => self.allowed.saturating_add(1).min(self.max),
            Health::Ill | Health::Unclear => (self.allowed / 2).max(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::payments::provider::Cause;
    use proptest::prelude::*;

    const DOWN: ProviderOutcome = ProviderOutcome::Unknown(Cause::ServerError);
    const BUSY: ProviderOutcome = ProviderOutcome::Busy { retry_after: None };
    /// A provider that answers is well, regardless of the answer.
    const WELL: ProviderOutcome = ProviderOutcome::Unknown(Cause::InProgress);

    #[test]
    fn an_outage_leaves_one_at_a_time_and_every_answer_allows_one_more() {
        let mut pace = Pace::new(64);
        assert_eq!(pace.allowed(), 16);
        for _ in 0..9 {
            pace.learn(&DOWN);
        }
        assert_eq!(pace.allowed(), 1);
        assert!(pace.enter() && !pace.enter());
        pace.learn(&WELL);
        assert!(pace.enter() && !pace.enter());
        for _ in 0..100 {
            pace.learn(&WELL);
        }
        assert_eq!(pace.allowed(), 64);
    }

    #[test]
    fn a_requested_pause_halves_the_pace() {
        let mut pace = Pace::new(64);
        pace.learn(&BUSY);
        assert_eq!(pace.allowed(), 8);
    }

    proptest! {
        #[test]
        fn the_pace_never_exceeds_its_limit_and_never_stops_for_ever(steps in prop::collection::vec(0_u8..4, 1..300)) {
            let mut pace = Pace::new(32);
            let mut running = 0_u32;
            for step in steps {
                match step {
                    0 => {
                        let before = pace.allowed();
                        let entered = pace.enter();
                        prop_assert_eq!(entered, running < before);
                        running += u32::from(entered);
                    }
                    1 if running > 0 => {
                        pace.leave();
                        running -= 1;
                    }
                    2 => pace.learn(&DOWN),
                    _ => pace.learn(&WELL),
                }
                prop_assert!((1..=32).contains(&pace.allowed()));
            }
            while running > 0 {
                pace.leave();
                running -= 1;
            }
            prop_assert!(pace.enter(), "one may always try");
        }
    }
}
