//! A charge: the resource clients see, and the decisions that move it.

pub mod create;

use crate::outbox::ProviderBinding;
use crate::types::id::{AccountId, ChargeId, OperationId, TenantId};
use crate::types::mask::Masked;
use crate::types::money::Money;
use crate::types::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Minted with the claim.
    pub id: ChargeId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What was asked for. It never changes, so copies of the charge share it.
    pub order: Arc<ChargeOrder>,
    /// Where it stands.
    pub status: ChargeStatus,
    /// What was taken and given back so far.
    pub sums: ChargeSums,
    /// The capture or void that is under way.
    pub working: Option<OperationId>,
    /// The provider and endpoint it is bound to for life; charges of old stores know only the profile.
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

/// What a charge took and gave back, in minor units of its currency. Only the provider's part of it: what a wallet paid
/// stands in the ledger alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeSums {
    /// Taken.
    pub captured: i64,
    /// Given back.
    pub refunded: i64,
    /// Being given back: reserved by refunds under way.
    pub refunding: i64,
}

impl ChargeSums {
    /// What may still be given back.
    pub const fn refundable(&self) -> i64 {
        self.captured.saturating_sub(self.refunded).saturating_sub(self.refunding)
    }

    /// Whether no more was given back than was taken.
    pub const fn are_sound(&self) -> bool {
        self.refunded >= 0 && self.refunding >= 0 && self.captured >= 0 && self.refundable() >= 0
    }
}

/// What a client asked for; fixed at creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeOrder {
    /// How much.
    pub amount: Money,
    /// The provider's token for the means of payment.
    pub payment_method: Masked<String>,
    /// Capture at once, or only hold.
    pub capture: bool,
    /// The account credited.
    pub destination: AccountId,
    /// What a wallet pays of it.
    pub wallet: Option<Wallet>,
    /// The client's own words.
    pub description: Option<Masked<String>>,
    /// The client's own pairs.
    pub metadata: BTreeMap<String, Masked<String>>,
}

/// The part of a charge that a balance in the ledger pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wallet {
    /// The account debited.
    pub account: AccountId,
    /// Minor units of the charge's currency, less than the whole.
    pub amount: i64,
}

impl ChargeOrder {
    /// What the provider is asked for.
    pub fn card(&self) -> i64 {
        let wallet = self.wallet.map_or(0, |wallet| wallet.amount);
        self.amount.minor().saturating_sub(wallet)
    }
}

/// Where a charge stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChargeStatus {
    /// Under way, or its outcome is not known yet.
    Processing,
    /// Held for capture.
    RequiresCapture,
    /// Captured.
    Succeeded,
    /// Refused.
    Failed,
    /// Given up before it was captured.
    Voided,
    /// Given back whole.
    Refunded,
    /// Given back in part.
    PartiallyRefunded,
    /// Needs a human.
    Parked,
}

const STATUSES: [ChargeStatus; 8] = [
    ChargeStatus::Processing,
    ChargeStatus::RequiresCapture,
    ChargeStatus::Succeeded,
    ChargeStatus::Failed,
    ChargeStatus::Voided,
    ChargeStatus::Refunded,
    ChargeStatus::PartiallyRefunded,
    ChargeStatus::Parked,
];

impl ChargeStatus {
    /// The word clients see.
    pub const fn name(self) -> &'static str {
        match self {
            ChargeStatus::Processing => "processing",
            ChargeStatus::RequiresCapture => "requires_capture",
            ChargeStatus::Succeeded => "succeeded",
            ChargeStatus::Failed => "failed",
            ChargeStatus::Voided => "voided",
            ChargeStatus::Refunded => "refunded",
            ChargeStatus::PartiallyRefunded => "partially_refunded",
            ChargeStatus::Parked => "parked",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<ChargeStatus> {
        STATUSES.into_iter().find(|status| status.name() == name)
    }

    /// Whether a charge may move from here to `next`: what every store holds against every writer.
    pub const fn may_become(self, next: ChargeStatus) -> bool {
        match self {
            // A human, or late evidence, may settle a parked charge either way.
            ChargeStatus::Processing | ChargeStatus::Parked => true,
            ChargeStatus::RequiresCapture => {
                matches!(
                    next,
                    ChargeStatus::RequiresCapture
                        | ChargeStatus::Succeeded
                        | ChargeStatus::Voided
                        | ChargeStatus::Parked
                )
            }
            ChargeStatus::Succeeded => {
                matches!(
                    next,
                    ChargeStatus::Succeeded | ChargeStatus::PartiallyRefunded | ChargeStatus::Refunded
                )
            }
            ChargeStatus::PartiallyRefunded => {
                matches!(next, ChargeStatus::PartiallyRefunded | ChargeStatus::Refunded)
            }
            ChargeStatus::Failed => matches!(next, ChargeStatus::Failed),
            ChargeStatus::Voided => matches!(next, ChargeStatus::Voided),
            ChargeStatus::Refunded => matches!(next, ChargeStatus::Refunded),
        }
    }

    /// Whether money was taken, whatever became of it since.
    pub const fn is_captured(self) -> bool {
        match self {
            ChargeStatus::Succeeded | ChargeStatus::Refunded | ChargeStatus::PartiallyRefunded => true,
            ChargeStatus::Processing
            | ChargeStatus::RequiresCapture
            | ChargeStatus::Failed
            | ChargeStatus::Voided
            | ChargeStatus::Parked => false,
        }
    }
}

impl Charge {
    /// Whether `next` may stand where this charge stands: what every store holds against every writer. What was taken
    /// or given back never becomes less, and what is given back never more than what was taken.
    pub fn may_become(&self, next: &Charge) -> bool {
        self.status.may_become(next.status)
            && self.order == next.order
            && self.tenant == next.tenant
            && self.provider == next.provider
            && self.sums.captured <= next.sums.captured
            && self.sums.refunded <= next.sums.refunded
            && next.sums.are_sound()
    }
}

/// Why a payment failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentFailure {
    /// Which of the closed list.
    pub code: FailureCode,
    /// The issuer's reason, where given.
    pub decline_code: Option<String>,
}

/// The closed list of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// The issuer said no.
    CardDeclined,
    /// The provider does not accept the request's content.
    GatewayRejected,
    /// The provider does not accept our credentials.
    GatewayUnauthorized,
    /// The provider could not be reached, certainly without effect, until attempts ran out.
    GatewayUnavailable,
    /// A human looked at it and said that it did not happen.
    MarkedFailed,
    /// The provider did not pay out.
    PayoutFailed,
}

const FAILURES: [FailureCode; 6] = [
    FailureCode::CardDeclined,
    FailureCode::GatewayRejected,
    FailureCode::GatewayUnauthorized,
    FailureCode::GatewayUnavailable,
    FailureCode::MarkedFailed,
    FailureCode::PayoutFailed,
];

impl FailureCode {
    /// The `error` word clients see.
    pub const fn name(self) -> &'static str {
        match self {
            FailureCode::CardDeclined => "card_declined",
            FailureCode::GatewayRejected => "gateway_rejected",
            FailureCode::GatewayUnauthorized => "gateway_unauthorized",
            FailureCode::GatewayUnavailable => "gateway_unavailable",
            FailureCode::MarkedFailed => "marked_failed",
            FailureCode::PayoutFailed => "payout_failed",
        }
    }

    /// The failure of that name.
    pub fn parse(name: &str) -> Option<FailureCode> {
        FAILURES.into_iter().find(|code| code.name() == name)
    }
}
