//! A charge: the resource clients see, and the decisions that move it.

pub mod create;
pub mod next;
pub mod resume;
pub mod settle;

use crate::types::id::{AccountId, ChargeId, TenantId};
use crate::types::mask::Masked;
use crate::types::money::Money;
use crate::types::time::Time;
use std::collections::BTreeMap;

/// A charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Minted with the claim.
    pub id: ChargeId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What was asked for.
    pub order: Order,
    /// Where it stands.
    pub status: Status,
    /// The provider's profile name.
    pub provider: String,
    /// The provider's reference, once it gave one.
    pub provider_reference: Option<String>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// Minted with the claim.
    pub created_at: Time,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// What a client asked for; fixed at creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// How much.
    pub amount: Money,
    /// The provider's token for the means of payment.
    pub payment_method: Masked<String>,
    /// Capture at once, or only hold.
    pub capture: bool,
    /// The account credited.
    pub destination: AccountId,
    /// The client's own words.
    pub description: Option<Masked<String>>,
    /// The client's own pairs.
    pub metadata: BTreeMap<String, Masked<String>>,
}

/// Where a charge stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Under way, or its outcome is not known yet.
    Processing,
    /// Held for capture.
    RequiresCapture,
    /// Captured.
    Succeeded,
    /// Refused.
    Failed,
    /// Needs a human.
    Parked,
}

const STATUSES: [Status; 5] =
    [Status::Processing, Status::RequiresCapture, Status::Succeeded, Status::Failed, Status::Parked];

impl Status {
    /// The word clients see.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Processing => "processing",
            Status::RequiresCapture => "requires_capture",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Parked => "parked",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Status> {
        STATUSES.into_iter().find(|status| status.name() == name)
    }

    /// Whether a charge may move from here to `next`: what every store holds against every writer.
    pub const fn may_become(self, next: Status) -> bool {
        match self {
            // A human, or late evidence, may settle a parked charge either way.
            Status::Processing | Status::Parked => true,
            Status::RequiresCapture => matches!(next, Status::RequiresCapture),
            Status::Succeeded => matches!(next, Status::Succeeded),
            Status::Failed => matches!(next, Status::Failed),
        }
    }
}

/// Why a charge failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
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
}

const FAILURES: [FailureCode; 4] = [
    FailureCode::CardDeclined,
    FailureCode::GatewayRejected,
    FailureCode::GatewayUnauthorized,
    FailureCode::GatewayUnavailable,
];

impl FailureCode {
    /// The `error` word clients see.
    pub const fn name(self) -> &'static str {
        match self {
            FailureCode::CardDeclined => "card_declined",
            FailureCode::GatewayRejected => "gateway_rejected",
            FailureCode::GatewayUnauthorized => "gateway_unauthorized",
            FailureCode::GatewayUnavailable => "gateway_unavailable",
        }
    }

    /// The failure of that name.
    pub fn parse(name: &str) -> Option<FailureCode> {
        FAILURES.into_iter().find(|code| code.name() == name)
    }
}
