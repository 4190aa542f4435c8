//! What follows from an attempt: everything that changes, as one decision. The one place where a payment moves.

use super::attempt::judge::AttemptVerdict;
use super::charge::{Charge, ChargeStatus, FailureCode, PaymentFailure};
use super::flow::{self, AfterStep, SagaAction};
use super::operation::{self, Operation};
use super::payout::{self, Payout};
use super::provider::{Approval, ProviderStep};
use super::{PaymentSubject, Work};
use crate::outbox::{Flow, History, Outbox, ParkReason, Saga};
use crate::saga::progress::{Direction, StepResult};
use crate::types::time::{Span, Time};

/// What changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follow {
    /// What the work is about, moved: each row that changes has its next revision, the others stand as they stood.
    pub subject: PaymentSubject,
    /// What happens in the ledger, in the same set.
    pub ledger: Vec<SagaAction>,
    /// What becomes of the claim and its work.
    pub next_step: NextStep,
}

/// What becomes of the claim and its work. When the work is due is the caller's to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// It is done; the answer says so.
    Completed,
    /// It was refused for good, and nothing of it is left.
    Failed(PaymentFailure),
    /// The next step is due at once, under the same lease.
    Onward(Outbox),
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
    Parked(Outbox),
}

/// Decides what follows. Nothing if this build does not know the saga's definition: the work is left to one that does.
pub fn follow(work: &Work, verdict: &AttemptVerdict, now: Time) -> Option<Follow> {
    let known = |history: &History| Outbox { history: *history, ..next_of(&work.outbox) };
    let stays = |next_step| Some(Follow { subject: work.subject.clone(), ledger: Vec::new(), next_step });
    match verdict {
        AttemptVerdict::Retry { at_least, history } => {
            stays(NextStep::Retry { at_least: *at_least, outbox: known(history) })
        }
        AttemptVerdict::Doubt { not_before, history } => {
            stays(NextStep::Doubt { not_before: *not_before, outbox: known(history) })
        }
        AttemptVerdict::Park { reason, reference } => Some(park(work, *reason, reference.as_ref(), now)),
        AttemptVerdict::Done(approval) => turn(work, &ProviderReply::Done(approval), now),
        AttemptVerdict::Failed { failure, reference } => {
            turn(work, &ProviderReply::Refused(failure, reference.as_ref()), now)
        }
    }
}

/// A step that has happened, one way or the other.
enum ProviderReply<'a> {
    Done(&'a Approval),
    Refused(&'a PaymentFailure, Option<&'a String>),
}

fn turn(work: &Work, reply: &ProviderReply<'_>, now: Time) -> Option<Follow> {
    let saga = work.outbox.saga;
    let step = flow::step(saga)?;
    let mut subject = unparked(work);
    let happened = match reply {
        ProviderReply::Done(approval) => {
            done(&mut subject, step, approval);
            StepResult::Done
        }
        ProviderReply::Refused(failure, reference) => {
            refused(&mut subject, saga, failure, *reference);
            StepResult::Failed
        }
    };
    let flow::Transition { ledger, onward } = flow::turn(saga, happened)?;
    let next_step = match onward {
        AfterStep::Call(_, saga) => NextStep::Onward(next_call(&work.outbox, saga, now)),
        AfterStep::Completed => {
            match &mut subject {
                PaymentSubject::Charge(charge, operation) => complete(charge, operation.as_mut(), saga.flow),
                PaymentSubject::Payout(payout) => payout.status = payout::PayoutStatus::Paid,
            }
            NextStep::Completed
        }
        AfterStep::Undone => NextStep::Failed(undone(&mut subject, saga.flow, reply)),
        AfterStep::Stuck => return Some(park(work, ParkReason::CannotUndo, None, now)),
    };
    Some(Follow { subject: moved(&work.subject, subject), ledger, next_step })
}

/// A human goes on with parked work: it is tried again, or evidence is sought. It was parked because of something the provider
/// did or said, so whatever is remembered, a call that it may not recognise is one too many, and a refusal proves nothing.
pub fn unpark(work: &Work, now: Time) -> Follow {
    let subject = moved(&work.subject, unparked(work));
    let history = History { unknown: true, last_sent_at: now, ..work.outbox.history };
    let outbox = Outbox { parked: None, history, ..next_of(&work.outbox) };
    Follow { subject, ledger: Vec::new(), next_step: NextStep::Doubt { not_before: now, outbox } }
}

/// A human gives up what the provider holds for parked work: the saga undoes it as it undoes everything else. Nothing if
/// it has no way to.
pub fn give_up(work: &Work, held: &Approval, now: Time) -> Option<Follow> {
    let saga = flow::give_up(work.outbox.saga)?;
    let mut subject = unparked(work);
    let failure = PaymentFailure { code: FailureCode::MarkedFailed, decline_code: None };
    refused(&mut subject, work.outbox.saga, &failure, None);
    if let PaymentSubject::Charge(charge, _) = &mut subject {
        charge.provider_reference = Some(held.reference.clone());
    }
    let next_step = NextStep::Onward(next_call(&work.outbox, saga, now));
    Some(Follow { subject: moved(&work.subject, subject), ledger: Vec::new(), next_step })
}

