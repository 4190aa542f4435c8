//! A payout: money that leaves an account of the ledger. The provider pays it to a bank account, or
//! a peer to an account in its ledger.

pub mod create;

use super::charge::PaymentFailure;
use crate::outbox::ProviderBinding;
use crate::types::id::{AccountId, PayoutId, TenantId};
use crate::types::mask::Masked;
use crate::types::money::Money;
use crate::types::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A payout. Its reservation in the ledger has the payout's own number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payout {
    pub id: PayoutId,
    pub tenant: TenantId,
    /// The client's order. Never changes, so copies of the payout share the order.
    pub order: Arc<PayoutOrder>,
    pub status: PayoutStatus,
    /// The provider and endpoint, fixed for the payout's life.
    pub provider: ProviderBinding,
    /// The provider's reference, once known.
    pub provider_reference: Option<String>,
    pub failure: Option<PaymentFailure>,
    pub created_at: Time,
    pub revision: u64,
}

/// The client's order, fixed at creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayoutOrder {
    pub amount: Money,
    /// The account to debit.
    pub account: AccountId,
    /// The provider's name of the bank account, where `None` means its default. For a peer: the
    /// account there.
    pub destination: Option<Masked<String>>,
    pub description: Option<Masked<String>>,
    pub metadata: BTreeMap<String, Masked<String>>,
}

/// The status of a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayoutStatus {
    /// In progress, or the outcome is unknown.
    Processing,
    /// Accepted by the provider, and posted.
    Paid,
    /// Refused; the reserved money is free again.
    Failed,
    /// Only a human can continue.
    Parked,
}

const STATUSES: [PayoutStatus; 4] =
    [PayoutStatus::Processing, PayoutStatus::Paid, PayoutStatus::Failed, PayoutStatus::Parked];

impl PayoutStatus {
    /// The name clients see.
    pub const fn name(self) -> &'static str {
        match self {
            PayoutStatus::Processing => "processing",
            PayoutStatus::Paid => "paid",
            PayoutStatus::Failed => "failed",
            PayoutStatus::Parked => "parked",
        }
    }

    pub fn parse(name: &str) -> Option<PayoutStatus> {
        STATUSES.into_iter().find(|status| status.name() == name)
    }

    /// Whether the payout has ended.
    pub const fn is_final(self) -> bool {
        match self {
            PayoutStatus::Paid | PayoutStatus::Failed => true,
            PayoutStatus::Processing | PayoutStatus::Parked => false,
        }
    }
}

impl Payout {
    /// Whether `next` is a legal successor of the payout. A payout ends once, and its order never
    /// changes.
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
