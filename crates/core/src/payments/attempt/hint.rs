//! A hint that there may be news of a payment: work that only waits to be tried again is looked at now.
//!
//! A hint is never evidence. It brings a question forward that would be asked anyway, under the same rules; what follows
//! is the provider's answer to that question. Waits are drawn at random and may be nothing at all, so no rule rests on
//! them; what a rule does rest on, a hint leaves alone.

use super::next::{ERRORS_BEFORE_QUERY, NextCall, next};
use crate::idempotency::claim::{Claim, ClaimState, Custody};
use crate::outbox::Outbox;
use crate::payments::provider::Rules;
use crate::types::time::Time;

/// The work, due now; nothing if it must stay as it is.
///
/// It stays where somebody is at work (their lease says when it is over, and their next write expects the row as they
/// know it), where certainly nothing was executed (there is nothing to learn, and each call that changes nothing counts
/// against the payment), and where nothing can be learnt before the provider is quiescent. Where nobody can be asked,
/// answers that say nothing bring a human closer; after the first few of them hints bring no more.
pub fn hint(rules: &Rules, claim: &Claim, outbox: &Outbox, now: Time) -> Option<Outbox> {
    let waits = match claim.state {
        ClaimState::Uncertain(Custody::Waiting { .. }) => outbox.due_at > now,
        ClaimState::InFlight(_)
        | ClaimState::FailedRetry { .. }
        | ClaimState::Uncertain(Custody::Held(_))
        | ClaimState::Completed(_)
        | ClaimState::FailedTerminal(_)
        | ClaimState::Expired { .. } => false,
    };
    let history = &outbox.history;
    let patient = rules.queryable || history.server_errors < ERRORS_BEFORE_QUERY;
    if !waits || !history.unknown || !patient {
        return None;
    }
    match next(rules, outbox, claim.attempts.saturating_add(1), now) {
        NextCall::Call | NextCall::Query => {
            Some(Outbox { due_at: now, revision: outbox.revision.saturating_add(1), ..outbox.clone() })
        }
        NextCall::Wait(_) | NextCall::Park(_) => None,
    }
}
