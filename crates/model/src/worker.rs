//! One worker: what it holds in its memory, all of it lost in a crash.

use crate::provider::Answer;
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::outbox::Outbox;
use counterfoil_core::types::time::Time;

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Worker {
    /// Nothing to do.
    Idle,
    /// It holds the lease of a key's work.
    Holding(Held),
    /// Its request is on the way.
    Waiting(Held),
    /// It knows something and has not committed it yet.
    Knowing(Held, AttemptResult),
}

/// Work as this worker last saw it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) key: usize,
    pub(crate) claim: Claim,
    pub(crate) outbox: Outbox,
}

/// What it learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AttemptResult {
    /// The provider answered.
    Answered(Answer),
    /// It did not, or the answer was lost.
    Silence,
    /// It was asked and knows an approved payment.
    FoundApproved(Time),
    /// It was asked and knows a refused one.
    FoundDeclined(Time),
    /// It was asked, at this time, and knows nothing.
    FoundNothing(Time),
    /// It was asked and knows several.
    FoundSeveral(Time),
}
