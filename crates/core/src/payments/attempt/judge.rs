//! Judges an attempt: the meaning of the provider's answer for the attempted step.
//!
//! Counting attempts never makes an outcome terminal that may have charged.

use super::next::{is_recognised, quiescent_at};
use crate::outbox::{History, ParkReason};
use crate::payments::charge::{FailureCode, PaymentFailure};
use crate::payments::provider::{
    Approval, Cause, LookupResult, ProviderFault, ProviderOutcome, ProviderStep, Rules,
};
use crate::types::asset::Asset;
use crate::types::time::{Span, Time};

/// The verdict on an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// The provider executed the step.
    Done(Approval),
    /// The step was certainly not executed and never will be.
    Failed {
        failure: PaymentFailure,
        /// The provider's reference, where known.
        reference: Option<String>,
    },
    /// The call certainly had no effect; try again.
    Retry {
        /// The provider's requested pause.
        at_least: Span,
        history: History,
    },
    /// The call may have had an effect; look for evidence.
    Doubt {
        /// The earliest instant at which evidence is possible.
        not_before: Time,
        history: History,
    },
    /// Only a human can continue.
    Park {
        reason: ParkReason,
        /// The provider's reference, where known.
        reference: Option<String>,
    },
}

/// The facts that an attempt is judged on.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    pub step: ProviderStep,
    /// The amount of the step, in minor units of `asset`.
    pub amount_minor: i64,
    pub asset: Asset,
    /// The history before the attempt.
    pub history: &'a History,
    /// The payment's public reference, which the provider must repeat.
    pub reference: &'a str,
    /// The number of allowed calls without effect.
    pub attempts_max: u32,
    /// The time at which the attempt ended.
    pub now: Time,
}

/// Judges the outcome of a call.
pub fn judge_outcome(attempt: Attempt<'_>, rules: &Rules, outcome: &ProviderOutcome) -> AttemptVerdict {
    match outcome {
        ProviderOutcome::Approved(approval) => judge_approval(attempt, approval),
        ProviderOutcome::Declined(_) if decline_is_one_of_several(attempt.history, rules, attempt.now) => {
            still_in_doubt(attempt)
        }
        ProviderOutcome::Declined(decline) => AttemptVerdict::Failed {
            failure: PaymentFailure {
                code: attempt.step.declined(),
                decline_code: decline.decline_code.clone(),
            },
            reference: decline.reference.clone(),
        },
        // A rejection answers this call only; an earlier call with the same key may have been
        // executed. The rejection may also come from a proxy that knows nothing about keys.
        ProviderOutcome::Rejected(_) if attempt.history.unknown => {
            let mut history = *attempt.history;
            history.server_errors = history.server_errors.saturating_add(1);
            AttemptVerdict::Doubt { not_before: attempt.now, history }
        }
        ProviderOutcome::Rejected(rejection) => failed_with(match rejection.fault {
            ProviderFault::Request => FailureCode::GatewayRejected,
            ProviderFault::Credentials => FailureCode::GatewayUnauthorized,
        }),
        ProviderOutcome::Busy { retry_after } => {
            judge_without_effect(attempt, retry_after.unwrap_or(Span::ZERO))
        }
        ProviderOutcome::NotSent => judge_without_effect(attempt, Span::ZERO),
        ProviderOutcome::Unknown(cause) => judge_unknown(attempt, *cause),
    }
}

/// Judges the result of a status query.
pub fn judge_query(attempt: Attempt<'_>, rules: &Rules, found: &LookupResult) -> AttemptVerdict {
    match found {
        LookupResult::Payment(outcome @ (ProviderOutcome::Approved(_) | ProviderOutcome::Declined(_))) => {
            judge_outcome(attempt, rules, outcome)
        }
        LookupResult::Payment(
            ProviderOutcome::Rejected(_)
            | ProviderOutcome::Busy { .. }
            | ProviderOutcome::NotSent
            | ProviderOutcome::Unknown(_),
        ) => {
            // The payment exists without a final state. Once the provider has forgotten the key, no
            // repetition can complete it.
            let forgotten =
                rules.dedup_window.is_some() && !is_recognised(rules, attempt.history, attempt.now);
            if forgotten { park(ParkReason::NoEvidence) } else { still_in_doubt(attempt) }
        }
        LookupResult::Several => park(ParkReason::Contradiction),
        // The payment may not have arrived yet, or may not be visible yet.
        LookupResult::Nothing if attempt.now < quiescent_at(rules, attempt.history) => {
            still_in_doubt(attempt)
        }
        LookupResult::Nothing => {
            // Proof that nothing was executed and nothing can still arrive. The next generation has
            // a fresh key and so avoids stored errors.
            let history = History {
                generation: attempt.history.generation.saturating_add(1),
                idle_calls: attempt.history.idle_calls,
                ..History::begun(attempt.now)
            };
            AttemptVerdict::Doubt { not_before: attempt.now, history }
        }
        LookupResult::Unclear(_) => still_in_doubt(attempt),
    }
}

