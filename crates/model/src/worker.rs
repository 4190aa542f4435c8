//! One worker: its memory, which a crash erases.

use crate::provider::Answer;
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::outbox::Outbox;
use counterfoil_core::types::time::Time;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Worker {
    Idle,
    /// Has the lease of a key's work.
    Holding(Held),
    /// Waits for the answer to a request.
    Waiting(Held),
    /// Has a result that is not committed yet.
    Knowing(Held, AttemptResult),
}

/// Work as this worker last saw it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) key: usize,
    pub(crate) claim: Claim,
    pub(crate) outbox: Outbox,
}

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AttemptResult {
    Answered(Answer),
    /// No answer, or the answer was lost.
    Silence,
    /// The query found an approved payment.
    FoundApproved(Time),
    /// The query found a declined payment.
    FoundDeclined(Time),
    /// The query, at this time, found nothing.
    FoundNothing(Time),
    /// The query found several payments.
    FoundSeveral(Time),
}
