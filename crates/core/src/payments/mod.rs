//! Payments: where claim, outbox, saga, audit and ledger are composed into one decision.
//!
//! A flow's deeds are in [`flow`]. One call to the provider is an [`attempt`]: what to do next, what its outcome means.
//! [`follow`](follow::follow) turns that meaning into everything that changes, as one decision.

pub mod attempt;
pub mod books;
pub mod charge;
pub mod flow;
pub mod follow;
pub mod operation;
pub mod provider;

use crate::idempotency::claim::Claim;
use crate::outbox::Outbox;
use charge::Charge;
use operation::Operation;

/// Work for a payment, as it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The claim whose fence guards it.
    pub claim: Claim,
    /// The charge it is about.
    pub charge: Charge,
    /// What is done to the charge; nothing while it is made.
    pub operation: Option<Operation>,
    /// What is still to be done.
    pub outbox: Outbox,
}

impl Work {
    /// Where a record of this work stands in the charge's history, among those of the same millisecond: the charge's
    /// making in the order of its claim, then its operations in the order of the charge.
    pub fn turn(&self) -> u64 {
        match &self.operation {
            None => self.claim.revision,
            Some(_) => turn_after(self.charge.revision, self.claim.revision),
        }
    }
}

/// The turn of what happens to a charge of that revision after it was made.
pub const fn turn_after(charge: u64, claim: u64) -> u64 {
    const MAKING: u64 = 1 << 16;
    let claim = if claim < 15 { claim } else { 15 };
    MAKING.saturating_add(charge.saturating_mul(16)).saturating_add(claim)
}
