//! What follows from an attempt: everything that changes, as one decision. The one place where a payment moves.

use super::Work;
use super::attempt::judge::Verdict;
use super::charge::{Charge, Failure, FailureCode, Status};
use super::flow::{self, Deed, Onward};
use super::operation::{self, Operation};
use super::provider::{Approval, Step};
use crate::outbox::{Flow, History, Outbox, Park, Saga};
use crate::saga::progress::{Happened, Way};
use crate::types::time::{Span, Time};

/// What changes. Rows stand here with their next revision; a row that is not here stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follow {
    /// The charge, moved.
    pub charge: Option<Charge>,
    /// The operation, moved.
    pub operation: Option<Operation>,
    /// What happens in the books, in the same set.
    pub books: Vec<Deed>,
    /// What becomes of the claim and its work.
    pub fate: Fate,
}

/// What becomes of the claim and its work. When the work is due is the caller's to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is done; the answer says so.
    Completed,
    /// It was refused for good, and nothing of it is left.
    Failed(Failure),
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
pub fn follow(work: &Work, verdict: &Verdict, now: Time) -> Option<Follow> {
    let known = |history: &History| Outbox { history: *history, ..next_of(&work.outbox) };
    let stays = |fate| Some(Follow { charge: None, operation: None, books: Vec::new(), fate });
    match verdict {
        Verdict::Retry { at_least, history } => {
            stays(Fate::Retry { at_least: *at_least, outbox: known(history) })
        }
        Verdict::Doubt { not_before, history } => {
            stays(Fate::Doubt { not_before: *not_before, outbox: known(history) })
        }
        Verdict::Park { reason, reference } => Some(park(work, *reason, reference.as_ref())),
        Verdict::Done(approval) => turn(work, &Heard::Done(approval), now),
        Verdict::Failed { failure, reference } => {
            turn(work, &Heard::Refused(failure, reference.as_ref()), now)
        }
    }
}

/// A step that has happened, one way or the other.
enum Heard<'a> {
    Done(&'a Approval),
    Refused(&'a Failure, Option<&'a String>),
}

fn turn(work: &Work, heard: &Heard<'_>, now: Time) -> Option<Follow> {
    let saga = work.outbox.saga;
    let step = flow::step(saga)?;
    let mut charge = work.charge.clone();
    let mut operation = work.operation.clone();
    let happened = match heard {
        Heard::Done(approval) => {
            done(&mut charge, operation.as_mut(), step, approval);
            Happened::Done
        }
        Heard::Refused(failure, reference) => {
            refused(&mut charge, operation.as_mut(), saga, failure, *reference);
            Happened::Failed
        }
    };
    let flow::Turn { books, onward } = flow::turn(saga, happened)?;
    let fate = match onward {
        Onward::Call(_, saga) => {
            Fate::Onward(Outbox { saga, history: History::begun(now), ..next_of(&work.outbox) })
        }
        Onward::Completed => {
            complete(&mut charge, operation.as_mut(), saga.flow);
            Fate::Completed
        }
        Onward::Undone => {
            let failure = undone(&mut charge, operation.as_mut(), saga.flow, heard);
            Fate::Failed(failure)
        }
        Onward::Stuck => return Some(park(work, Park::CannotUndo, None)),
    };
    Some(Follow {
        charge: moved(&work.charge, charge),
        operation: moved_operation(work.operation.as_ref(), operation),
        books,
        fate,
    })
}

/// What the provider's word changes at once, whatever comes after.
fn done(charge: &mut Charge, operation: Option<&mut Operation>, step: Step, approval: &Approval) {
    match step {
        Step::Charge => {
            charge.sums.captured = approval.amount_minor;
            charge.provider_reference = Some(approval.reference.clone());
        }
        Step::Authorize => charge.provider_reference = Some(approval.reference.clone()),
        Step::Capture => charge.sums.captured = approval.amount_minor,
        Step::Void | Step::Refund => {}
    }
    if let Some(operation) = operation {
        operation.provider_reference = Some(approval.reference.clone());
    }
}

