//! Payments: claim, outbox, saga, audit and ledger, composed into one decision.
//!
//! [`flow`] defines the steps of each flow. An [`attempt`] is one call to the provider: the choice
//! of the call and the verdict on its outcome. [`follow`](follow::follow) turns the verdict into
//! all changes, as one decision.

pub mod attempt;
pub mod charge;
pub mod flow;
pub mod follow;
pub mod ledger;
pub mod operation;
pub mod payout;
pub mod provider;

use crate::audit::AuditRecord;
use crate::idempotency::claim::Claim;
use crate::outbox::Outbox;
use crate::types::mask::Masked;
use crate::types::money::Money;
use charge::Charge;
use flow::SagaAction;
use operation::Operation;
use payout::Payout;

/// The stored rows of work in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The claim of the work; the fence guards every write.
    pub claim: Claim,
    pub subject: PaymentSubject,
    pub outbox: Outbox,
}

/// The payment of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentSubject {
    /// A charge, and the operation on it. `None` while the charge is created.
    Charge(Charge, Option<Operation>),
    Payout(Payout),
}

/// The first change set of a payment, which must be committed before the first provider call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The work; its payment has the status processing.
    pub work: Work,
    /// The ledger actions of the set.
    pub ledger: Vec<SagaAction>,
    pub audit: AuditRecord,
}

impl PaymentSubject {
    /// The amount that the work asks the provider for: an operation's own amount, else the
    /// payment's.
    pub fn amount(&self) -> Money {
        match self {
            PaymentSubject::Charge(_, Some(operation)) => operation.amount,
            PaymentSubject::Charge(charge, None) => {
                let whole = charge.order.amount;
                Money::new(charge.order.card(), whole.asset()).unwrap_or(whole)
            }
            PaymentSubject::Payout(payout) => payout.order.amount,
        }
    }

    /// The provider's reference of the payment, once known.
    pub const fn provider_reference(&self) -> Option<&String> {
        match self {
            PaymentSubject::Charge(charge, _) => charge.provider_reference.as_ref(),
            PaymentSubject::Payout(payout) => payout.provider_reference.as_ref(),
        }
    }

    /// The provider's token of the payment method, or of the bank account.
    pub fn instrument(&self) -> Option<&Masked<String>> {
        match self {
            PaymentSubject::Charge(charge, _) => Some(&charge.order.payment_method),
            PaymentSubject::Payout(payout) => payout.order.destination.as_ref(),
        }
    }

    pub const fn revision(&self) -> u64 {
        match self {
            PaymentSubject::Charge(charge, _) => charge.revision,
            PaymentSubject::Payout(payout) => payout.revision,
        }
    }

    /// The name of the payment's status.
    pub const fn status(&self) -> &'static str {
        match self {
            PaymentSubject::Charge(charge, _) => charge.status.name(),
            PaymentSubject::Payout(payout) => payout.status.name(),
        }
    }

    /// The operation, if the work belongs to one.
    pub const fn operation(&self) -> Option<&Operation> {
        match self {
            PaymentSubject::Charge(_, operation) => operation.as_ref(),
            PaymentSubject::Payout(_) => None,
        }
    }
}

impl Work {
    /// Orders this work's audit records among records of the same payment and millisecond. Records
    /// of the payment's creation come first, by the claim's revision. Records of operations follow,
    /// by the charge's revision and then the claim's.
    pub fn audit_order(&self) -> u64 {
        match self.subject.operation() {
            None => self.claim.revision,
            Some(_) => audit_order_after(self.subject.revision(), self.claim.revision),
        }
    }
}

/// The last of the places that a payment revision has in the audit order. Higher claim revisions
/// share the last place. A record after all others of the revision uses the last place directly.
pub const AUDIT_PLACE_LAST: u64 = 15;

/// The audit order of a record after a payment's creation, at that revision of the payment.
pub fn audit_order_after(payment_revision: u64, claim_revision: u64) -> u64 {
    const AFTER_CREATION: u64 = 1 << 16;
    const PLACES_PER_REVISION: u64 = AUDIT_PLACE_LAST + 1;
    let place = claim_revision.min(AUDIT_PLACE_LAST);
    AFTER_CREATION.saturating_add(payment_revision.saturating_mul(PLACES_PER_REVISION)).saturating_add(place)
}