const fn still_in_doubt(attempt: Attempt<'_>) -> AttemptVerdict {
    AttemptVerdict::Doubt { not_before: attempt.now, history: *attempt.history }
}

/// Whether a decline may leave another call undecided. If repetitions execute separately, the
/// decline covers only the last call. Until quiescence, the provider may still approve an earlier
/// call.
pub fn decline_is_one_of_several(history: &History, rules: &Rules, now: Time) -> bool {
    let repeats = rules.dedup_window.is_none() || rules.reexecutes_errors;
    history.unknown && repeats && now < quiescent_at(rules, history)
}

/// Accepts an approval only if it matches our request: state of the money, amount, asset and
/// payment reference. A void has no amount to compare.
fn judge_approval(attempt: Attempt<'_>, approval: &Approval) -> AttemptVerdict {
    let amount_matches = match attempt.step {
        ProviderStep::Void => true,
        ProviderStep::Charge
        | ProviderStep::Authorize
        | ProviderStep::Capture
        | ProviderStep::Refund
        | ProviderStep::Payout => {
            approval.amount_minor == attempt.amount_minor && approval.asset == Some(attempt.asset)
        }
    };
    let matches = amount_matches
        && approval.stands == attempt.step.leads_to()
        && approval.payment.as_deref().is_none_or(|payment| payment == attempt.reference);
    if matches {
        AttemptVerdict::Done(approval.clone())
    } else {
        AttemptVerdict::Park {
            reason: ParkReason::AnswerDiffers,
            reference: Some(approval.reference.clone()),
        }
    }
}

const fn failed_with(code: FailureCode) -> AttemptVerdict {
    AttemptVerdict::Failed { failure: PaymentFailure { code, decline_code: None }, reference: None }
}

/// Judges a call that the circuit breaker held back. Such a call does not count as an attempt.
pub fn judge_held_back(attempt: Attempt<'_>, at_least: Span) -> AttemptVerdict {
    let history = *attempt.history;
    if history.unknown {
        return AttemptVerdict::Doubt { not_before: attempt.now.plus(at_least), history };
    }
    AttemptVerdict::Retry { at_least, history }
}

fn judge_without_effect(attempt: Attempt<'_>, at_least: Span) -> AttemptVerdict {
    let mut history = *attempt.history;
    history.idle_calls = history.idle_calls.saturating_add(1);
    if history.unknown {
        // An earlier attempt may have charged; the current attempt only asks us to wait.
        return AttemptVerdict::Doubt { not_before: attempt.now.plus(at_least), history };
    }
    if history.idle_calls >= attempt.attempts_max {
        return failed_with(FailureCode::GatewayUnavailable);
    }
    AttemptVerdict::Retry { at_least, history }
}

fn judge_unknown(attempt: Attempt<'_>, cause: Cause) -> AttemptVerdict {
    let mut history = *attempt.history;
    history.unknown = true;
    history.last_sent_at = attempt.now;
    history.server_errors = match cause {
        // The provider may store and replay an unreadable answer, like an error.
        Cause::ServerError | Cause::Unreadable => history.server_errors.saturating_add(1),
        Cause::Timeout | Cause::Cut | Cause::InProgress => history.server_errors,
    };
    AttemptVerdict::Doubt { not_before: attempt.now, history }
}

const fn park(reason: ParkReason) -> AttemptVerdict {
    AttemptVerdict::Park { reason, reference: None }
}