/// A refusal is remembered at once: undoing may take long, and the answer says why it was done.
fn refused(
    charge: &mut Charge,
    operation: Option<&mut Operation>,
    saga: Saga,
    failure: &Failure,
    reference: Option<&String>,
) {
    if saga.progress.way == Way::Back {
        return;
    }
    if let Some(operation) = operation {
        operation.failure = Some(failure.clone());
        return;
    }
    charge.failure = Some(failure.clone());
    if charge.provider_reference.is_none() {
        charge.provider_reference = reference.cloned();
    }
}

fn complete(charge: &mut Charge, operation: Option<&mut Operation>, flow: Flow) {
    charge.status = match flow {
        Flow::Charge | Flow::Split | Flow::Capture => Status::Succeeded,
        Flow::Authorize => Status::RequiresCapture,
        Flow::Void => Status::Voided,
        Flow::Refund => {
            let amount = operation.as_ref().map_or(0, |operation| operation.amount.minor());
            charge.sums.refunding = charge.sums.refunding.saturating_sub(amount);
            charge.sums.refunded = charge.sums.refunded.saturating_add(amount);
            if charge.sums.refunded < charge.sums.captured {
                Status::PartiallyRefunded
            } else {
                Status::Refunded
            }
        }
    };
    if matches!(flow, Flow::Capture | Flow::Void) {
        charge.working = None;
    }
    if let Some(operation) = operation {
        operation.status = operation::Status::Succeeded;
        operation.failure = None;
    }
}

fn undone(charge: &mut Charge, operation: Option<&mut Operation>, flow: Flow, heard: &Heard<'_>) -> Failure {
    let kept = match &operation {
        Some(operation) => operation.failure.clone(),
        None => charge.failure.clone(),
    };
    match flow {
        Flow::Charge | Flow::Authorize | Flow::Split => charge.status = Status::Failed,
        // The charge is as it was before somebody asked.
        Flow::Capture | Flow::Void => {
            charge.status = Status::RequiresCapture;
            charge.working = None;
        }
        Flow::Refund => {
            let amount = operation.as_ref().map_or(0, |operation| operation.amount.minor());
            charge.sums.refunding = charge.sums.refunding.saturating_sub(amount);
        }
    }
    if let Some(operation) = operation {
        operation.status = operation::Status::Failed;
    }
    match heard {
        Heard::Refused(failure, _) => kept.unwrap_or_else(|| (*failure).clone()),
        // What was undone last succeeded; why it was undone was remembered.
        Heard::Done(_) => kept.unwrap_or(Failure { code: FailureCode::GatewayRejected, decline_code: None }),
    }
}

/// Parks the work. A refund leaves its charge as it is: what it reserved stays reserved, the rest can still be given
/// back.
fn park(work: &Work, reason: Park, reference: Option<&String>) -> Follow {
    let mut charge = work.charge.clone();
    let mut operation = work.operation.clone();
    match work.outbox.saga.flow {
        Flow::Refund => {}
        Flow::Charge | Flow::Authorize | Flow::Split | Flow::Capture | Flow::Void => {
            charge.status = Status::Parked;
        }
    }
    if let Some(operation) = &mut operation {
        operation.status = operation::Status::Parked;
        operation.provider_reference = reference.cloned().or(operation.provider_reference.take());
    } else if charge.provider_reference.is_none() {
        charge.provider_reference = reference.cloned();
    }
    let outbox = Outbox { parked: Some(reason), due_at: Time::MAX, ..next_of(&work.outbox) };
    Follow {
        charge: moved(&work.charge, charge),
        operation: moved_operation(work.operation.as_ref(), operation),
        books: Vec::new(),
        fate: Fate::Parked(outbox),
    }
}

fn moved(old: &Charge, new: Charge) -> Option<Charge> {
    (*old != new).then(|| Charge { revision: old.revision.saturating_add(1), ..new })
}

fn moved_operation(old: Option<&Operation>, new: Option<Operation>) -> Option<Operation> {
    let (old, new) = old.zip(new)?;
    (*old != new).then(|| Operation { revision: old.revision.saturating_add(1), ..new })
}

fn next_of(outbox: &Outbox) -> Outbox {
    Outbox { revision: outbox.revision.saturating_add(1), ..outbox.clone() }
}
