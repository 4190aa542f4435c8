//! Operations: requests on an existing charge. An operation is a compare-and-swap of the charge's
//! status and revision, under its own claim.

pub mod launch;

use super::charge::{ChargeStatus, PaymentFailure};
use crate::outbox::Flow;
use crate::types::id::{ChargeId, OperationId, TenantId};
use crate::types::money::Money;
use crate::types::time::Time;

/// A capture, a void or a refund.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub id: OperationId,
    pub tenant: TenantId,
    pub charge: ChargeId,
    pub kind: OperationKind,
    /// The amount; for a void, everything held.
    pub amount: Money,
    pub status: OperationStatus,
    /// The provider's reference, once known.
    pub provider_reference: Option<String>,
    pub failure: Option<PaymentFailure>,
    pub created_at: Time,
    pub revision: u64,
}

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Capture the held amount.
    Capture,
    /// Release the held amount.
    Void,
    /// Return the captured amount.
    Refund,
}

const KINDS: [OperationKind; 3] = [OperationKind::Capture, OperationKind::Void, OperationKind::Refund];

impl OperationKind {
    /// The name clients and stores see.
    pub const fn name(self) -> &'static str {
        match self {
            OperationKind::Capture => "capture",
            OperationKind::Void => "void",
            OperationKind::Refund => "refund",
        }
    }

    pub fn parse(name: &str) -> Option<OperationKind> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }

    pub const fn flow(self) -> Flow {
        match self {
            OperationKind::Capture => Flow::Capture,
            OperationKind::Void => Flow::Void,
            OperationKind::Refund => Flow::Refund,
        }
    }

    /// Whether a charge with that status allows the operation.
    pub const fn fits(self, status: ChargeStatus) -> bool {
        match self {
            OperationKind::Capture | OperationKind::Void => matches!(status, ChargeStatus::RequiresCapture),
            OperationKind::Refund => {
                matches!(status, ChargeStatus::Succeeded | ChargeStatus::PartiallyRefunded)
            }
        }
    }
}

/// The status of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationStatus {
    /// In progress, or the outcome is unknown.
    Processing,
    Succeeded,
    /// Refused; the charge is unchanged.
    Failed,
    /// Only a human can continue.
    Parked,
}

const STATUSES: [OperationStatus; 4] = [
    OperationStatus::Processing,
    OperationStatus::Succeeded,
    OperationStatus::Failed,
    OperationStatus::Parked,
];

impl OperationStatus {
    /// The name clients see.
    pub const fn name(self) -> &'static str {
        match self {
            OperationStatus::Processing => "processing",
            OperationStatus::Succeeded => "succeeded",
            OperationStatus::Failed => "failed",
            OperationStatus::Parked => "parked",
        }
    }

    pub fn parse(name: &str) -> Option<OperationStatus> {
        STATUSES.into_iter().find(|status| status.name() == name)
    }

    /// Whether the operation has ended.
    pub const fn is_final(self) -> bool {
        matches!(self, OperationStatus::Succeeded | OperationStatus::Failed)
    }
}

impl Operation {
    /// Whether `next` is a legal successor of the operation. An operation ends once, and its order
    /// never changes.
    pub fn may_become(&self, next: &Operation) -> bool {
        let fixed = Operation {
            status: next.status,
            provider_reference: next.provider_reference.clone(),
            failure: next.failure.clone(),
            revision: next.revision,
            ..self.clone()
        };
        !self.status.is_final() && fixed == *next
    }
}
