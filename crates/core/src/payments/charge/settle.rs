//! Settling an attempt: the provider's word becomes one decision about claim, charge, work and audit.
//!
//! The answer's bytes are rendered by the caller between [`judge_outcome`] and [`settled`]; everything else is
//! decided here. An outcome that may have charged never becomes terminal by counting.

use super::next::{quiescent_at, recognised};
use super::{Charge, Failure, FailureCode, Status};
use crate::outbox::{Outbox, Park};
use crate::payments::provider::{Approval, Cause, Fault, Found, Outcome, Rules};
use crate::types::time::{Span, Time};

/// What follows from an attempt. An outbox row in it says what is known; when it is due and its revision are the
/// caller's to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The charge is done; its answer is stored as completed.
    Complete(Charge),
    /// The charge failed for good; its answer is stored as failed.
    Fail(Charge),
    /// Certainly nothing happened; try again.
    Retry {
        /// The provider's own wish for a pause.
        at_least: Span,
        /// What is now known.
        outbox: Outbox,
    },
    /// Perhaps something happened; seek evidence.
    Doubt {
        /// Evidence cannot be had before this instant.
        not_before: Time,
        /// What is now known.
        outbox: Outbox,
    },
    /// A human is needed.
    Park {
        /// The charge, parked.
        charge: Charge,
        /// The work, parked.
        outbox: Outbox,
    },
}

/// The facts an attempt is judged on.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The charge as it stands.
    pub charge: &'a Charge,
    /// The work as it stands.
    pub outbox: &'a Outbox,
    /// The charge's public reference, which the provider must repeat.
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
        Outcome::Declined(_) if decline_is_one_of_several(attempt, rules) => {
            Verdict::Doubt { not_before: attempt.now, outbox: attempt.outbox.clone() }
        }
        Outcome::Declined(decline) => {
            let failure =
                Failure { code: FailureCode::CardDeclined, decline_code: decline.decline_code.clone() };
            fail(attempt, failure, decline.reference.clone())
        }
        // A rejection answers this call only: an earlier one under the same key may have been executed.
        Outcome::Rejected(_) if attempt.outbox.history.unknown => doubt(attempt, Cause::Unreadable),
        Outcome::Rejected(rejection) => {
            let code = match rejection.fault {
                Fault::Request => FailureCode::GatewayRejected,
                Fault::Credentials => FailureCode::GatewayUnauthorized,
            };
            fail(attempt, Failure { code, decline_code: None }, None)
        }
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
        Found::Several => park(attempt, Park::Contradiction),
        Found::Nothing if attempt.now >= quiescent_at(rules, &attempt.outbox.history) => {
            // Proof: nothing was executed and nothing can still arrive. A fresh key leaves stored errors behind.
            let mut outbox = attempt.outbox.clone();
            outbox.history.generation = outbox.history.generation.saturating_add(1);
            outbox.history.server_errors = 0;
            outbox.history.first_sent_at = attempt.now;
            outbox.history.last_sent_at = attempt.now;
            outbox.history.unknown = false;
            Verdict::Doubt { not_before: attempt.now, outbox }
        }
        // It is there, has been for longer than the provider remembers keys, and still has no end.
        Found::Payment(
            Outcome::Rejected(_) | Outcome::Busy { .. } | Outcome::NotSent | Outcome::Unknown(_),
        ) if rules.dedup_window.is_some() && !recognised(rules, &attempt.outbox.history, attempt.now) => {
            park(attempt, Park::NoEvidence)
        }
        // It is there but not at its end, or it is not visible yet, or the question was not answered.
        Found::Payment(
            Outcome::Rejected(_) | Outcome::Busy { .. } | Outcome::NotSent | Outcome::Unknown(_),
        )
        | Found::Nothing
        | Found::Unclear(_) => Verdict::Doubt { not_before: attempt.now, outbox: attempt.outbox.clone() },
    }
}

