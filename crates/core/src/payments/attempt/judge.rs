//! Judging an attempt: what the provider's word means for the step that was tried.
//!
//! An outcome that may have charged never becomes terminal by counting.

use super::next::{quiescent_at, recognised};
use crate::outbox::{History, ParkReason};
use crate::payments::charge::{FailureCode, PaymentFailure};
use crate::payments::provider::{
    Approval, Cause, LookupResult, ProviderFault, ProviderOutcome, ProviderStep, Rules,
};
use crate::types::asset::Asset;
use crate::types::time::{Span, Time};

/// What an attempt means for its step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// It was done, as the provider says.
    Done(Approval),
    /// It was certainly not done, and will not be.
    Failed {
        /// Why.
        failure: PaymentFailure,
        /// The provider's reference, where it made one.
        reference: Option<String>,
    },
    /// Certainly nothing happened; try again.
    Retry {
        /// The provider's own wish for a pause.
        at_least: Span,
        /// What is now known.
        history: History,
    },
    /// Perhaps something happened; seek evidence.
    Doubt {
        /// Evidence cannot be had before this instant.
        not_before: Time,
        /// What is now known.
        history: History,
    },
    /// A human is needed.
    Park {
        /// Why.
        reason: ParkReason,
        /// The provider's reference, where it gave one.
        reference: Option<String>,
    },
}

/// The facts an attempt is judged on.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The step that was tried.
    pub step: ProviderStep,
    /// What it was to take or to give, in minor units.
    pub amount_minor: i64,
    /// Of what.
    pub asset: Asset,
    /// What was known before it.
    pub history: &'a History,
    /// The payment's public reference, which the provider must repeat.
    pub reference: &'a str,
    /// How many calls without effect are allowed.
    pub attempts_max: u32,
    /// When the attempt ended.
    pub now: Time,
}

/// Judges the outcome of a call.
pub fn judge_outcome(attempt: Attempt<'_>, rules: &Rules, outcome: &ProviderOutcome) -> AttemptVerdict {
    match outcome {
        ProviderOutcome::Approved(approval) => approved(attempt, approval),
        ProviderOutcome::Declined(_) if decline_is_one_of_several(attempt.history, rules, attempt.now) => {
            AttemptVerdict::Doubt { not_before: attempt.now, history: *attempt.history }
        }
        ProviderOutcome::Declined(decline) => AttemptVerdict::Failed {
            failure: PaymentFailure {
                code: attempt.step.declined(),
                decline_code: decline.decline_code.clone(),
            },
            reference: decline.reference.clone(),
        },
        // A rejection answers this call only: an earlier one under the same key may have been executed. It may not even be
        // the provider's, but that of something in between that knows no keys.
        ProviderOutcome::Rejected(_) if attempt.history.unknown => {
            let mut history = *attempt.history;
            history.server_errors = history.server_errors.saturating_add(1);
            AttemptVerdict::Doubt { not_before: attempt.now, history }
        }
        ProviderOutcome::Rejected(rejection) => failed(match rejection.fault {
            ProviderFault::Request => FailureCode::GatewayRejected,
            ProviderFault::Credentials => FailureCode::GatewayUnauthorized,
        }),
        ProviderOutcome::Busy { retry_after } => without_effect(attempt, retry_after.unwrap_or(Span::ZERO)),
        ProviderOutcome::NotSent => without_effect(attempt, Span::ZERO),
        ProviderOutcome::Unknown(cause) => doubt(attempt, *cause),
    }
}

