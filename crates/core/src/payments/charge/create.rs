//! Creating a charge: the claim, the charge, its work and its first audit record, as one decision.

use super::{Charge, Order, Status};
use crate::audit::{Kind, Record, record_id};
use crate::idempotency::claim::{Claim, ClaimId, LeasePolicy, State};
use crate::idempotency::fingerprint::Fingerprint;
use crate::outbox::{History, Outbox, Pinned};
use crate::types::id::{ChargeId, Holder, TenantId};
use crate::types::time::Time;
use crate::types::ulid::Ulid;

/// A valid request to charge.
#[derive(Clone, Debug)]
pub struct CreateCharge {
    /// Whose request it is.
    pub tenant: TenantId,
    /// Tenant and key, digested.
    pub claim: ClaimId,
    /// Which request the key stands for.
    pub fingerprint: Fingerprint,
    /// The request's own id.
    pub request: Ulid,
    /// What to charge.
    pub order: Order,
}

/// What the world adds to a decision.
#[derive(Clone, Debug)]
pub struct Minted {
    /// The charge's id.
    pub charge: ChargeId,
    /// The store's time.
    pub now: Time,
    /// Chance for the audit record's id.
    pub chance: u128,
    /// The process that will execute.
    pub holder: Holder,
}

/// Everything that must be committed together before the provider may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The record, in flight.
    pub claim: Claim,
    /// The charge, processing.
    pub charge: Charge,
    /// The work.
    pub outbox: Outbox,
    /// The audit record.
    pub audit: Record,
}

/// Decides a creation. `expired` is the record whose key is free again and is claimed anew.
pub fn decide(
    command: CreateCharge,
    provider: Pinned,
    lease: LeasePolicy,
    minted: &Minted,
    expired: Option<&Claim>,
) -> Opening {
    let (charge, now) = (minted.charge, minted.now);
    let lease = lease.grant(minted.holder, now);
    let fence = expired.map_or(1, |old| old.fence.saturating_add(1));
    let claim = Claim {
        id: command.claim,
        tenant: command.tenant,
        fingerprint: command.fingerprint,
        subject: charge,
        request: command.request,
        created_at: now,
        fence,
        revision: expired.map_or(1, |old| old.revision.saturating_add(1)),
        attempts: 1,
        state: State::InFlight(lease),
    };
    let outbox = Outbox {
        charge,
        claim: command.claim,
        tenant: command.tenant,
        provider: provider.clone(),
        due_at: lease.until,
        created_at: now,
        history: History {
            generation: 1,
            idle_calls: 0,
            unknown: false,
            server_errors: 0,
            first_sent_at: now,
            last_sent_at: now,
        },
        parked: None,
        revision: 1,
    };
    let audit = Record {
        id: record_id(now, claim.revision, minted.chance),
        tenant: command.tenant,
        subject: charge,
        at: now,
        fence,
        kind: Kind::Claimed,
        detail: format!("request=req_{} reused={}", command.request, expired.is_some()),
    };
    let charge = Charge {
        id: charge,
        tenant: command.tenant,
        order: command.order,
        status: Status::Processing,
        provider: provider.profile,
        provider_reference: None,
        failure: None,
        created_at: now,
        revision: 1,
    };
    Opening { claim, charge, outbox, audit }
}
