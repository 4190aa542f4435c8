//! A circuit breaker: enough failures in a row stop all calls for a while; then one probe at a time
//! is let through. Pure: time is an argument.

use counterfoil_core::payments::provider::{Cause, ProviderOutcome};
use counterfoil_core::types::time::{Span, Time};

/// The thresholds of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Failures in a row that open the breaker.
    pub failures: u32,
    /// Time from opening to the first probe.
    pub open: Span,
}

/// A circuit breaker: of a provider, a peer or the Redis server.
#[derive(Clone, Copy, Debug)]
pub struct Breaker {
    policy: BreakerPolicy,
    state: BreakerState,
}

/// Whether calls are let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls are let through.
    Closed {
        /// Failures in a row so far.
        failures: u32,
    },
    /// Calls are held back.
    Open {
        /// Time of the first probe.
        until: Time,
    },
    /// One probe is under way.
    Probing {
        /// The probe counts as lost at this time, and another may follow.
        until: Time,
    },
}

impl Breaker {
    /// A closed breaker.
    pub const fn new(policy: BreakerPolicy) -> Breaker {
        Breaker { policy, state: BreakerState::Closed { failures: 0 } }
    }

    pub const fn state(&self) -> BreakerState {
        self.state
    }

    /// Permits a call now, or returns how long to wait.
    pub fn permit(&mut self, now: Time) -> Result<(), Span> {
        match self.state {
            BreakerState::Closed { .. } => Ok(()),
            BreakerState::Open { until } | BreakerState::Probing { until } if now < until => {
                Err(until.since(now))
            }
            BreakerState::Open { .. } | BreakerState::Probing { .. } => {
                self.state = BreakerState::Probing { until: now.plus(self.policy.open) };
                Ok(())
            }
        }
    }

    /// Records the outcome of a call to a provider.
    pub fn learn(&mut self, outcome: &ProviderOutcome, now: Time) {
        match Health::of(outcome) {
            Health::Well => self.worked(),
            Health::Unclear => {}
            Health::Ill => self.failed(now),
        }
    }

    /// Records an answered call.
    pub const fn worked(&mut self) {
        self.state = BreakerState::Closed { failures: 0 };
    }

    /// Records a failed call.
    pub fn failed(&mut self, now: Time) {
        self.state = match self.state {
            BreakerState::Closed { failures } if failures.saturating_add(1) < self.policy.failures => {
                BreakerState::Closed { failures: failures.saturating_add(1) }
            }
            BreakerState::Closed { .. } | BreakerState::Probing { .. } => {
                BreakerState::Open { until: now.plus(self.policy.open) }
            }
            open @ BreakerState::Open { .. } => open,
        };
    }
}

/// Provider health, as far as one outcome tells.
pub(crate) enum Health {
    Well,
    Ill,
    /// Too many requests, by the provider's count or by ours: no evidence either way.
    Unclear,
}

impl Health {
    /// A provider that answers is well, even if it declines the card.
    pub(crate) fn of(outcome: &ProviderOutcome) -> Health {
        match outcome {
            ProviderOutcome::Approved(_)
            | ProviderOutcome::Declined(_)
            | ProviderOutcome::Rejected(_)
            | ProviderOutcome::Unknown(Cause::InProgress) => Health::Well,
            ProviderOutcome::Busy { .. } => Health::Unclear,
            ProviderOutcome::NotSent
            | ProviderOutcome::Unknown(
                Cause::Timeout | Cause::Cut | Cause::ServerError | Cause::Unreadable,
            ) => Health::Ill,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: ProviderOutcome = ProviderOutcome::NotSent;
    const UP: ProviderOutcome = ProviderOutcome::Unknown(Cause::InProgress);
    const BUSY: ProviderOutcome = ProviderOutcome::Busy { retry_after: None };

    fn at(ms: i64) -> Time {
        Time::from_ms(ms)
    }

    fn breaker() -> Breaker {
        Breaker::new(BreakerPolicy { failures: 3, open: Span::from_ms(100) })
    }

    #[test]
    fn the_breaker_opens_only_after_failures_in_a_row() {
        let mut breaker = breaker();
        for outcome in [&DOWN, &DOWN, &UP, &DOWN, &DOWN] {
            breaker.learn(outcome, at(0));
            assert_eq!(breaker.permit(at(0)), Ok(()));
        }
        breaker.learn(&DOWN, at(0));
        assert_eq!(breaker.permit(at(40)), Err(Span::from_ms(60)));
    }

    #[test]
    fn too_many_requests_say_nothing_about_health() {
        let mut breaker = breaker();
        for outcome in [&DOWN, &DOWN, &BUSY, &DOWN] {
            breaker.learn(outcome, at(0));
        }
        assert!(breaker.permit(at(0)).is_err(), "a busy answer between failures does not hide them");
        breaker.learn(&BUSY, at(0));
        assert!(breaker.permit(at(0)).is_err(), "nor does it close an open breaker");
    }

    #[test]
    fn one_probe_at_a_time_decides() {
        let mut breaker = breaker();
        (0..3).for_each(|_| breaker.learn(&DOWN, at(0)));
        assert_eq!(breaker.permit(at(100)), Ok(()), "the probe");
        assert!(breaker.permit(at(100)).is_err(), "not a second one");
        breaker.learn(&DOWN, at(110));
        assert_eq!(breaker.permit(at(150)), Err(Span::from_ms(60)));
        assert_eq!(breaker.permit(at(210)), Ok(()));
        breaker.learn(&UP, at(220));
        assert_eq!(breaker.permit(at(220)), Ok(()));
        assert_eq!(breaker.permit(at(220)), Ok(()));
    }

    #[test]
    fn a_lost_probe_is_followed_by_another() {
        let mut breaker = breaker();
        (0..3).for_each(|_| breaker.learn(&DOWN, at(0)));
        assert_eq!(breaker.permit(at(100)), Ok(()));
        assert_eq!(breaker.permit(at(200)), Ok(()));
    }
}