/// Where the provider may execute a repeated call on its own, a decline speaks for that call only: an earlier one may
/// still arrive and be approved until the provider is quiescent.
fn decline_is_one_of_several(attempt: Attempt<'_>, rules: &Rules) -> bool {
    let history = &attempt.outbox.history;
    let repeats = rules.dedup_window.is_none() || rules.reexecutes_errors;
    history.unknown && repeats && attempt.now < quiescent_at(rules, history)
}

fn approved(attempt: Attempt<'_>, approval: &Approval) -> Verdict {
    let order = &attempt.charge.order;
    let same = approval.amount_minor == order.amount.minor()
        && approval.asset == Some(order.amount.asset())
        && approval.captured == order.capture
        && approval.payment.as_deref().is_none_or(|payment| payment == attempt.reference);
    if !same {
        return park_with(attempt, Park::AnswerDiffers, Some(approval.reference.clone()));
    }
    let status = if approval.captured { Status::Succeeded } else { Status::RequiresCapture };
    Verdict::Complete(Charge {
        status,
        provider_reference: Some(approval.reference.clone()),
        failure: None,
        revision: attempt.charge.revision.saturating_add(1),
        ..attempt.charge.clone()
    })
}

fn fail(attempt: Attempt<'_>, failure: Failure, reference: Option<String>) -> Verdict {
    Verdict::Fail(Charge {
        status: Status::Failed,
        provider_reference: reference,
        failure: Some(failure),
        revision: attempt.charge.revision.saturating_add(1),
        ..attempt.charge.clone()
    })
}

/// The call was held back by the circuit breaker: it does not count as an attempt.
pub fn held_back(attempt: Attempt<'_>, at_least: Span) -> Verdict {
    let outbox = attempt.outbox.clone();
    if outbox.history.unknown {
        return Verdict::Doubt { not_before: attempt.now.plus(at_least), outbox };
    }
    Verdict::Retry { at_least, outbox }
}

fn without_effect(attempt: Attempt<'_>, at_least: Span) -> Verdict {
    let mut outbox = attempt.outbox.clone();
    outbox.history.idle_calls = outbox.history.idle_calls.saturating_add(1);
    if outbox.history.unknown {
        // An earlier attempt may have charged: this one only taught us to wait.
        return Verdict::Doubt { not_before: attempt.now.plus(at_least), outbox };
    }
    if outbox.history.idle_calls >= attempt.attempts_max {
        return fail(attempt, Failure { code: FailureCode::GatewayUnavailable, decline_code: None }, None);
    }
    Verdict::Retry { at_least, outbox }
}

fn doubt(attempt: Attempt<'_>, cause: Cause) -> Verdict {
    let mut outbox = attempt.outbox.clone();
    outbox.history.unknown = true;
    outbox.history.last_sent_at = attempt.now;
    outbox.history.server_errors = match cause {
        // An answer that says nothing may be stored and said again, as an error may.
        Cause::ServerError | Cause::Unreadable => outbox.history.server_errors.saturating_add(1),
        Cause::Timeout | Cause::Cut | Cause::InProgress => outbox.history.server_errors,
    };
    Verdict::Doubt { not_before: attempt.now, outbox }
}

fn park(attempt: Attempt<'_>, reason: Park) -> Verdict {
    park_with(attempt, reason, attempt.charge.provider_reference.clone())
}

fn park_with(attempt: Attempt<'_>, reason: Park, reference: Option<String>) -> Verdict {
    let charge = Charge {
        status: Status::Parked,
        provider_reference: reference,
        revision: attempt.charge.revision.saturating_add(1),
        ..attempt.charge.clone()
    };
    Verdict::Park {
        charge,
        outbox: Outbox { parked: Some(reason), due_at: Time::MAX, ..attempt.outbox.clone() },
    }
}

/// Parks a charge that no evidence can be had for.
pub fn give_to_a_human(attempt: Attempt<'_>, reason: Park) -> Verdict {
    park(attempt, reason)
}
