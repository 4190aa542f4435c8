//! Launching an operation: the claim, the moved charge, the operation, its work and its audit record, as one decision.

use super::{Kind, Operation, Status};
use crate::audit::{Kind as Audited, Record, record_id};
use crate::idempotency::claim::{Claim, LeasePolicy, Resource, State};
use crate::idempotency::request::Request;
use crate::outbox::{History, Outbox, Payment, ProviderBinding};
use crate::payments::charge::{Charge, Status as ChargeStatus};
use crate::payments::flow::{self, Onward, Turn};
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
    pub kind: Kind,
    /// How much of it; absent means all there is.
    pub amount: Option<i64>,
}

/// What the world adds to a decision.
#[derive(Clone, Copy, Debug)]
pub struct Minted {
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
pub struct Launch {
    /// The work, with the charge as it is while it goes on.
    pub work: Work,
    /// The charge's revision before.
    pub expect: u64,
    /// What happens in the ledger.
    pub turn: Turn,
    /// The audit record.
    pub audit: Record,
}

/// Why a charge cannot be moved so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
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
pub fn allowed(kind: Kind, wanted: Option<i64>, charge: &Charge) -> Result<i64, Impossible> {
    if charge.status == ChargeStatus::Processing || charge.working.is_some() {
        return Err(Impossible::Busy);
    }
    if !kind.fits(charge.status) {
        return Err(Impossible::Status);
    }
    let (available, reserved) = match kind {
        Kind::Capture | Kind::Void => (charge.order.card(), 0),
        Kind::Refund => (charge.sums.refundable(), charge.sums.refunding),
    };
    let amount = wanted.unwrap_or(available);
    if (1..=available).contains(&amount) {
        return Ok(amount);
    }
    // A refund under way may still be refused, and then there is more.
    if reserved > 0 && amount <= available.saturating_add(reserved) {
        return Err(Impossible::Busy);
    }
    Err(Impossible::Exceeds { available })
}

/// Decides an operation. `expired` is the record whose key is free again and is claimed anew.
pub fn launch(
    command: &Operate,
    charge: &Charge,
    provider: ProviderBinding,
    lease: LeasePolicy,
    minted: Minted,
    expired: Option<&Claim>,
) -> Result<Launch, Impossible> {
    let Operate { request, kind, .. } = *command;
    let Minted { operation: id, now, .. } = minted;
    let minor = allowed(kind, command.amount, charge)?;
    let amount = Money::new(minor, charge.order.amount.asset())
        .map_err(|_| Impossible::Exceeds { available: charge.order.card() })?;
    let turn = flow::begin(kind.flow()).ok_or(Impossible::Status)?;
    let Onward::Call(step, saga) = turn.onward else { return Err(Impossible::Status) };
    let lease = lease.grant(minted.holder, now);
    let makes = match kind {
        Kind::Capture => Resource::Capture,
        Kind::Void => Resource::Void,
        Kind::Refund => Resource::Refund,
    };
    let claim = request.claim(id.into(), makes, State::InFlight(lease), now, expired);
    let operation = Operation {
        id,
        tenant: request.tenant,
        charge: charge.id,
        kind,
        amount,
        status: Status::Processing,
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
    let audit = Record {
        id: record_id(now, turn_after(charge.revision.saturating_add(1), claim.revision), minted.chance),
        tenant: request.tenant,
        subject: charge.id.into(),
        at: now,
        fence: claim.fence,
        kind: Audited::Claimed,
        detail: format!(
            "request=req_{} reused={} step={} amount={minor}",
            request.id,
            expired.is_some(),
            step.name()
        ),
    };
    let subject = PaymentSubject::Charge(begun(charge, kind, id, minor), Some(operation));
    let work = Work { claim, subject, outbox };
    Ok(Launch { work, expect: charge.revision, turn, audit })
}

/// The charge while the operation goes on.
fn begun(charge: &Charge, kind: Kind, id: OperationId, amount: i64) -> Charge {
    let mut next = Charge { revision: charge.revision.saturating_add(1), ..charge.clone() };
    match kind {
        Kind::Capture | Kind::Void => next.working = Some(id),
        Kind::Refund => next.sums.refunding = next.sums.refunding.saturating_add(amount),
    }
    next
}
