//! What the engine tells the outside about its work: numbers, never secrets. Metrics are made of these.

use counterfoil_core::types::id::{AccountId, TenantId};
use std::time::Duration;

/// Something worth counting.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// A request met the idempotency layer.
    Claim {
        /// Whose request.
        tenant: TenantId,
        /// What came of it.
        outcome: ClaimOutcome,
    },
    /// A request waited for another with the same key.
    Waited(Duration),
    /// The provider was called.
    Gateway {
        /// Its profile.
        provider: &'static str,
        /// `charge`, `authorize` or `query`.
        step: &'static str,
        /// What came of it.
        outcome: &'static str,
        /// How long it took.
        took: Duration,
    },
    /// The circuit breaker of a provider: 0 closed, 1 probing, 2 open.
    Breaker {
        /// Its profile.
        provider: &'static str,
        /// The state's number.
        state: i64,
    },
    /// A set was committed or refused after this long.
    Commit(Duration),
    /// A provider was called without the gateway fence, because the fence could not be asked.
    FenceBypass,
    /// A settled answer was looked for in this process's memory.
    Cache {
        /// Whether it was there.
        hit: bool,
    },
    /// A commit met a conflict and was tried again.
    Conflict,
    /// A request was refused because the store could not be written.
    FailClosed,
    /// How far the projection is behind the store.
    ProjectionLag(Duration),
    /// A guarded account is written so often that it should have more shards.
    HotAccount {
        /// Which.
        account: AccountId,
        /// Writes in the last whole second.
        writes: u64,
    },
}

/// What came of a request at the idempotency layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// It claimed the key.
    Won,
    /// It got the stored answer at once.
    Replayed,
    /// It waited and got the answer.
    Waited,
    /// It waited in vain.
    InUse,
    /// The key belongs to another request.
    Mismatch,
    /// The key's window is over.
    Expired,
    /// Work was taken over from a holder that lost its lease.
    Reclaimed,
}

impl ClaimOutcome {
    /// The metric's label.
    pub const fn name(self) -> &'static str {
        match self {
            ClaimOutcome::Won => "won",
            ClaimOutcome::Replayed => "replayed",
            ClaimOutcome::Waited => "waited",
            ClaimOutcome::InUse => "in_use",
            ClaimOutcome::Mismatch => "mismatch",
            ClaimOutcome::Expired => "expired",
            ClaimOutcome::Reclaimed => "reclaimed",
        }
    }
}

/// Listens.
pub trait Watch: Send + Sync + 'static {
    /// Takes note of a signal; must not block.
    fn saw(&self, signal: Signal);
}

/// Listens to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deaf;

impl Watch for Deaf {
    fn saw(&self, _: Signal) {}
}
