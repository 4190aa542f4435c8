//! Chooses the next action for due work: call, query, wait or park. The choice is never a guess.

use crate::outbox::{History, Outbox, ParkReason};
use crate::payments::provider::Rules;
use crate::types::time::{Span, Time};

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCall {
    /// Call the provider with the key of the current generation.
    Call,
    /// Query the provider for the payment.
    Query,
    /// No evidence is available before this instant.
    Wait(Time),
    /// Only a human can continue.
    Park(ParkReason),
}

/// Server errors or unreadable answers after which every other attempt is a query. The provider may
/// have stored its error and replay it until it forgets the key.
pub(super) const ERRORS_BEFORE_QUERY: u32 = 2;
/// Server errors after which all attempts are queries. Every further call would delay the instant
/// at which "not found" is proof, and twenty errors in a row are no coincidence.
const ERRORS_BEFORE_SILENCE: u32 = 20;

/// Chooses the next action for `outbox` at `now`. `attempt` counts the claim's attempts.
pub fn next(rules: &Rules, outbox: &Outbox, attempt: u32, now: Time) -> NextCall {
    if let Some(park) = outbox.parked {
        return NextCall::Park(park);
    }
    let history = &outbox.history;
    if !history.unknown {
        return NextCall::Call;
    }
    // A call may have been executed: only a call that the provider recognises as a repetition is
    // safe.
    if recognised(rules, history, now) {
        let stuck = history.server_errors >= ERRORS_BEFORE_QUERY;
        let silent = history.server_errors >= ERRORS_BEFORE_SILENCE;
        if !rules.queryable {
            // The provider cannot be queried and its errors do not end, so only a human can find
            // out.
            return if silent { NextCall::Park(ParkReason::NoEvidence) } else { NextCall::Call };
        }
        return if silent || (stuck && attempt.is_multiple_of(2)) { NextCall::Query } else { NextCall::Call };
    }
    if !rules.queryable {
        return NextCall::Park(ParkReason::NoEvidence);
    }
    let quiet_at = quiescent_at(rules, history);
    if now < quiet_at { NextCall::Wait(quiet_at) } else { NextCall::Query }
}

/// Whether the provider certainly recognises a repeated call. Half of the deduplication window is
/// the safety margin. A provider that executes a key again after an error may have sent one that
/// never reached us.
pub(super) fn recognised(rules: &Rules, history: &History, now: Time) -> bool {
    let Some(window) = rules.dedup_window else {
        return false;
    };
    let half = window.part(1, 2);
    now < history.first_sent_at.plus(half) && !rules.reexecutes_errors
}

/// The instant from which "not found" is proof: no request can still leave or arrive, and every
/// effect is visible.
///
/// After a takeover, `last_sent_at` is the last instant at which the lost holder could begin a
/// call. Its bytes may leave up to `send_within` later. A call of our own has left by then and
/// needs no such wait. The history does not distinguish the two cases, and waiting too long is
/// safe.
pub fn quiescent_at(rules: &Rules, history: &History) -> Time {
    let left_by = history.last_sent_at.plus(rules.send_within);
    left_by.plus(rules.late_delivery).plus(rules.query_lag).plus(Span::from_ms(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idempotency::claim::ClaimId;
    use crate::outbox::{Flow, Payment, ProviderBinding, Saga};
    use crate::saga::progress::SagaProgress;
    use crate::types::digest::Digest;
    use crate::types::id::{ChargeId, TenantId};

    const MINUTE: Span = Span::from_ms(60_000);
    const STRIPE: Rules = Rules {
        dedup_window: Some(Span::from_ms(86_400_000)),
        stores_errors: true,
        reexecutes_errors: false,
        queryable: true,
        send_within: Span::from_ms(20_000),
        late_delivery: MINUTE,
        query_lag: MINUTE,
        key_bytes_max: 255,
    };

    fn outbox(history: History) -> Outbox {
        Outbox {
            id: ChargeId::from_i64(1).into(),
            payment: Payment::Charge(ChargeId::from_i64(1)),
            saga: Saga { flow: Flow::Charge, version: 1, progress: SagaProgress::START },
            hold: None,
            claim: ClaimId::from_digest(Digest::from_bytes([0; 32])),
            tenant: TenantId::from_i64(1),
            provider: ProviderBinding { profile: "stripe".into(), endpoint: "http://p".into() },
            due_at: Time::EPOCH,
            created_at: Time::EPOCH,
            history,
            parked: None,
            revision: 1,
        }
    }

    fn sent(unknown: bool, server_errors: u32) -> History {
        History {
            generation: 1,
            idle_calls: 0,
            unknown,
            server_errors,
            first_sent_at: Time::EPOCH,
            last_sent_at: Time::EPOCH,
        }
    }

    fn at(minutes: u64) -> Time {
        Time::EPOCH.plus(Span::from_ms(minutes * 60_000))
    }

    #[test]
    fn a_clean_history_is_called() {
        assert_eq!(next(&STRIPE, &outbox(sent(false, 5)), 3, at(9_999)), NextCall::Call);
    }

    #[test]
    fn an_unknown_one_is_called_again_only_while_the_provider_remembers() {
        assert_eq!(next(&STRIPE, &outbox(sent(true, 0)), 2, at(719)), NextCall::Call);
        assert_eq!(next(&STRIPE, &outbox(sent(true, 0)), 2, at(720)), NextCall::Query);
    }

    #[test]
    fn stored_errors_are_asked_about_every_other_time() {
        let stuck = outbox(sent(true, 2));
        assert_eq!(next(&STRIPE, &stuck, 3, at(1)), NextCall::Call);
        assert_eq!(next(&STRIPE, &stuck, 4, at(1)), NextCall::Query);
        assert_eq!(
            next(&STRIPE, &outbox(sent(true, 20)), 3, at(1)),
            NextCall::Query,
            "and after twenty errors it is only asked"
        );
    }

    #[test]
    fn what_cannot_be_asked_about_and_says_nothing_again_and_again_is_a_humans() {
        let rules = Rules { queryable: false, ..STRIPE };
        assert_eq!(next(&rules, &outbox(sent(true, 19)), 4, at(1)), NextCall::Call);
        assert_eq!(next(&rules, &outbox(sent(true, 20)), 4, at(1)), NextCall::Park(ParkReason::NoEvidence));
    }

    #[test]
    fn without_deduplication_nothing_is_asked_before_quiescence() {
        let rules = Rules { dedup_window: None, ..STRIPE };
        let quiet = Time::EPOCH.plus(Span::from_ms(140_001));
        assert_eq!(next(&rules, &outbox(sent(true, 0)), 2, at(1)), NextCall::Wait(quiet));
        assert_eq!(next(&rules, &outbox(sent(true, 0)), 2, quiet), NextCall::Query);
    }

    #[test]
    fn a_provider_that_reexecutes_errors_is_never_called_blindly() {
        let rules = Rules { reexecutes_errors: true, stores_errors: false, ..STRIPE };
        let quiet = Time::EPOCH.plus(Span::from_ms(140_001));
        for errors in [0, 1] {
            assert_eq!(next(&rules, &outbox(sent(true, errors)), 2, at(1)), NextCall::Wait(quiet));
            assert_eq!(next(&rules, &outbox(sent(true, errors)), 2, at(3)), NextCall::Query);
        }
    }

    #[test]
    fn without_any_evidence_a_human_is_called() {
        let rules = Rules { dedup_window: None, queryable: false, ..STRIPE };
        assert_eq!(next(&rules, &outbox(sent(true, 0)), 2, at(1)), NextCall::Park(ParkReason::NoEvidence));
    }
}