/// What the work is about, as it was before it was parked.
fn unparked(work: &Work) -> PaymentSubject {
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
                operation.status = operation::OperationStatus::Processing;
            }
        }
        PaymentSubject::Payout(payout) => payout.status = payout::PayoutStatus::Processing,
    }
    subject
}

fn next_call(outbox: &Outbox, saga: Saga, now: Time) -> Outbox {
    Outbox { saga, history: History::begun(now), parked: None, ..next_of(outbox) }
}

/// What the provider's word changes at once, whatever comes after.
fn done(subject: &mut PaymentSubject, step: ProviderStep, approval: &Approval) {
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

/// A refusal is remembered at once: undoing may take long, and the answer says why it was done.
fn refused(subject: &mut PaymentSubject, saga: Saga, failure: &PaymentFailure, reference: Option<&String>) {
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

fn complete(charge: &mut Charge, operation: Option<&mut Operation>, flow: Flow) {
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
        // No charge is about one.
        Flow::Payout => charge.status,
    };
    if matches!(flow, Flow::Capture | Flow::Void) {
        charge.working = None;
    }
    if let Some(operation) = operation {
        operation.status = operation::OperationStatus::Succeeded;
        operation.failure = None;
    }
}

fn undone(subject: &mut PaymentSubject, flow: Flow, reply: &ProviderReply<'_>) -> PaymentFailure {
    let kept = match subject {
        PaymentSubject::Charge(charge, operation) => charge_undone(charge, operation.as_mut(), flow),
        PaymentSubject::Payout(payout) => {
            payout.status = payout::PayoutStatus::Failed;
            payout.failure.clone()
        }
    };
    match reply {
        ProviderReply::Refused(failure, _) => kept.unwrap_or_else(|| (*failure).clone()),
        // What was undone last succeeded; why it was undone was remembered.
        ProviderReply::Done(_) => {
            kept.unwrap_or(PaymentFailure { code: FailureCode::GatewayRejected, decline_code: None })
        }
    }
}

/// The charge after its making or an operation on it was undone, and why it was.
fn charge_undone(
    charge: &mut Charge,
    operation: Option<&mut Operation>,
    flow: Flow,
) -> Option<PaymentFailure> {
    match flow {
        Flow::Charge | Flow::Authorize | Flow::Split => charge.status = ChargeStatus::Failed,
        // The charge is as it was before somebody asked.
        Flow::Capture | Flow::Void => {
            charge.status = ChargeStatus::RequiresCapture;
            charge.working = None;
        }
        Flow::Refund => {
            let amount = operation.as_ref().map_or(0, |operation| operation.amount.minor());
            charge.sums.refunding = charge.sums.refunding.saturating_sub(amount);
        }
        // No charge is about one.
        Flow::Payout => {}
    }
    match operation {
        Some(operation) => {
            operation.status = operation::OperationStatus::Failed;
            operation.failure.clone()
        }
        None => charge.failure.clone(),
    }
}

/// Parks the work. A refund leaves its charge as it is: what it reserved stays reserved, the rest can still be given
/// back. It is parked because of something the provider did or said, so whoever goes on with it must take it for done
/// until there is proof, and a refusal for none.
fn park(work: &Work, reason: ParkReason, reference: Option<&String>, now: Time) -> Follow {
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
                operation.status = operation::OperationStatus::Parked;
                operation.provider_reference = reference.cloned().or(operation.provider_reference.take());
            } else if charge.provider_reference.is_none() {
                charge.provider_reference = reference.cloned();
            }
        }
        PaymentSubject::Payout(payout) => {
            payout.status = payout::PayoutStatus::Parked;
            payout.provider_reference = reference.cloned().or(payout.provider_reference.take());
        }
    }
    let history = History { unknown: true, last_sent_at: now, ..work.outbox.history };
    let outbox = Outbox { parked: Some(reason), due_at: Time::MAX, history, ..next_of(&work.outbox) };
    Follow { subject: moved(&work.subject, subject), ledger: Vec::new(), next_step: NextStep::Parked(outbox) }
}

/// Rows that changed get their next revision.
fn moved(old: &PaymentSubject, new: PaymentSubject) -> PaymentSubject {
    match (old, new) {
        (PaymentSubject::Charge(was, had), PaymentSubject::Charge(charge, operation)) => {
            let (changed, moved) = (*was != charge, *had != operation);
            let charge = Charge { revision: next_if(changed, was.revision), ..charge };
            let operation = operation.map(|one| Operation { revision: next_if(moved, one.revision), ..one });
            PaymentSubject::Charge(charge, operation)
        }
        (PaymentSubject::Payout(was), PaymentSubject::Payout(payout)) => {
            let changed = *was != payout;
            PaymentSubject::Payout(Payout { revision: next_if(changed, was.revision), ..payout })
        }
        (PaymentSubject::Charge(..) | PaymentSubject::Payout(_), other) => other,
    }
}

const fn next_if(changed: bool, revision: u64) -> u64 {
    if changed { revision.saturating_add(1) } else { revision }
}

fn next_of(outbox: &Outbox) -> Outbox {
    Outbox { revision: outbox.revision.saturating_add(1), ..outbox.clone() }
}
