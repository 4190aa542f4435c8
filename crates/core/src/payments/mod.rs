//! Payments: where claim, outbox, saga, audit and ledger are composed into one decision.
//!
//! A flow's deeds are in [`flow`]. One call to the provider is an [`attempt`]: what to do next, what its outcome means.
//! [`follow`](follow::follow) turns that meaning into everything that changes, as one decision.

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

/// Work for a payment, as it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The claim whose fence guards it.
    pub claim: Claim,
    /// What it is about.
    pub subject: PaymentSubject,
    /// What is still to be done.
    pub outbox: Outbox,
}

/// What work is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentSubject {
    /// A charge, and what is done to it; nothing while it is made.
    Charge(Charge, Option<Operation>),
    Payout(Payout),
}

/// Everything that must be committed together before the provider may be called for a payment that is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The work, with its payment processing.
    pub work: Work,
    /// What happens in the ledger.
    pub ledger: Vec<SagaAction>,
    pub audit: AuditRecord,
}

impl PaymentSubject {
    /// What the work takes or gives: an operation's own amount, else what the provider is asked for.
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

    /// The provider's reference of the payment, once it is known.
    pub const fn provider_reference(&self) -> Option<&String> {
        match self {
            PaymentSubject::Charge(charge, _) => charge.provider_reference.as_ref(),
            PaymentSubject::Payout(payout) => payout.provider_reference.as_ref(),
        }
    }

    /// The provider's token of what is charged, or of the bank account that is paid.
    pub fn instrument(&self) -> Option<&Masked<String>> {
        match self {
            PaymentSubject::Charge(charge, _) => Some(&charge.order.payment_method),
            PaymentSubject::Payout(payout) => payout.order.destination.as_ref(),
        }
    }

    /// The payment's revision.
    pub const fn revision(&self) -> u64 {
        match self {
            PaymentSubject::Charge(charge, _) => charge.revision,
            PaymentSubject::Payout(payout) => payout.revision,
        }
    }

    /// The word for where the payment stands.
    pub const fn status(&self) -> &'static str {
        match self {
            PaymentSubject::Charge(charge, _) => charge.status.name(),
            PaymentSubject::Payout(payout) => payout.status.name(),
        }
    }

    /// The operation, if it is about one.
    pub const fn operation(&self) -> Option<&Operation> {
        match self {
            PaymentSubject::Charge(_, operation) => operation.as_ref(),
            PaymentSubject::Payout(_) => None,
        }
    }
}

impl Work {
    /// Orders this work's audit records among records of the same payment and millisecond. Records of
    /// the payment's creation come first, by the claim's revision. Records of operations follow, by
    /// the charge's revision and then the claim's.
    pub fn audit_order(&self) -> u64 {
        match self.subject.operation() {
            None => self.claim.revision,
            Some(_) => audit_order_after(self.subject.revision(), self.claim.revision),
        }
    }
}

/// The last of the places that a payment revision has in the audit order. Claim revisions beyond it
/// share it, and a record that must follow all others of the revision takes it directly.
pub const AUDIT_PLACE_LAST: u64 = 15;

/// The audit order of something that happens to a payment at that revision, after its creation.
pub fn audit_order_after(payment_revision: u64, claim_revision: u64) -> u64 {
    const AFTER_CREATION: u64 = 1 << 16;
    const PLACES_PER_REVISION: u64 = AUDIT_PLACE_LAST + 1;
    let place = claim_revision.min(AUDIT_PLACE_LAST);
    AFTER_CREATION.saturating_add(payment_revision.saturating_mul(PLACES_PER_REVISION)).saturating_add(place)
}
