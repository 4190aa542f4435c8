//! Operations: what is asked of a charge after it was made. Each is a guarded move of the charge, on its status and
//! its revision, under a claim of its own.

pub mod launch;

use super::charge::{ChargeStatus, PaymentFailure};
use crate::outbox::Flow;
use crate::types::id::{ChargeId, OperationId, TenantId};
use crate::types::money::Money;
use crate::types::time::Time;

/// A capture, a void or a refund.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Minted with the claim.
    pub id: OperationId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What it is done to.
    pub charge: ChargeId,
    /// What is done.
    pub kind: OperationKind,
    /// How much; of a void, everything that was held.
    pub amount: Money,
    /// Where it stands.
    pub status: OperationStatus,
    /// The provider's reference, once it gave one.
    pub provider_reference: Option<String>,
    /// Why it failed, if it did.
    pub failure: Option<PaymentFailure>,
    /// Minted with the claim.
    pub created_at: Time,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// What can be asked of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Take what is held.
    Capture,
    /// Give up what is held.
    Void,
    /// Give back what was taken.
    Refund,
}

const KINDS: [OperationKind; 3] = [OperationKind::Capture, OperationKind::Void, OperationKind::Refund];

impl OperationKind {
    /// The word clients and stores see.
    pub const fn name(self) -> &'static str {
        match self {
            OperationKind::Capture => "capture",
            OperationKind::Void => "void",
            OperationKind::Refund => "refund",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<OperationKind> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }

    /// The saga it is.
    pub const fn flow(self) -> Flow {
        match self {
            OperationKind::Capture => Flow::Capture,
            OperationKind::Void => Flow::Void,
            OperationKind::Refund => Flow::Refund,
        }
    }

    /// Whether a charge of that status can have it done.
    pub const fn fits(self, status: ChargeStatus) -> bool {
        match self {
            OperationKind::Capture | OperationKind::Void => matches!(status, ChargeStatus::RequiresCapture),
            OperationKind::Refund => {
                matches!(status, ChargeStatus::Succeeded | ChargeStatus::PartiallyRefunded)
            }
        }
    }
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationStatus {
    /// Under way, or its outcome is not known yet.
    Processing,
    /// Done.
    Succeeded,
    /// Refused; the charge is as it was.
    Failed,
    /// Needs a human.
    Parked,
}

const STATUSES: [OperationStatus; 4] = [
    OperationStatus::Processing,
    OperationStatus::Succeeded,
    OperationStatus::Failed,
    OperationStatus::Parked,
];

impl OperationStatus {
    /// The word clients see.
    pub const fn name(self) -> &'static str {
        match self {
            OperationStatus::Processing => "processing",
            OperationStatus::Succeeded => "succeeded",
            OperationStatus::Failed => "failed",
            OperationStatus::Parked => "parked",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<OperationStatus> {
        STATUSES.into_iter().find(|status| status.name() == name)
    }

    /// Whether it has ended.
    pub const fn is_final(self) -> bool {
        matches!(self, OperationStatus::Succeeded | OperationStatus::Failed)
    }
}

impl Operation {
    /// Whether `next` may stand where this operation stands: it ends once, and what was asked does not change.
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
