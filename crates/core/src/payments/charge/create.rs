//! Creating a charge: the claim, the charge, its work and its first audit record, as one decision.

use super::{Charge, ChargeOrder, ChargeStatus, ChargeSums, Wallet};
use crate::audit::{AuditKind, AuditRecord, record_id};
use crate::idempotency::claim::{Claim, ClaimState, LeasePolicy, Resource};
use crate::idempotency::request::Request;
use crate::outbox::{Flow, History, Outbox, Payment, ProviderBinding};
use crate::payments::flow::{self, AfterStep, Transition};
use crate::payments::{Opening, PaymentSubject, Work};
use crate::types::id::{AccountId, ChargeId, HoldId, Holder};
use crate::types::mask::Masked;
use crate::types::money::Money;
use crate::types::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A valid request to charge.
#[derive(Clone, Debug)]
pub struct CreateCharge {
    /// Who asks, under which key.
    pub request: Request,
    /// What to charge.
    pub wanted: NewCharge,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCharge {
    /// How much.
    pub amount: Money,
    /// The provider's token for the means of payment.
    pub payment_method: Masked<String>,
    /// Capture at once, or only hold.
    pub capture: bool,
    /// The account to credit; absent means the tenant's main one of the currency.
    pub destination: Option<AccountId>,
    /// What a wallet pays of it: money is moved in the ledger and at the provider, or neither.
    pub wallet: Option<Wallet>,
    /// The client's own words.
    pub description: Option<Masked<String>>,
    /// The client's own pairs.
    pub metadata: BTreeMap<String, Masked<String>>,
}

impl NewCharge {
    /// The saga it is.
    pub const fn flow(&self) -> Flow {
        match (self.wallet, self.capture) {
            (Some(_), _) => Flow::Split,
            (None, true) => Flow::Charge,
            (None, false) => Flow::Authorize,
        }
    }

    /// The order, once its destination is known.
    pub fn order(self, destination: AccountId) -> ChargeOrder {
        ChargeOrder {
            amount: self.amount,
            payment_method: self.payment_method,
            capture: self.capture,
            destination,
            wallet: self.wallet,
            description: self.description,
            metadata: self.metadata,
        }
    }
}

/// What the world adds to a decision.
#[derive(Clone, Debug)]
pub struct ChargeIds {
    /// The charge's id.
    pub charge: ChargeId,
    /// The number of what it reserves in a wallet, if it does.
    pub hold: Option<HoldId>,
    /// The store's time.
    pub now: Time,
    /// Chance for the audit record's id.
    pub chance: u128,
    /// The process that will execute.
    pub holder: Holder,
    /// The account that will be credited.
    pub destination: AccountId,
}

/// Decides a creation. `expired` is the record whose key is free again and is claimed anew. Nothing if the flow has no
/// step to begin with, which a test of the flows excludes.
pub fn decide(
    command: CreateCharge,
    provider: ProviderBinding,
    lease: LeasePolicy,
    minted: &ChargeIds,
    expired: Option<&Claim>,
) -> Option<Opening> {
    let (charge, now) = (minted.charge, minted.now);
    let lease = lease.grant(minted.holder, now);
    let request = command.request;
    let Transition { ledger, onward } = flow::begin(command.wanted.flow())?;
    let AfterStep::Call(_, saga) = onward else { return None };
    let claim = request.claim(charge.into(), Resource::Charge, ClaimState::InFlight(lease), now, expired);
    let outbox = Outbox {
        id: charge.into(),
        payment: Payment::Charge(charge),
        saga,
        hold: minted.hold,
        claim: request.claim,
        tenant: request.tenant,
        provider: provider.clone(),
        due_at: lease.until,
        created_at: now,
        history: History::begun(now),
        parked: None,
        revision: 1,
    };
    let audit = AuditRecord {
        id: record_id(now, claim.revision, minted.chance),
        tenant: request.tenant,
        subject: charge.into(),
        at: now,
        fence: claim.fence,
        kind: AuditKind::Claimed,
        detail: format!("request=req_{} reused={}", request.id, expired.is_some()),
    };
    let charge = Charge {
        id: charge,
        tenant: request.tenant,
        order: Arc::new(command.wanted.order(minted.destination)),
        status: ChargeStatus::Processing,
        sums: ChargeSums::default(),
        working: None,
        provider,
        provider_reference: None,
        failure: None,
        created_at: now,
        revision: 1,
    };
    Some(Opening {
        work: Work { claim, subject: PaymentSubject::Charge(charge, None), outbox },
        ledger,
        audit,
    })
}
