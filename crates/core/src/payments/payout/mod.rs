//! A payout: money that leaves an account of the ledger for a bank account, by the provider, or for an account in the ledger
//! of a peer.

pub mod create;

use super::charge::PaymentFailure;
use crate::outbox::ProviderBinding;
use crate::types::id::{AccountId, PayoutId, TenantId};
use crate::types::mask::Masked;
use crate::types::money::Money;
use crate::types::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A payout. What it reserves in the ledger has its own number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payout {
    /// Minted with the claim.
    pub id: PayoutId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What was asked for. It never changes, so copies of the payout share it.
    pub order: Arc<PayoutOrder>,
    /// Where it stands.
    pub status: PayoutStatus,
    /// The provider and endpoint it is bound to for life.
    pub provider: ProviderBinding,
    /// The provider's reference, once it gave one.
    pub provider_reference: Option<String>,
    /// Why it failed, if it did.
    pub failure: Option<PaymentFailure>,
    /// Minted with the claim.
    pub created_at: Time,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// What a client asked for; fixed at creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayoutOrder {
    /// How much.
    pub amount: Money,
    /// The account it is paid from.
    pub account: AccountId,
    /// The provider's name of the bank account, absent for the provider's default; or the account at the peer.
    pub destination: Option<Masked<String>>,
    /// The client's own words.
    pub description: Option<Masked<String>>,
    /// The client's own pairs.
    pub metadata: BTreeMap<String, Masked<String>>,
}

/// Where a payout stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayoutStatus {
    /// Under way, or its outcome is not known yet.
    Processing,
    /// Taken by the provider, and posted.
    Paid,
    /// Refused; what was reserved is free again.
    Failed,
    /// Needs a human.
    Parked,
}

const STATUSES: [PayoutStatus; 4] =
    [PayoutStatus::Processing, PayoutStatus::Paid, PayoutStatus::Failed, PayoutStatus::Parked];

impl PayoutStatus {
    /// The word clients see.
    pub const fn name(self) -> &'static str {
        match self {
            PayoutStatus::Processing => "processing",
            PayoutStatus::Paid => "paid",
            PayoutStatus::Failed => "failed",
            PayoutStatus::Parked => "parked",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<PayoutStatus> {
        STATUSES.into_iter().find(|status| status.name() == name)
    }

    /// Whether it has ended.
    pub const fn is_final(self) -> bool {
        match self {
            PayoutStatus::Paid | PayoutStatus::Failed => true,
            PayoutStatus::Processing | PayoutStatus::Parked => false,
        }
    }
}

impl Payout {
    /// Whether `next` may stand where this payout stands: it ends once, and what was asked does not change.
    pub fn may_become(&self, next: &Payout) -> bool {
        let fixed = Payout {
            status: next.status,
            provider_reference: next.provider_reference.clone(),
            failure: next.failure.clone(),
            revision: next.revision,
            ..self.clone()
        };
        !self.status.is_final() && fixed == *next
    }
}
