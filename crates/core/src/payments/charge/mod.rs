//! A charge: the clients' resource, and the legal transitions.

pub mod create;

use crate::outbox::ProviderBinding;
use crate::types::id::{AccountId, ChargeId, OperationId, TenantId};
use crate::types::mask::Masked;
use crate::types::money::Money;
use crate::types::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    pub id: ChargeId,
    pub tenant: TenantId,
    /// The client's order. Never changes, so copies of the charge share the order.
    pub order: Arc<ChargeOrder>,
    pub status: ChargeStatus,
    pub sums: ChargeSums,
    /// The capture or void in progress.
    pub working: Option<OperationId>,
    /// The provider and endpoint, fixed for the charge's life.
    pub provider: ProviderBinding,
    /// The provider's reference, once known.
    pub provider_reference: Option<String>,
    pub failure: Option<PaymentFailure>,
    pub created_at: Time,
    pub revision: u64,
}

/// The captured and refunded amounts, in minor units of the charge's currency. They cover the
/// provider's part; the ledger alone records a wallet's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeSums {
    pub captured: i64,
    pub refunded: i64,
    /// Reserved by refunds in progress.
    pub refunding: i64,
}

impl ChargeSums {
    /// The remaining refundable amount.
    pub const fn refundable(&self) -> i64 {
        self.captured.saturating_sub(self.refunded).saturating_sub(self.refunding)
    }

    /// Whether refunds, including those in progress, stay within the captured amount.
    pub const fn are_sound(&self) -> bool {
        self.refunded >= 0 && self.refunding >= 0 && self.captured >= 0 && self.refundable() >= 0
    }
}

/// The client's order, fixed at creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeOrder {
    pub amount: Money,
    /// The provider's token of the payment method.
    pub payment_method: Masked<String>,
    /// Whether to capture at once; otherwise the amount is only held.
    pub capture: bool,
    /// The account to credit.
    pub destination: AccountId,
    /// The wallet's part of the amount.
    pub wallet: Option<Wallet>,
    pub description: Option<Masked<String>>,
    pub metadata: BTreeMap<String, Masked<String>>,
}

/// The part of a charge that a balance in the ledger pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wallet {
    /// The account to debit.
    pub account: AccountId,
    /// Minor units of the charge's currency, less than the whole amount.
    pub amount: i64,
}

impl ChargeOrder {
    /// The amount that the provider is asked for.
    pub fn card(&self) -> i64 {
        let wallet = self.wallet.map_or(0, |wallet| wallet.amount);
        self.amount.minor().saturating_sub(wallet)
    }
}

/// The status of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChargeStatus {
    /// In progress, or the outcome is unknown.
    Processing,
    /// Held for a later capture.
    RequiresCapture,
    /// Captured.
    Succeeded,
    /// Refused.
    Failed,
    /// Voided before capture.
    Voided,
    /// Refunded in full.
    Refunded,
    /// Refunded in part.
    PartiallyRefunded,
    /// Only a human can continue.
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
    /// The name clients see.
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

    pub fn parse(name: &str) -> Option<ChargeStatus> {
        STATUSES.into_iter().find(|status| status.name() == name)
    }

    /// Whether the status `next` is a legal successor. Enforced by every store.
    pub const fn may_become(self, next: ChargeStatus) -> bool {
        match self {
            // A human or late evidence may settle a parked charge either way.
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

    /// Whether money was captured, including charges refunded later.
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
    /// Whether `next` is a legal successor. Enforced by every store. Captured and refunded sums
    /// never fall, and refunds never exceed the captured amount.
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
    pub code: FailureCode,
    /// The issuer's reason, if given.
    pub decline_code: Option<String>,
}

/// The closed list of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// The issuer declined.
    CardDeclined,
    /// The provider does not accept the request's content.
    GatewayRejected,
    /// The provider does not accept our credentials.
    GatewayUnauthorized,
    /// Every attempt certainly had no effect, and the attempts ran out.
    GatewayUnavailable,
    /// A human marked the payment as not executed.
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
    /// The `error` code clients see.
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

    pub fn parse(name: &str) -> Option<FailureCode> {
        FAILURES.into_iter().find(|code| code.name() == name)
    }
}
