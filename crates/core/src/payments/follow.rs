//! The consequences of an attempt: all changed rows, in one decision. Payments change state here
//! and nowhere else.

use super::attempt::judge::AttemptVerdict;
use super::charge::{Charge, ChargeStatus, FailureCode, PaymentFailure};
use super::flow::{self, AfterStep, SagaAction};
use super::operation::{Operation, OperationStatus};
use super::payout::{Payout, PayoutStatus};
use super::provider::{Approval, ProviderStep};
use super::{PaymentSubject, Work};
use crate::outbox::{Flow, History, Outbox, ParkReason, Saga};
use crate::saga::progress::{Direction, StepResult};
use crate::types::time::{Span, Time};

/// All changes after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequences {
    /// The payment after the attempt. Only changed rows have a new revision.
    pub subject: PaymentSubject,
    /// Ledger actions of the same change set.
    pub ledger: Vec<SagaAction>,
    pub next_step: NextStep,
}

/// The next step of the claim and its work. The caller computes the due time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The flow succeeded; the claim gets its answer.
    Completed,
    /// The flow failed for good and left no effect.
    Failed(PaymentFailure),
    /// The next provider call is due at once, under the same lease.
    CallProvider(Outbox),
    /// The call certainly had no effect; try again.
    Retry {
        /// The provider's requested pause.
        at_least: Span,
        outbox: Outbox,
    },
    /// The call may have had an effect; look for evidence.
    Doubt {
        /// The earliest instant at which evidence is possible.
        not_before: Time,
        outbox: Outbox,
    },
    /// Only a human can continue.
    Parked(Outbox),
}

/// Decides the consequences of a verdict. `None` if this build does not know the saga's definition;
/// a build that does must continue the work.
pub fn follow(work: &Work, verdict: &AttemptVerdict, now: Time) -> Option<Consequences> {
    let with_history = |history: &History| Outbox { history: *history, ..next_revision(&work.outbox) };
    let unchanged =
        |next_step| Some(Consequences { subject: work.subject.clone(), ledger: Vec::new(), next_step });
    match verdict {
        AttemptVerdict::Retry { at_least, history } => {
            unchanged(NextStep::Retry { at_least: *at_least, outbox: with_history(history) })
        }
        AttemptVerdict::Doubt { not_before, history } => {
            unchanged(NextStep::Doubt { not_before: *not_before, outbox: with_history(history) })
        }
        AttemptVerdict::Park { reason, reference } => Some(park(work, *reason, reference.as_ref(), now)),
        AttemptVerdict::Done(approval) => advance(work, &ProviderReply::Done(approval), now),
        AttemptVerdict::Failed { failure, reference } => {
            advance(work, &ProviderReply::Refused(failure, reference.as_ref()), now)
        }
    }
}

/// A definite result of a provider step.
enum ProviderReply<'a> {
    Done(&'a Approval),
    Refused(&'a PaymentFailure, Option<&'a String>),
}

fn advance(work: &Work, reply: &ProviderReply<'_>, now: Time) -> Option<Consequences> {
    let saga = work.outbox.saga;
    let step = flow::step(saga)?;
    let mut subject = subject_before_parking(work);
    let result = match reply {
        ProviderReply::Done(approval) => {
            apply_approval(&mut subject, step, approval);
            StepResult::Done
        }
        ProviderReply::Refused(failure, reference) => {
            remember_failure(&mut subject, saga, failure, *reference);
            StepResult::Failed
        }
    };
    let flow::Transition { ledger, next } = flow::advance(saga, result)?;
    let next_step = match next {
        AfterStep::Call(_, saga) => NextStep::CallProvider(outbox_for_next_call(&work.outbox, saga, now)),
        AfterStep::Completed => {
            match &mut subject {
                PaymentSubject::Charge(charge, operation) => {
                    complete_charge(charge, operation.as_mut(), saga.flow);
                }
                PaymentSubject::Payout(payout) => payout.status = PayoutStatus::Paid,
            }
            NextStep::Completed
        }
        AfterStep::Undone => NextStep::Failed(undo_payment(&mut subject, saga.flow, reply)),
        AfterStep::Stuck => return Some(park(work, ParkReason::CannotUndo, None, now)),
    };
    Some(Consequences { subject: with_next_revisions(&work.subject, subject), ledger, next_step })
}

/// Resumes parked work at a human's request.
///
/// The history is marked unknown: the provider's behaviour was the reason for parking. Therefore
/// the next call must be one the provider recognises as a repetition, and a refusal proves nothing.
pub fn unpark(work: &Work, now: Time) -> Consequences {
    let subject = with_next_revisions(&work.subject, subject_before_parking(work));
    let history = History { unknown: true, last_sent_at: now, ..work.outbox.history };
    let outbox = Outbox { parked: None, history, ..next_revision(&work.outbox) };
    Consequences { subject, ledger: Vec::new(), next_step: NextStep::Doubt { not_before: now, outbox } }
}

