//! Handles a hint that a payment may have news: waiting work is retried now.
//!
//! A hint is never evidence. It advances a query or call that is due later anyway, and the
//! provider's answer decides. Retry delays are random and may be zero, so no rule depends on them.
//! A hint leaves every delay alone that a rule depends on.

use super::next::{ERRORS_BEFORE_QUERY, NextCall, next};
use crate::idempotency::claim::{Claim, ClaimState, Custody};
use crate::outbox::Outbox;
use crate::payments::provider::Rules;
use crate::types::time::Time;

/// The work with its due time moved to now; `None` if the hint must not change it.
///
/// The hint changes nothing in these cases:
///
/// - A holder has the lease. Its next write expects the row unchanged.
/// - Certainly nothing was executed. There is no news, and calls without effect count against the
///   payment.
/// - The work is due already.
/// - The provider cannot be queried and keeps sending server errors. Each error brings parking
///   closer.
/// - No evidence is available before the provider is quiescent.
pub fn hint(rules: &Rules, claim: &Claim, outbox: &Outbox, now: Time) -> Option<Outbox> {
    let is_waiting_in_doubt = match claim.state {
        ClaimState::Uncertain(Custody::Waiting { .. }) => outbox.history.unknown,
        ClaimState::InFlight(_)
        | ClaimState::FailedRetry { .. }
        | ClaimState::Uncertain(Custody::Held(_))
        | ClaimState::Completed(_)
        | ClaimState::FailedTerminal(_)
        | ClaimState::Expired { .. } => false,
    };
    if !is_waiting_in_doubt || outbox.due_at <= now {
        return None;
    }
    if !rules.queryable && outbox.history.server_errors >= ERRORS_BEFORE_QUERY {
        return None;
    }
    match next(rules, outbox, claim.attempts.saturating_add(1), now) {
        NextCall::Call | NextCall::Query => {
            Some(Outbox { due_at: now, revision: outbox.revision.saturating_add(1), ..outbox.clone() })
        }
        NextCall::Wait(_) | NextCall::Park(_) => None,
    }
}
