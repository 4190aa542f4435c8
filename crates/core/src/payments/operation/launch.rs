//! Launches an operation: claim, changed charge, operation, outbox row and audit record, as one
//! decision.

use super::{Operation, OperationKind, OperationStatus};
use crate::audit::{AuditKind, AuditRecord, record_id};
use crate::idempotency::claim::{Claim, ClaimState, LeasePolicy, Resource};
use crate::idempotency::request::Request;
use crate::outbox::{History, Outbox, Payment, ProviderBinding};
use crate::payments::charge::{Charge, ChargeStatus};
use crate::payments::flow::{self, AfterStep, Transition};
use crate::payments::{PaymentSubject, Work, audit_order_after};
use crate::types::id::{ChargeId, HoldId, Holder, OperationId};
use crate::types::money::Money;
use crate::types::time::Time;

/// A valid request for an operation on a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operate {
    pub request: Request,
    pub charge: ChargeId,
    pub kind: OperationKind,
    /// The amount; `None` means everything available.
    pub amount: Option<i64>,
}

/// The ids, the time and the randomness that the decision needs.
#[derive(Clone, Copy, Debug)]
pub struct OperationIds {
    pub operation: OperationId,
    pub now: Time,
    /// Randomness for the audit record's id.
    pub chance: u128,
    /// The process that executes the operation.
    pub holder: Holder,
}

/// The change set that must be committed before the provider call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationLaunch {
    /// The work, with the charge as it is during the operation.
    pub work: Work,
    /// The charge's revision before the operation.
    pub expect: u64,
    /// The first transition, with its ledger actions.
    pub transition: Transition,
    pub audit: AuditRecord,
}

/// Why a charge does not allow the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationRefusal {
    /// A different operation is in progress, and the result decides.
    Busy,
    /// The charge's status does not allow it.
    Status,
    /// The request exceeds the available amount.
    Exceeds { available: i64 },
}

/// Whether the charge allows the operation. Returns the amount.
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
    // A refusal of the refund in progress would free the amount.
    if reserved > 0 && amount <= available.saturating_add(reserved) {
        return Err(OperationRefusal::Busy);
    }
    Err(OperationRefusal::Exceeds { available })
}

/// Decides an operation. `expired` is the claim whose key is free again and is reused.
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
    let transition = flow::begin(kind.flow()).ok_or(OperationRefusal::Status)?;
    let AfterStep::Call(step, saga) = transition.next else { return Err(OperationRefusal::Status) };
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
        // A refund's reservation has the refund's own number.
        hold: transition.ledger.contains(&flow::SagaAction::Reserve).then(|| HoldId::from_i64(id.to_i64())),
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
        id: record_id(
            now,
            audit_order_after(charge.revision.saturating_add(1), claim.revision),
            minted.chance,
        ),
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
    let subject = PaymentSubject::Charge(charge_during(charge, kind, id, minor), Some(operation));
    let work = Work { claim, subject, outbox };
    Ok(OperationLaunch { work, expect: charge.revision, transition, audit })
}

/// The charge during the operation.
fn charge_during(charge: &Charge, kind: OperationKind, id: OperationId, amount: i64) -> Charge {
    let mut next = Charge { revision: charge.revision.saturating_add(1), ..charge.clone() };
    match kind {
        OperationKind::Capture | OperationKind::Void => next.working = Some(id),
        OperationKind::Refund => next.sums.refunding = next.sums.refunding.saturating_add(amount),
    }
    next
}
