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
    /// The earliest instant at which evidence is possible.
    Wait(Time),
    /// Only a human can continue.
    Park(ParkReason),
}

/// Server errors or unreadable answers after which every second attempt is a query. The provider
/// may store and replay an error for as long as the key is remembered.
pub(super) const ERRORS_BEFORE_QUERY: u32 = 2;
/// Server errors after which no more calls are made. Every further call would delay the instant at
/// which "not found" is proof, and twenty errors in a row are no coincidence.
const ERRORS_BEFORE_CALLS_END: u32 = 20;

/// Chooses the next action for `outbox` at `now`. `attempt` counts the claim's attempts.
pub fn next(rules: &Rules, outbox: &Outbox, attempt: u32, now: Time) -> NextCall {
    if let Some(reason) = outbox.parked {
        return NextCall::Park(reason);
    }
    let history = &outbox.history;
    if !history.unknown {
        // No call can have had an effect, so a new one is safe.
        return NextCall::Call;
    }
    // A call may have had an effect. Only a repetition that the provider recognises is safe.
    if is_recognised(rules, history, now) {
        let errors = history.server_errors;
        let calls_end = errors >= ERRORS_BEFORE_CALLS_END;
        let query_is_due = errors >= ERRORS_BEFORE_QUERY && attempt.is_multiple_of(2);
        return if rules.queryable && (calls_end || query_is_due) {
            NextCall::Query
        } else if calls_end {
            NextCall::Park(ParkReason::NoEvidence)
        } else {
            NextCall::Call
        };
    }
    // Only proof is left: a query after quiescence.
    if !rules.queryable {
        return NextCall::Park(ParkReason::NoEvidence);
    }
    let quiet_at = quiescent_at(rules, history);
    if now < quiet_at { NextCall::Wait(quiet_at) } else { NextCall::Query }
}

/// Whether the provider certainly recognises a repeated call. Half of the deduplication window is
/// the safety margin. A provider may execute a key again after an error, and the error may have
/// been lost on the way to us.
pub(super) fn is_recognised(rules: &Rules, history: &History, now: Time) -> bool {
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
    fn a_clean_history_leads_to_a_call() {
        assert_eq!(next(&STRIPE, &outbox(sent(false, 5)), 3, at(9_999)), NextCall::Call);
    }

    #[test]
    fn an_unknown_call_is_repeated_only_while_the_provider_remembers_it() {
        assert_eq!(next(&STRIPE, &outbox(sent(true, 0)), 2, at(719)), NextCall::Call);
        assert_eq!(next(&STRIPE, &outbox(sent(true, 0)), 2, at(720)), NextCall::Query);
    }

    #[test]
    fn repeated_errors_lead_to_a_query_every_other_time() {
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
    fn endless_errors_without_queries_are_parked() {
        let rules = Rules { queryable: false, ..STRIPE };
        assert_eq!(next(&rules, &outbox(sent(true, 19)), 4, at(1)), NextCall::Call);
        assert_eq!(next(&rules, &outbox(sent(true, 20)), 4, at(1)), NextCall::Park(ParkReason::NoEvidence));
    }

    #[test]
    fn without_deduplication_nothing_is_queried_before_quiescence() {
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
    fn without_any_evidence_the_work_is_parked() {
        let rules = Rules { dedup_window: None, queryable: false, ..STRIPE };
        assert_eq!(next(&rules, &outbox(sent(true, 0)), 2, at(1)), NextCall::Park(ParkReason::NoEvidence));
    }
}