/// Gives up the provider's hold of parked work at a human's request. The saga runs its
/// compensations as after any refusal. `None` if the saga has no compensation for the hold.
pub fn give_up(work: &Work, held: &Approval, now: Time) -> Option<Consequences> {
    let saga = flow::give_up(work.outbox.saga)?;
    let mut subject = subject_before_parking(work);
    let failure = PaymentFailure { code: FailureCode::MarkedFailed, decline_code: None };
    remember_failure(&mut subject, work.outbox.saga, &failure, None);
    if let PaymentSubject::Charge(charge, _) = &mut subject {
        charge.provider_reference = Some(held.reference.clone());
    }
    let next_step = NextStep::CallProvider(outbox_for_next_call(&work.outbox, saga, now));
    Some(Consequences { subject: with_next_revisions(&work.subject, subject), ledger: Vec::new(), next_step })
}

/// The payment with the status it had before parking.
fn subject_before_parking(work: &Work) -> PaymentSubject {
    let mut subject = work.subject.clone();
    if work.outbox.parked.is_none() {
        return subject;
    }
    match &mut subject {
        PaymentSubject::Charge(charge, operation) => {
            charge.status = match work.outbox.saga.flow {
                Flow::Charge | Flow::Authorize | Flow::Split => ChargeStatus::Processing,
                Flow::Capture | Flow::Void => ChargeStatus::RequiresCapture,
                Flow::Refund | Flow::Payout => charge.status,
            };
            if let Some(operation) = operation {
                operation.status = OperationStatus::Processing;
            }
        }
        PaymentSubject::Payout(payout) => payout.status = PayoutStatus::Processing,
    }
    subject
}

fn outbox_for_next_call(outbox: &Outbox, saga: Saga, now: Time) -> Outbox {
    Outbox { saga, history: History::begun(now), parked: None, ..next_revision(outbox) }
}

/// Applies an approval to the payment, whatever step follows.
fn apply_approval(subject: &mut PaymentSubject, step: ProviderStep, approval: &Approval) {
    match subject {
        PaymentSubject::Charge(charge, operation) => {
            match step {
                ProviderStep::Charge => {
                    charge.sums.captured = approval.amount_minor;
                    charge.provider_reference = Some(approval.reference.clone());
                }
                ProviderStep::Authorize => charge.provider_reference = Some(approval.reference.clone()),
                ProviderStep::Capture => charge.sums.captured = approval.amount_minor,
                ProviderStep::Void | ProviderStep::Refund | ProviderStep::Payout => {}
            }
            if let Some(operation) = operation {
                operation.provider_reference = Some(approval.reference.clone());
            }
        }
        PaymentSubject::Payout(payout) => payout.provider_reference = Some(approval.reference.clone()),
    }
}

/// Stores the reason of a refusal at once, because compensations may take long and the final answer
/// needs the reason.
fn remember_failure(
    subject: &mut PaymentSubject,
    saga: Saga,
    failure: &PaymentFailure,
    reference: Option<&String>,
) {
    if saga.progress.way == Direction::Back {
        return;
    }
    let (kept, named) = match subject {
        PaymentSubject::Charge(_, Some(operation)) => {
            operation.failure = Some(failure.clone());
            return;
        }
        PaymentSubject::Charge(charge, None) => (&mut charge.failure, &mut charge.provider_reference),
        PaymentSubject::Payout(payout) => (&mut payout.failure, &mut payout.provider_reference),
    };
    *kept = Some(failure.clone());
    if named.is_none() {
        *named = reference.cloned();
    }
}

fn complete_charge(charge: &mut Charge, operation: Option<&mut Operation>, flow: Flow) {
    charge.status = match flow {
        Flow::Charge | Flow::Split | Flow::Capture => ChargeStatus::Succeeded,
        Flow::Authorize => ChargeStatus::RequiresCapture,
        Flow::Void => ChargeStatus::Voided,
        Flow::Refund => {
            let amount = operation.as_ref().map_or(0, |operation| operation.amount.minor());
            charge.sums.refunding = charge.sums.refunding.saturating_sub(amount);
            charge.sums.refunded = charge.sums.refunded.saturating_add(amount);
            if charge.sums.refunded < charge.sums.captured {
                ChargeStatus::PartiallyRefunded
            } else {
                ChargeStatus::Refunded
            }
        }
        // Payouts have no charge.
        Flow::Payout => charge.status,
    };
    if matches!(flow, Flow::Capture | Flow::Void) {
        charge.working = None;
    }
    if let Some(operation) = operation {
        operation.status = OperationStatus::Succeeded;
        operation.failure = None;
    }
}

