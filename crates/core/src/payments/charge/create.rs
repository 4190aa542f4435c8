//! Creates a charge: claim, charge, outbox row and first audit record, as one decision.

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
    pub request: Request,
    pub wanted: NewCharge,
}

/// The client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCharge {
    pub amount: Money,
    /// The provider's token of the payment method.
    pub payment_method: Masked<String>,
    /// Whether to capture at once; otherwise the amount is only held.
    pub capture: bool,
    /// The account to credit; `None` means the tenant's main account of the currency.
    pub destination: Option<AccountId>,
    /// The wallet's part of the amount. Ledger and provider move their parts together or not at
    /// all.
    pub wallet: Option<Wallet>,
    pub description: Option<Masked<String>>,
    pub metadata: BTreeMap<String, Masked<String>>,
}

impl NewCharge {
    pub const fn flow(&self) -> Flow {
        match (self.wallet, self.capture) {
            (Some(_), _) => Flow::Split,
            (None, true) => Flow::Charge,
            (None, false) => Flow::Authorize,
        }
    }

    /// The order, with its destination resolved.
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

/// The ids, the time and the randomness that the decision needs.
#[derive(Clone, Debug)]
pub struct ChargeIds {
    pub charge: ChargeId,
    /// The id of the reservation in a wallet, if there is a wallet.
    pub hold: Option<HoldId>,
    pub now: Time,
    /// Randomness for the audit record's id.
    pub chance: u128,
    /// The process that executes the charge.
    pub holder: Holder,
    /// The account to credit.
    pub destination: AccountId,
}

/// Decides a creation. `expired` is the claim whose key is free again and is reused. `None` if the
/// flow does not begin with a provider call, which a test excludes.
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
    let Transition { ledger, next } = flow::begin(command.wanted.flow())?;
    let AfterStep::Call(_, saga) = next else { return None };
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
