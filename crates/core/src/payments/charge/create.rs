//! Creating a charge: the claim, the charge, its work and its first audit record, as one decision.

use super::{Charge, Order, Status};
use crate::audit::{Kind, Record, record_id};
use crate::idempotency::claim::{Claim, LeasePolicy, Resource, State};
use crate::idempotency::request::Request;
use crate::outbox::{History, Outbox, Pinned};
use crate::types::id::{AccountId, ChargeId, Holder};
use crate::types::mask::Masked;
use crate::types::money::Money;
use crate::types::time::Time;
use std::collections::BTreeMap;

/// A valid request to charge.
#[derive(Clone, Debug)]
pub struct CreateCharge {
    /// Who asks, under which key.
    pub request: Request,
    /// What to charge.
    pub wanted: Wanted,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How much.
    pub amount: Money,
    /// The provider's token for the means of payment.
    pub payment_method: Masked<String>,
    /// Capture at once, or only hold.
    pub capture: bool,
    /// The account to credit; absent means the tenant's main one of the currency.
    pub destination: Option<AccountId>,
    /// The client's own words.
    pub description: Option<Masked<String>>,
    /// The client's own pairs.
    pub metadata: BTreeMap<String, Masked<String>>,
}

impl Wanted {
    /// The order, once its destination is known.
    pub fn order(self, destination: AccountId) -> Order {
        Order {
            amount: self.amount,
            payment_method: self.payment_method,
            capture: self.capture,
            destination,
            description: self.description,
            metadata: self.metadata,
        }
    }
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
    /// The account that will be credited.
    pub destination: AccountId,
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
    let request = command.request;
    let claim = request.claim(charge.into(), Resource::Charge, State::InFlight(lease), now, expired);
    let outbox = Outbox {
        charge,
        claim: request.claim,
        tenant: request.tenant,
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
        tenant: request.tenant,
        subject: charge.into(),
        at: now,
        fence: claim.fence,
        kind: Kind::Claimed,
        detail: format!("request=req_{} reused={}", request.id, expired.is_some()),
    };
    let charge = Charge {
        id: charge,
        tenant: request.tenant,
        order: command.wanted.order(minted.destination),
        status: Status::Processing,
        provider: provider.profile,
        provider_reference: None,
        failure: None,
        created_at: now,
        revision: 1,
    };
    Opening { claim, charge, outbox, audit }
}
