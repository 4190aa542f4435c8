//! Creates a payout: claim, payout, outbox row and first audit record, as one decision.

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
    pub request: Request,
    pub wanted: NewPayout,
}

/// The client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayout {
    pub amount: Money,
    /// The account to pay from; `None` means the tenant's main account of the currency.
    pub account: Option<AccountId>,
    /// The peer whose account is paid; `None` means a bank account, paid by the provider.
    pub peer: Option<PeerName>,
    /// The provider's name of the bank account, where `None` means its default. For a peer: the id
    /// or code of the account there.
    pub destination: Option<Masked<String>>,
    pub description: Option<Masked<String>>,
    pub metadata: BTreeMap<String, Masked<String>>,
}

/// The ids, the time and the randomness that the decision needs.
#[derive(Clone, Copy, Debug)]
pub struct PayoutIds {
    pub payout: PayoutId,
    pub now: Time,
    /// Randomness for the audit record's id.
    pub chance: u128,
    /// The process that executes the payout.
    pub holder: Holder,
    /// The account to debit.
    pub account: AccountId,
}

/// Decides a creation. `expired` is the claim whose key is free again and is reused. `None` if the
/// flow does not begin with a provider call, which a test excludes.
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
    let Transition { ledger, next } = flow::begin(Flow::Payout)?;
    let AfterStep::Call(_, saga) = next else { return None };
    let claim = request.claim(id.into(), Resource::Payout, ClaimState::InFlight(lease), now, expired);
    let outbox = Outbox {
        id: id.into(),
        payment: Payment::Payout(id),
        saga,
        // A payout's reservation has the payout's own number.
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
