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
    /// A payout.
    Payout(Payout),
}

/// Everything that must be committed together before the provider may be called for a payment that is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The work, with its payment processing.
    pub work: Work,
    /// What happens in the ledger.
    pub ledger: Vec<SagaAction>,
    /// The audit record.
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
    /// Where a record of this work stands in the payment's history, among those of the same millisecond: the payment's
    /// making in the order of its claim, then its operations in the order of the charge.
    pub fn turn(&self) -> u64 {
        match self.subject.operation() {
            None => self.claim.revision,
            Some(_) => turn_after(self.subject.revision(), self.claim.revision),
        }
    }
}

/// The turn of what happens to a payment of that revision after it was made.
pub fn turn_after(payment: u64, claim: u64) -> u64 {
    const MAKING: u64 = 1 << 16;
    MAKING.saturating_add(payment.saturating_mul(16)).saturating_add(claim.min(15))
}
