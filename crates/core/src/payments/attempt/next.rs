//! What to do next for a payment whose work is due: call, ask, wait or call a human. Never a guess.

use crate::outbox::{History, Outbox, ParkReason};
use crate::payments::provider::Rules;
use crate::types::time::{Span, Time};

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCall {
    /// Call the provider with the key of this generation.
    Call,
    /// Ask the provider what it knows.
    Query,
    /// Nothing can be learnt before this instant.
    Wait(Time),
    /// Only a human can go on.
    Park(ParkReason),
}

/// Server errors, or answers that say nothing, after which a provider is asked every other time: it may have stored its
/// error and repeat it for as long as it remembers the key.
pub(super) const ERRORS_BEFORE_QUERY: u32 = 2;
/// Server errors after which it is only asked: every further call would put off the moment when "not found" is proof.
/// So many in a row are no bad luck any more.
const ERRORS_BEFORE_SILENCE: u32 = 20;

/// Decides the next thing to do for `outbox` at `now`. `attempt` counts the claim's attempts.
pub fn next(rules: &Rules, outbox: &Outbox, attempt: u32, now: Time) -> NextCall {
    if let Some(park) = outbox.parked {
        return NextCall::Park(park);
    }
    let history = &outbox.history;
    if !history.unknown {
        return NextCall::Call;
    }
    // Something may have been executed: from here on a call must be one the provider recognises as the same.
    if recognised(rules, history, now) {
        let stuck = history.server_errors >= ERRORS_BEFORE_QUERY;
        let silent = history.server_errors >= ERRORS_BEFORE_SILENCE;
        if !rules.queryable {
            // The same nothing again and again, and nobody to ask: a human can find out more.
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

/// Whether a repeated call is sure to be recognised: well inside the window, and by a provider that never executes a
/// key again. One that does so after its own errors may have given one we never saw.
pub(super) fn recognised(rules: &Rules, history: &History, now: Time) -> bool {
    let Some(window) = rules.dedup_window else {
        return false;
    };
    let half = window.part(1, 2);
    now < history.first_sent_at.plus(half) && !rules.reexecutes_errors
}

/// From this instant on, "not found" is proof: nothing can still be sent or arrive, and every effect is visible.
///
/// After a take-over `last_sent_at` is only when the lost holder could last begin a call; its bytes may leave up to
/// `send_within` later. A call whose outcome is known to be unknown has left by then, and waits this long for nothing:
/// the history does not say which of the two it was, and too late is safe.
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