fn undo_payment(subject: &mut PaymentSubject, flow: Flow, reply: &ProviderReply<'_>) -> PaymentFailure {
    let kept = match subject {
        PaymentSubject::Charge(charge, operation) => undo_charge(charge, operation.as_mut(), flow),
        PaymentSubject::Payout(payout) => {
            payout.status = PayoutStatus::Failed;
            payout.failure.clone()
        }
    };
    match reply {
        ProviderReply::Refused(failure, _) => kept.unwrap_or_else(|| (*failure).clone()),
        // The last compensation succeeded; the stored failure says why it ran.
        ProviderReply::Done(_) => {
            kept.unwrap_or(PaymentFailure { code: FailureCode::GatewayRejected, decline_code: None })
        }
    }
}

/// Marks a charge as undone: its creation or an operation on it. Returns the stored failure.
fn undo_charge(charge: &mut Charge, operation: Option<&mut Operation>, flow: Flow) -> Option<PaymentFailure> {
    match flow {
        Flow::Charge | Flow::Authorize | Flow::Split => charge.status = ChargeStatus::Failed,
        // The charge returns to its state before the operation.
        Flow::Capture | Flow::Void => {
            charge.status = ChargeStatus::RequiresCapture;
            charge.working = None;
        }
        Flow::Refund => {
            let amount = operation.as_ref().map_or(0, |operation| operation.amount.minor());
            charge.sums.refunding = charge.sums.refunding.saturating_sub(amount);
        }
        // Payouts have no charge.
        Flow::Payout => {}
    }
    match operation {
        Some(operation) => {
            operation.status = OperationStatus::Failed;
            operation.failure.clone()
        }
        None => charge.failure.clone(),
    }
}

/// Parks the work. A parked refund does not change its charge: the reserved amount stays
/// reserved, and the rest remains refundable.
///
/// The history is marked unknown, because the provider's behaviour was the reason for parking.
/// Until there is proof, any continuation must assume an effect, and a refusal proves nothing.
fn park(work: &Work, reason: ParkReason, reference: Option<&String>, now: Time) -> Consequences {
    let mut subject = work.subject.clone();
    match &mut subject {
        PaymentSubject::Charge(charge, operation) => {
            match work.outbox.saga.flow {
                Flow::Refund | Flow::Payout => {}
                Flow::Charge | Flow::Authorize | Flow::Split | Flow::Capture | Flow::Void => {
                    charge.status = ChargeStatus::Parked;
                }
            }
            if let Some(operation) = operation {
                operation.status = OperationStatus::Parked;
                operation.provider_reference = reference.cloned().or(operation.provider_reference.take());
            } else if charge.provider_reference.is_none() {
                charge.provider_reference = reference.cloned();
            }
        }
        PaymentSubject::Payout(payout) => {
            payout.status = PayoutStatus::Parked;
            payout.provider_reference = reference.cloned().or(payout.provider_reference.take());
        }
    }
    let history = History { unknown: true, last_sent_at: now, ..work.outbox.history };
    let outbox = Outbox { parked: Some(reason), due_at: Time::MAX, history, ..next_revision(&work.outbox) };
    Consequences {
        subject: with_next_revisions(&work.subject, subject),
        ledger: Vec::new(),
        next_step: NextStep::Parked(outbox),
    }
}

/// Increments the revisions of changed rows.
fn with_next_revisions(old: &PaymentSubject, new: PaymentSubject) -> PaymentSubject {
    match (old, new) {
        (PaymentSubject::Charge(was, had), PaymentSubject::Charge(charge, operation)) => {
            let (changed, moved) = (*was != charge, *had != operation);
            let charge = Charge { revision: increment_if(changed, was.revision), ..charge };
            let operation =
                operation.map(|one| Operation { revision: increment_if(moved, one.revision), ..one });
            PaymentSubject::Charge(charge, operation)
        }
        (PaymentSubject::Payout(was), PaymentSubject::Payout(payout)) => {
            let changed = *was != payout;
            PaymentSubject::Payout(Payout { revision: increment_if(changed, was.revision), ..payout })
        }
        (PaymentSubject::Charge(..) | PaymentSubject::Payout(_), other) => other,
    }
}

const fn increment_if(changed: bool, revision: u64) -> u64 {
    if changed { revision.saturating_add(1) } else { revision }
}

fn next_revision(outbox: &Outbox) -> Outbox {
    Outbox { revision: outbox.revision.saturating_add(1), ..outbox.clone() }
}
