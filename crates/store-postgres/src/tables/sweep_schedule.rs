//! The time at which the sweep visits a claim: an indexed column that is written with the claim.

use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::types::time::{Span, Time};

/// The sweep may run up to 1/32 of the replay window late. That is more than the jitter of a window
/// plus the time that a provider takes.
const LATE_PART: u64 = 32;

/// Plans the sweep of a claim when the claim is made, for a moment by which a claim that settles
/// soon can be swept. Settling such a claim changes no indexed column, so its row is updated in
/// place (HOT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SweepSchedule {
    /// The planned visit, counted from the creation of the claim.
    after: Span,
    /// How much earlier than the planned visit the window may have ended.
    late_max: Span,
}

impl SweepSchedule {
    /// A schedule for claims whose answers are usually replayed for `window`.
    pub(crate) fn for_window(window: Span) -> SweepSchedule {
        let late_max = window.part(1, LATE_PART);
        SweepSchedule { after: window.plus(late_max), late_max }
    }

    /// The time of the visit, never before the claim's window ends. Claims that wait for an
    /// operator, perhaps for days, are not visited.
    pub(crate) fn sweep_at(self, claim: &Claim) -> Option<Time> {
        let planned = claim.created_at.plus(self.after);
        match &claim.state {
            ClaimState::InFlight(_) => Some(planned),
            ClaimState::FailedRetry { .. }
            | ClaimState::Uncertain(_)
            | ClaimState::Completed(_)
            | ClaimState::FailedTerminal(_)
            | ClaimState::Expired { .. } => claim.sweep_at().map(|window_end| {
                let keeps_plan = window_end <= planned && planned.since(window_end) <= self.late_max;
                if keeps_plan { planned } else { window_end }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::idempotency::claim::Custody;
    use counterfoil_core::idempotency::window::{Reuse, WindowPolicy};
    use counterfoil_store::conformance::fixtures::{NOW, claim, settled};

    const MINUTE: Span = Span::from_ms(60_000);
    const DAY: Span = Span::from_ms(86_400_000);
    /// A day and three quarters of an hour.
    const PLANNED: Time = NOW.plus(DAY).plus(Span::from_ms(45 * 60_000));

    fn in_state(state: ClaimState) -> Claim {
        Claim { state, ..claim(1) }
    }

    fn settled_until(replay_until: Time) -> Claim {
        in_state(ClaimState::Completed(settled(b"answer", replay_until)))
    }

    #[test]
    fn a_claim_that_is_settled_soon_keeps_its_time() {
        let schedule = SweepSchedule::for_window(DAY);
        assert_eq!(schedule.sweep_at(&claim(1)), Some(PLANNED));
        let policy = WindowPolicy { replay: DAY, tombstone: DAY, reuse: Reuse::Never };
        for number in 0..64 {
            let made = claim(number);
            for took in [Span::from_ms(1), MINUTE] {
                let windows = policy.windows(made.id, made.created_at.plus(took));
                assert_eq!(
                    schedule.sweep_at(&settled_until(windows.replay_until)),
                    Some(PLANNED),
                    "{number}"
                );
            }
        }
    }

    #[test]
    fn claims_are_never_visited_before_their_window_ends_nor_long_after() {
        let schedule = SweepSchedule::for_window(DAY);
        let edge = NOW.plus(DAY);
        for end in [NOW, edge.minus(Span::from_ms(1)), PLANNED.plus(Span::from_ms(1)), PLANNED.plus(DAY)] {
            assert_eq!(schedule.sweep_at(&settled_until(end)), Some(end));
        }
        for end in [edge, edge.plus(MINUTE), PLANNED] {
            assert_eq!(schedule.sweep_at(&settled_until(end)), Some(PLANNED));
        }
    }

    #[test]
    fn claims_that_wait_or_are_kept_forever_are_not_visited() {
        let schedule = SweepSchedule::for_window(DAY);
        for waits in [
            ClaimState::FailedRetry { not_before: NOW },
            ClaimState::Uncertain(Custody::Waiting { not_before: NOW }),
            ClaimState::Expired { tombstone_until: Time::MAX },
        ] {
            assert_eq!(schedule.sweep_at(&in_state(waits)), None);
        }
        let tombstone_until = NOW.plus(DAY).plus(DAY);
        assert_eq!(
            schedule.sweep_at(&in_state(ClaimState::Expired { tombstone_until })),
            Some(tombstone_until)
        );
    }
}
