//! Launching an operation: the claim, the moved charge, the operation, its work and its audit record, as one decision.

use super::{Operation, OperationKind, OperationStatus};
use crate::audit::{AuditKind, AuditRecord, record_id};
use crate::idempotency::claim::{Claim, ClaimState, LeasePolicy, Resource};
use crate::idempotency::request::Request;
use crate::outbox::{History, Outbox, Payment, ProviderBinding};
use crate::payments::charge::{Charge, ChargeStatus};
use crate::payments::flow::{self, AfterStep, Transition};
use crate::payments::{PaymentSubject, Work, turn_after};
use crate::types::id::{ChargeId, HoldId, Holder, OperationId};
use crate::types::money::Money;
use crate::types::time::Time;

/// A valid request to do something to a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operate {
    /// Who asks, under which key.
    pub request: Request,
    /// To which charge.
    pub charge: ChargeId,
    /// What.
    pub kind: OperationKind,
    /// How much of it; absent means all there is.
    pub amount: Option<i64>,
}

/// What the world adds to a decision.
#[derive(Clone, Copy, Debug)]
pub struct OperationIds {
    /// The operation's id.
    pub operation: OperationId,
    /// The store's time.
    pub now: Time,
    /// Chance for the audit record's id.
    pub chance: u128,
    /// The process that will execute.
    pub holder: Holder,
}

/// Everything that must be committed together before the provider may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationLaunch {
    /// The work, with the charge as it is while it goes on.
    pub work: Work,
    /// The charge's revision before.
    pub expect: u64,
    /// What happens in the ledger.
    pub turn: Transition,
    /// The audit record.
    pub audit: AuditRecord,
}

/// Why a charge cannot be moved so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationRefusal {
    /// Another operation is under way; its end decides.
    Busy,
    /// The charge's status does not allow it.
    Status,
    /// There is less than is asked for.
    Exceeds {
        /// So much there is.
        available: i64,
    },
}

/// Decides whether and how much.
pub fn allowed(kind: OperationKind, wanted: Option<i64>, charge: &Charge) -> Result<i64, OperationRefusal> {
    if charge.status == ChargeStatus::Processing || charge.working.is_some() {
        return Err(OperationRefusal::Busy);
    }
    if !kind.fits(charge.status) {
        return Err(OperationRefusal::Status);
    }
    let (available, reserved) = match kind {
        OperationKind::Capture | OperationKind::Void => (charge.order.card(), 0),
        OperationKind::Refund => (charge.sums.refundable(), charge.sums.refunding),
    };
    let amount = wanted.unwrap_or(available);
    if (1..=available).contains(&amount) {
        return Ok(amount);
    }
    // A refund under way may still be refused, and then there is more.
    if reserved > 0 && amount <= available.saturating_add(reserved) {
        return Err(OperationRefusal::Busy);
    }
    Err(OperationRefusal::Exceeds { available })
}

/// Decides an operation. `expired` is the record whose key is free again and is claimed anew.
pub fn launch(
    command: &Operate,
    charge: &Charge,
    provider: ProviderBinding,
    lease: LeasePolicy,
    minted: OperationIds,
    expired: Option<&Claim>,
) -> Result<OperationLaunch, OperationRefusal> {
    let Operate { request, kind, .. } = *command;
    let OperationIds { operation: id, now, .. } = minted;
    let minor = allowed(kind, command.amount, charge)?;
    let amount = Money::new(minor, charge.order.amount.asset())
        .map_err(|_| OperationRefusal::Exceeds { available: charge.order.card() })?;
    let turn = flow::begin(kind.flow()).ok_or(OperationRefusal::Status)?;
    let AfterStep::Call(step, saga) = turn.onward else { return Err(OperationRefusal::Status) };
    let lease = lease.grant(minted.holder, now);
    let makes = match kind {
        OperationKind::Capture => Resource::Capture,
        OperationKind::Void => Resource::Void,
        OperationKind::Refund => Resource::Refund,
    };
    let claim = request.claim(id.into(), makes, ClaimState::InFlight(lease), now, expired);
    let operation = Operation {
        id,
        tenant: request.tenant,
        charge: charge.id,
        kind,
        amount,
        status: OperationStatus::Processing,
        provider_reference: None,
        failure: None,
        created_at: now,
        revision: 1,
    };
    let outbox = Outbox {
        id: id.into(),
        payment: Payment::Charge(charge.id),
        saga,
        // What a refund reserves has the refund's own number.
        hold: turn.ledger.contains(&flow::SagaAction::Reserve).then(|| HoldId::from_i64(id.to_i64())),
        claim: request.claim,
        tenant: request.tenant,
        provider,
        due_at: lease.until,
        created_at: now,
        history: History::begun(now),
        parked: None,
        revision: 1,
    };
    let audit = AuditRecord {
        id: record_id(now, turn_after(charge.revision.saturating_add(1), claim.revision), minted.chance),
        tenant: request.tenant,
        subject: charge.id.into(),
        at: now,
        fence: claim.fence,
        kind: AuditKind::Claimed,
        detail: format!(
            "request=req_{} reused={} step={} amount={minor}",
            request.id,
            expired.is_some(),
            step.name()
        ),
    };
    let subject = PaymentSubject::Charge(begun(charge, kind, id, minor), Some(operation));
    let work = Work { claim, subject, outbox };
    Ok(OperationLaunch { work, expect: charge.revision, turn, audit })
}

/// The charge while the operation goes on.
fn begun(charge: &Charge, kind: OperationKind, id: OperationId, amount: i64) -> Charge {
    let mut next = Charge { revision: charge.revision.saturating_add(1), ..charge.clone() };
    match kind {
        OperationKind::Capture | OperationKind::Void => next.working = Some(id),
        OperationKind::Refund => next.sums.refunding = next.sums.refunding.saturating_add(amount),
    }
    next
}
