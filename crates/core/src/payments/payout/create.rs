//! Creating a payout: the claim, the payout, its work and its first audit record, as one decision.

use super::{Payout, PayoutOrder, PayoutStatus};
use crate::audit::{AuditKind, AuditRecord, record_id};
use crate::idempotency::claim::{Claim, ClaimState, LeasePolicy, Resource};
use crate::idempotency::request::Request;
use crate::outbox::{Flow, History, Outbox, Payment, ProviderBinding};
use crate::payments::flow::{self, AfterStep, Transition};
use crate::payments::{Opening, PaymentSubject, Work};
use crate::types::id::{AccountId, HoldId, Holder, PayoutId};
use crate::types::mask::Masked;
use crate::types::money::Money;
use crate::types::peer::PeerName;
use crate::types::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A valid request to pay out.
#[derive(Clone, Debug)]
pub struct CreatePayout {
    /// Who asks, under which key.
    pub request: Request,
    /// What to pay.
    pub wanted: NewPayout,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayout {
    /// How much.
    pub amount: Money,
    /// The account to pay from; absent means the tenant's main one of the currency.
    pub account: Option<AccountId>,
    /// The peer whose account is paid; absent means a bank account, by the provider.
    pub peer: Option<PeerName>,
    /// The provider's name of the bank account, absent for the provider's default; or the account at the peer, by its id or
    /// code.
    pub destination: Option<Masked<String>>,
    /// The client's own words.
    pub description: Option<Masked<String>>,
    /// The client's own pairs.
    pub metadata: BTreeMap<String, Masked<String>>,
}

/// What the world adds to a decision.
#[derive(Clone, Copy, Debug)]
pub struct PayoutIds {
    /// The payout's id.
    pub payout: PayoutId,
    /// The store's time.
    pub now: Time,
    /// Chance for the audit record's id.
    pub chance: u128,
    /// The process that will execute.
    pub holder: Holder,
    /// The account that will be debited.
    pub account: AccountId,
}

/// Decides a creation. `expired` is the record whose key is free again and is claimed anew. Nothing if the flow has no
/// step to begin with, which a test of the flows excludes.
pub fn decide(
    command: CreatePayout,
    provider: ProviderBinding,
    lease: LeasePolicy,
    minted: PayoutIds,
    expired: Option<&Claim>,
) -> Option<Opening> {
    let PayoutIds { payout: id, now, .. } = minted;
    let lease = lease.grant(minted.holder, now);
    let CreatePayout { request, wanted } = command;
    let Transition { ledger, onward } = flow::begin(Flow::Payout)?;
    let AfterStep::Call(_, saga) = onward else { return None };
    let claim = request.claim(id.into(), Resource::Payout, ClaimState::InFlight(lease), now, expired);
    let outbox = Outbox {
        id: id.into(),
        payment: Payment::Payout(id),
        saga,
        // What a payout reserves has the payout's own number.
        hold: Some(HoldId::from_i64(id.to_i64())),
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
        subject: id.into(),
        at: now,
        fence: claim.fence,
        kind: AuditKind::Claimed,
        detail: format!("request=req_{} reused={}", request.id, expired.is_some()),
    };
    let payout = Payout {
        id,
        tenant: request.tenant,
        order: Arc::new(PayoutOrder {
            amount: wanted.amount,
            account: minted.account,
            destination: wanted.destination,
            description: wanted.description,
            metadata: wanted.metadata,
        }),
        status: PayoutStatus::Processing,
        provider,
        provider_reference: None,
        failure: None,
        created_at: now,
        revision: 1,
    };
    Some(Opening { work: Work { claim, subject: PaymentSubject::Payout(payout), outbox }, ledger, audit })
}