/// Judges what a status query found.
pub fn judge_query(attempt: Attempt<'_>, rules: &Rules, found: &LookupResult) -> AttemptVerdict {
    match found {
        LookupResult::Payment(outcome @ (ProviderOutcome::Approved(_) | ProviderOutcome::Declined(_))) => {
            judge_outcome(attempt, rules, outcome)
        }
        LookupResult::Several => park(ParkReason::Contradiction),
        LookupResult::Nothing if attempt.now >= quiescent_at(rules, attempt.history) => {
            // Proof: nothing was executed and nothing can still arrive. A fresh key leaves stored errors behind.
            let history = History {
                generation: attempt.history.generation.saturating_add(1),
                idle_calls: attempt.history.idle_calls,
                ..History::begun(attempt.now)
            };
            AttemptVerdict::Doubt { not_before: attempt.now, history }
        }
        // It is there, has been for longer than the provider remembers keys, and still has no end.
        LookupResult::Payment(
            ProviderOutcome::Rejected(_)
            | ProviderOutcome::Busy { .. }
            | ProviderOutcome::NotSent
            | ProviderOutcome::Unknown(_),
        ) if rules.dedup_window.is_some() && !recognised(rules, attempt.history, attempt.now) => {
            park(ParkReason::NoEvidence)
        }
        // It is there but not at its end, or it is not visible yet, or the question was not answered.
        LookupResult::Payment(
            ProviderOutcome::Rejected(_)
            | ProviderOutcome::Busy { .. }
            | ProviderOutcome::NotSent
            | ProviderOutcome::Unknown(_),
        )
        | LookupResult::Nothing
        | LookupResult::Unclear(_) => {
            AttemptVerdict::Doubt { not_before: attempt.now, history: *attempt.history }
        }
    }
}

/// Where the provider may execute a repeated call on its own, a decline speaks for that call only: an earlier one may
/// still arrive and be approved until the provider is quiescent.
pub fn decline_is_one_of_several(history: &History, rules: &Rules, now: Time) -> bool {
    let repeats = rules.dedup_window.is_none() || rules.reexecutes_errors;
    history.unknown && repeats && now < quiescent_at(rules, history)
}

/// The provider's word is taken only if it says what we asked for: how the money stands, how much, in which currency,
/// for which payment. A void leaves no amount behind to compare.
fn approved(attempt: Attempt<'_>, approval: &Approval) -> AttemptVerdict {
    let amount = match attempt.step {
        ProviderStep::Void => true,
        ProviderStep::Charge
        | ProviderStep::Authorize
        | ProviderStep::Capture
        | ProviderStep::Refund
        | ProviderStep::Payout => {
            approval.amount_minor == attempt.amount_minor && approval.asset == Some(attempt.asset)
        }
    };
    let same = amount
        && approval.stands == attempt.step.leads_to()
        && approval.payment.as_deref().is_none_or(|payment| payment == attempt.reference);
    if same {
        AttemptVerdict::Done(approval.clone())
    } else {
        AttemptVerdict::Park {
            reason: ParkReason::AnswerDiffers,
            reference: Some(approval.reference.clone()),
        }
    }
}

const fn failed(code: FailureCode) -> AttemptVerdict {
    AttemptVerdict::Failed { failure: PaymentFailure { code, decline_code: None }, reference: None }
}

/// The call was held back by the circuit breaker: it does not count as an attempt.
pub fn held_back(attempt: Attempt<'_>, at_least: Span) -> AttemptVerdict {
    let history = *attempt.history;
    if history.unknown {
        return AttemptVerdict::Doubt { not_before: attempt.now.plus(at_least), history };
    }
    AttemptVerdict::Retry { at_least, history }
}

fn without_effect(attempt: Attempt<'_>, at_least: Span) -> AttemptVerdict {
    let mut history = *attempt.history;
    history.idle_calls = history.idle_calls.saturating_add(1);
    if history.unknown {
        // An earlier attempt may have charged: this one only taught us to wait.
        return AttemptVerdict::Doubt { not_before: attempt.now.plus(at_least), history };
    }
    if history.idle_calls >= attempt.attempts_max {
        return failed(FailureCode::GatewayUnavailable);
    }
    AttemptVerdict::Retry { at_least, history }
}

fn doubt(attempt: Attempt<'_>, cause: Cause) -> AttemptVerdict {
    let mut history = *attempt.history;
    history.unknown = true;
    history.last_sent_at = attempt.now;
    history.server_errors = match cause {
        // An answer that says nothing may be stored and said again, as an error may.
        Cause::ServerError | Cause::Unreadable => history.server_errors.saturating_add(1),
        Cause::Timeout | Cause::Cut | Cause::InProgress => history.server_errors,
    };
    AttemptVerdict::Doubt { not_before: attempt.now, history }
}

const fn park(reason: ParkReason) -> AttemptVerdict {
    AttemptVerdict::Park { reason, reference: None }
}
