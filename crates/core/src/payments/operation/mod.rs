//! Operations: what is asked of a charge after it was made. Each is a guarded move of the charge, on its status and
//! its revision, under a claim of its own.

pub mod launch;

use super::charge::{Failure, Status as ChargeStatus};
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
    pub kind: Kind,
    /// How much; of a void, everything that was held.
    pub amount: Money,
    /// Where it stands.
    pub status: Status,
    /// The provider's reference, once it gave one.
    pub provider_reference: Option<String>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// Minted with the claim.
    pub created_at: Time,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// What can be asked of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Take what is held.
    Capture,
    /// Give up what is held.
    Void,
    /// Give back what was taken.
    Refund,
}

const KINDS: [Kind; 3] = [Kind::Capture, Kind::Void, Kind::Refund];

impl Kind {
    /// The word clients and stores see.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Capture => "capture",
            Kind::Void => "void",
            Kind::Refund => "refund",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }

    /// The saga it is.
    pub const fn flow(self) -> Flow {
        match self {
            Kind::Capture => Flow::Capture,
            Kind::Void => Flow::Void,
            Kind::Refund => Flow::Refund,
        }
    }

    /// Whether a charge of that status can have it done.
    pub const fn fits(self, status: ChargeStatus) -> bool {
        match self {
            Kind::Capture | Kind::Void => matches!(status, ChargeStatus::RequiresCapture),
            Kind::Refund => matches!(status, ChargeStatus::Succeeded | ChargeStatus::PartiallyRefunded),
        }
    }
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Under way, or its outcome is not known yet.
    Processing,
    /// Done.
    Succeeded,
    /// Refused; the charge is as it was.
    Failed,
    /// Needs a human.
    Parked,
}

const STATUSES: [Status; 4] = [Status::Processing, Status::Succeeded, Status::Failed, Status::Parked];

impl Status {
    /// The word clients see.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Processing => "processing",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Parked => "parked",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Status> {
        STATUSES.into_iter().find(|status| status.name() == name)
    }

    /// Whether it has ended.
    pub const fn is_final(self) -> bool {
        matches!(self, Status::Succeeded | Status::Failed)
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
