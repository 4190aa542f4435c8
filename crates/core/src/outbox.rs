//! The outbox row: what is still to be done for a payment, pinned to its provider, and what is known of the
//! attempts so far. It is written with the claim and removed with the answer, so work cannot be forgotten.

use crate::idempotency::claim::ClaimId;
use crate::types::id::{ChargeId, TenantId};
use crate::types::time::Time;

/// Work to be done for one charge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outbox {
    /// The charge it is for.
    pub charge: ChargeId,
    /// The claim whose fence guards it.
    pub claim: ClaimId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The provider and endpoint this payment is bound to for life.
    pub provider: Pinned,
    /// When somebody should look at it: the end of the lease, or the next attempt.
    pub due_at: Time,
    /// When the work was first enqueued.
    pub created_at: Time,
    /// What is known of the attempts so far.
    pub history: History,
    /// Set when only a human can go on.
    pub parked: Option<Park>,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// The provider a payment is bound to: some do not deduplicate across their endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pinned {
    /// The profile's name.
    pub profile: String,
    /// Scheme, host and port; never the credential.
    pub endpoint: String,
}

/// What is known of the calls made so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct History {
    /// Which derived key is in use; it changes only after proof that the one before it had no effect.
    pub generation: u16,
    /// Calls that were made and certainly had no effect.
    pub idle_calls: u32,
    /// Some call may have had an effect.
    pub unknown: bool,
    /// Calls under the current key that the provider answered with a server error, or with nothing we understand.
    pub server_errors: u32,
    /// Before this instant nothing was sent under the current key.
    pub first_sent_at: Time,
    /// After this instant nothing was sent.
    pub last_sent_at: Time,
}

/// Why a payment needs a human.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Park {
    /// The provider's answer names another amount, currency or payment than ours.
    AnswerDiffers,
    /// The provider neither deduplicates any longer nor answers queries.
    NoEvidence,
    /// The provider executed more than once, or its answers contradict each other.
    Contradiction,
}

impl Park {
    /// The word clients and operators see.
    pub const fn name(self) -> &'static str {
        match self {
            Park::AnswerDiffers => "answer_differs",
            Park::NoEvidence => "no_evidence",
            Park::Contradiction => "contradiction",
        }
    }

    /// The park of that name.
    pub fn parse(name: &str) -> Option<Park> {
        [Park::AnswerDiffers, Park::NoEvidence, Park::Contradiction]
            .into_iter()
            .find(|park| park.name() == name)
    }
}
