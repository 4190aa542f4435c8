//! Lanes: the provider and each peer have their own circuit breaker and recovery pace. A lane that
//! is down delays only the payments bound to it.

use crate::policy::RECOVERIES_MAX;
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::ProviderOutcome;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::breaker::{Breaker, BreakerPolicy, BreakerState};
use counterfoil_gateway::pace::Pace;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lanes by peer name; `None` is the provider. A lane is made on first use.
pub(crate) struct Lanes {
    policy: BreakerPolicy,
    lanes: Mutex<HashMap<Option<String>, Lane>>,
}

struct Lane {
    breaker: Breaker,
    pace: Pace,
}

/// A change of a circuit breaker's state.
pub(crate) struct BreakerChange {
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The worst state among all peers, or the provider's own: peers share one profile and one
    /// metric.
    pub(crate) worst: i64,
}

impl Lanes {
    pub(crate) fn new(policy: BreakerPolicy) -> Lanes {
        Lanes { policy, lanes: Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Option<String>, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, binding: &ProviderBinding, act: impl FnOnce(&mut Lane) -> T) -> T {
        let mut all = self.all();
        let new_lane = || Lane { breaker: Breaker::new(self.policy), pace: Pace::new(RECOVERIES_MAX) };
        act(all.entry(binding.peer().map(str::to_owned)).or_insert_with(new_lane))
    }

    /// Whether a call may be sent now; if not, how long to wait.
    pub(crate) fn permit(&self, binding: &ProviderBinding, now: Time) -> Result<(), Span> {
        self.with(binding, |lane| lane.breaker.permit(now))
    }

    /// Feeds the result of a call to breaker and pace.
    pub(crate) fn learn(
        &self,
        binding: &ProviderBinding,
        outcome: &ProviderOutcome,
        now: Time,
    ) -> Option<BreakerChange> {
        let (from, to) = self.with(binding, |lane| {
            lane.pace.learn(outcome);
            let before = number(lane.breaker.state());
            lane.breaker.learn(outcome, now);
            (before, number(lane.breaker.state()))
        });
        (from != to).then(|| BreakerChange { from, to, worst: self.worst(binding.peer().is_some()) })
    }

    /// The worst breaker state of the peers, or the provider's.
    fn worst(&self, of_peers: bool) -> i64 {
        let all = self.all();
        let alike = all.iter().filter(|(name, _)| name.is_some() == of_peers);
        alike.map(|(_, lane)| number(lane.breaker.state())).max().unwrap_or(0)
    }

    /// Takes a recovery slot, if any is free.
    pub(crate) fn enter(&self, binding: &ProviderBinding) -> bool {
        self.with(binding, |lane| lane.pace.enter())
    }

    /// Frees a recovery slot.
    pub(crate) fn leave(&self, binding: &ProviderBinding) {
        self.with(binding, |lane| lane.pace.leave());
    }
}

const fn number(state: BreakerState) -> i64 {
    match state {
        BreakerState::Closed { .. } => 0,
        BreakerState::Probing { .. } => 1,
        BreakerState::Open { .. } => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::types::peer::PeerName;

    #[test]
    fn a_peer_that_is_down_delays_no_other_lane() {
        let lanes = Lanes::new(BreakerPolicy { failures: 2, open: Span::from_ms(1_000) });
        let peer = |name: &str| ProviderBinding::to_peer(&PeerName::parse(name).unwrap(), "http://p", "ac_1");
        let card = ProviderBinding { profile: "stripe".into(), endpoint: "http://p".into() };
        let (eu, us, now) = (peer("eu"), peer("us"), Time::EPOCH);
        assert!(lanes.learn(&eu, &ProviderOutcome::NotSent, now).is_none());
        let moved = lanes.learn(&eu, &ProviderOutcome::NotSent, now).unwrap();
        assert_eq!((moved.from, moved.to, moved.worst), (0, 2, 2));
        assert_eq!(lanes.permit(&eu, now), Err(Span::from_ms(1_000)));
        for other in [&us, &card] {
            assert_eq!(lanes.permit(other, now), Ok(()));
        }
        for _ in 0..20 {
            lanes.learn(&eu, &ProviderOutcome::NotSent, now);
        }
        assert!(lanes.enter(&eu) && !lanes.enter(&eu), "one probe at a time");
        assert!(lanes.enter(&us) && lanes.enter(&us) && lanes.enter(&card) && lanes.enter(&card));
        lanes.leave(&eu);
        assert!(lanes.enter(&eu));
    }
}
