//! Judging an attempt: what the provider's word means for the step that was tried.
//!
//! An outcome that may have charged never becomes terminal by counting.

use super::next::{quiescent_at, recognised};
use crate::outbox::{History, Park};
use crate::payments::charge::{Failure, FailureCode};
use crate::payments::provider::{Approval, Cause, Fault, Found, Outcome, Rules, Step};
use crate::types::asset::Asset;
use crate::types::time::{Span, Time};

/// What an attempt means for its step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was done, as the provider says.
    Done(Approval),
    /// It was certainly not done, and will not be.
    Failed {
        /// Why.
        failure: Failure,
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
        reason: Park,
        /// The provider's reference, where it gave one.
        reference: Option<String>,
    },
}

/// The facts an attempt is judged on.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The step that was tried.
    pub step: Step,
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
pub fn judge_outcome(attempt: Attempt<'_>, rules: &Rules, outcome: &Outcome) -> Verdict {
    match outcome {
        Outcome::Approved(approval) => approved(attempt, approval),
        Outcome::Declined(_) if decline_is_one_of_several(attempt.history, rules, attempt.now) => {
            Verdict::Doubt { not_before: attempt.now, history: *attempt.history }
        }
        Outcome::Declined(decline) => Verdict::Failed {
            failure: Failure { code: attempt.step.declined(), decline_code: decline.decline_code.clone() },
            reference: decline.reference.clone(),
        },
        // A rejection answers this call only: an earlier one under the same key may have been executed. It may not even be
        // the provider's, but that of something in between that knows no keys.
        Outcome::Rejected(_) if attempt.history.unknown => {
            let mut history = *attempt.history;
            history.server_errors = history.server_errors.saturating_add(1);
            Verdict::Doubt { not_before: attempt.now, history }
        }
        Outcome::Rejected(rejection) => failed(match rejection.fault {
            Fault::Request => FailureCode::GatewayRejected,
            Fault::Credentials => FailureCode::GatewayUnauthorized,
        }),
        Outcome::Busy { retry_after } => without_effect(attempt, retry_after.unwrap_or(Span::ZERO)),
        Outcome::NotSent => without_effect(attempt, Span::ZERO),
        Outcome::Unknown(cause) => doubt(attempt, *cause),
    }
}

/// Judges what a status query found.
pub fn judge_query(attempt: Attempt<'_>, rules: &Rules, found: &Found) -> Verdict {
    match found {
        Found::Payment(outcome @ (Outcome::Approved(_) | Outcome::Declined(_))) => {
            judge_outcome(attempt, rules, outcome)
        }
        Found::Several => park(Park::Contradiction),
        Found::Nothing if attempt.now >= quiescent_at(rules, attempt.history) => {
            // Proof: nothing was executed and nothing can still arrive. A fresh key leaves stored errors behind.
            let history = History {
                generation: attempt.history.generation.saturating_add(1),
                idle_calls: attempt.history.idle_calls,
                ..History::begun(attempt.now)
            };
            Verdict::Doubt { not_before: attempt.now, history }
        }
        // It is there, has been for longer than the provider remembers keys, and still has no end.
        Found::Payment(
            Outcome::Rejected(_) | Outcome::Busy { .. } | Outcome::NotSent | Outcome::Unknown(_),
        ) if rules.dedup_window.is_some() && !recognised(rules, attempt.history, attempt.now) => {
            park(Park::NoEvidence)
        }
        // It is there but not at its end, or it is not visible yet, or the question was not answered.
        Found::Payment(
            Outcome::Rejected(_) | Outcome::Busy { .. } | Outcome::NotSent | Outcome::Unknown(_),
        )
        | Found::Nothing
        | Found::Unclear(_) => Verdict::Doubt { not_before: attempt.now, history: *attempt.history },
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
fn approved(attempt: Attempt<'_>, approval: &Approval) -> Verdict {
    let amount = match attempt.step {
        Step::Void => true,
        Step::Charge | Step::Authorize | Step::Capture | Step::Refund | Step::Payout => {
            approval.amount_minor == attempt.amount_minor && approval.asset == Some(attempt.asset)
        }
    };
    let same = amount
        && approval.stands == attempt.step.leads_to()
        && approval.payment.as_deref().is_none_or(|payment| payment == attempt.reference);
    if same {
        Verdict::Done(approval.clone())
    } else {
        Verdict::Park { reason: Park::AnswerDiffers, reference: Some(approval.reference.clone()) }
    }
}

const fn failed(code: FailureCode) -> Verdict {
    Verdict::Failed { failure: Failure { code, decline_code: None }, reference: None }
}

/// The call was held back by the circuit breaker: it does not count as an attempt.
pub fn held_back(attempt: Attempt<'_>, at_least: Span) -> Verdict {
    let history = *attempt.history;
    if history.unknown {
        return Verdict::Doubt { not_before: attempt.now.plus(at_least), history };
    }
    Verdict::Retry { at_least, history }
}

fn without_effect(attempt: Attempt<'_>, at_least: Span) -> Verdict {
    let mut history = *attempt.history;
    history.idle_calls = history.idle_calls.saturating_add(1);
    if history.unknown {
        // An earlier attempt may have charged: this one only taught us to wait.
        return Verdict::Doubt { not_before: attempt.now.plus(at_least), history };
    }
    if history.idle_calls >= attempt.attempts_max {
        return failed(FailureCode::GatewayUnavailable);
    }
    Verdict::Retry { at_least, history }
}

fn doubt(attempt: Attempt<'_>, cause: Cause) -> Verdict {
    let mut history = *attempt.history;
    history.unknown = true;
    history.last_sent_at = attempt.now;
    history.server_errors = match cause {
        // An answer that says nothing may be stored and said again, as an error may.
        Cause::ServerError | Cause::Unreadable => history.server_errors.saturating_add(1),
        Cause::Timeout | Cause::Cut | Cause::InProgress => history.server_errors,
    };
    Verdict::Doubt { not_before: attempt.now, history }
}

const fn park(reason: Park) -> Verdict {
    Verdict::Park { reason, reference: None }
}
