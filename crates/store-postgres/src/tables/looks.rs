//! When the sweep looks at a claim: a column that is written with the claim and found by an index.

use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::types::time::{Span, Time};

/// One part in this many of the replay window: so much later than it could, the sweep may come. More than a window's jitter and the
/// time a provider takes.
const LATE_PART: u64 = 32;

/// How looks are planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// When a claim is settled, for the very moment its window ends: all that tables before schema 13 know.
    OnceSettled,
    /// When it is made, for a moment by which a claim that is settled soon can be swept. Such a claim keeps that time until it is
    /// swept, so settling it changes no column of an index, and its row stays on its page.
    Ahead {
        /// That moment, counted from when the claim was made.
        after: Span,
        /// How much earlier its window may have ended.
        late_max: Span,
    },
}

impl Looks {
    /// For claims whose answers are mostly replayed that long.
    pub(crate) fn ahead(replay: Span) -> Looks {
        let late_max = replay.part(1, LATE_PART);
        Looks::Ahead { after: replay.plus(late_max), late_max }
    }

    /// When to look at the claim: never before its window ends. One that waits for somebody, perhaps for days, is not looked at.
    pub(crate) fn at(self, claim: &Claim) -> Option<Time> {
        let Looks::Ahead { after, late_max } = self else { return claim.sweep_at() };
        let planned = claim.created_at.plus(after);
        match &claim.state {
            ClaimState::InFlight(_) => Some(planned),
            ClaimState::FailedRetry { .. }
            | ClaimState::Uncertain(_)
            | ClaimState::Completed(_)
            | ClaimState::FailedTerminal(_)
            | ClaimState::Expired { .. } => claim.sweep_at().map(|over| {
                let keeps = over <= planned && planned.since(over) <= late_max;
                if keeps { planned } else { over }
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
        let looks = Looks::ahead(DAY);
        assert_eq!(looks.at(&claim(1)), Some(PLANNED));
        let policy = WindowPolicy { replay: DAY, tombstone: DAY, reuse: Reuse::Never };
        for number in 0..64 {
            let made = claim(number);
            for took in [Span::from_ms(1), MINUTE] {
                let windows = policy.windows(made.id, made.created_at.plus(took));
                assert_eq!(looks.at(&settled_until(windows.replay_until)), Some(PLANNED), "{number}");
            }
        }
    }

    #[test]
    fn no_claim_is_looked_at_before_its_window_ends_and_none_long_after() {
        let looks = Looks::ahead(DAY);
        let edge = NOW.plus(DAY);
        for over in [NOW, edge.minus(Span::from_ms(1)), PLANNED.plus(Span::from_ms(1)), PLANNED.plus(DAY)] {
            assert_eq!(looks.at(&settled_until(over)), Some(over));
        }
        for over in [edge, edge.plus(MINUTE), PLANNED] {
            assert_eq!(looks.at(&settled_until(over)), Some(PLANNED));
        }
    }

    #[test]
    fn what_waits_for_somebody_or_is_kept_for_good_is_not_looked_at() {
        let looks = Looks::ahead(DAY);
        for waits in [
            ClaimState::FailedRetry { not_before: NOW },
            ClaimState::Uncertain(Custody::Waiting { not_before: NOW }),
            ClaimState::Expired { tombstone_until: Time::MAX },
        ] {
            assert_eq!(looks.at(&in_state(waits)), None);
        }
        let tombstone_until = NOW.plus(DAY).plus(DAY);
        assert_eq!(looks.at(&in_state(ClaimState::Expired { tombstone_until })), Some(tombstone_until));
    }

    #[test]
    fn older_tables_are_told_when_it_is_settled() {
        assert_eq!(Looks::OnceSettled.at(&claim(1)), None);
        let over = NOW.plus(DAY).plus(MINUTE);
        assert_eq!(Looks::OnceSettled.at(&settled_until(over)), Some(over));
    }
}
