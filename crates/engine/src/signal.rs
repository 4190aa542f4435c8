//! Signals about the engine's work, from which metrics are made. Signals carry numbers, never
//! secrets.

use counterfoil_core::types::id::{AccountId, TenantId};
use std::time::Duration;

/// One event to count or measure.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// The idempotency layer has answered a request.
    Claim { tenant: TenantId, outcome: ClaimOutcome },
    /// A request waited this long for another with the same key.
    Waited(Duration),
    /// The provider was called.
    Gateway {
        /// The profile's name.
        provider: &'static str,
        /// The step's name, or `query`.
        step: &'static str,
        outcome: &'static str,
        took: Duration,
    },
    /// The state of a provider's circuit breaker: 0 closed, 1 probing, 2 open.
    Breaker {
        /// The profile's name.
        provider: &'static str,
        state: i64,
    },
    /// Duration of a commit, successful or not.
    Commit(Duration),
    /// Work on a payment ran without the gateway fence, because the fence failed.
    FenceBypass,
    /// A stored answer was looked up in the answer cache.
    Cache { hit: bool },
    /// A commit conflicted and was retried.
    Conflict,
    /// A request was refused because the store could not be written.
    FailClosed,
    /// The projection's delay behind the store.
    ProjectionLag(Duration),
    /// A guarded account is written so often that it should have more shards.
    HotAccount {
        account: AccountId,
        /// Writes in the last whole second.
        writes: u64,
    },
}

/// Result of a request at the idempotency layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// The request claimed the key.
    Won,
    /// The stored answer was replayed at once.
    Replayed,
    /// The answer was replayed after a wait.
    Waited,
    /// The wait timed out.
    InUse,
    /// The key belongs to another request.
    Mismatch,
    /// The key's window is over.
    Expired,
    /// Work was taken over from a holder whose lease was over.
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

/// Receives signals.
pub trait Watch: Send + Sync + 'static {
    /// Must not block.
    fn saw(&self, signal: Signal);
}

/// Ignores all signals.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWatch;

impl Watch for NoWatch {
    fn saw(&self, _: Signal) {}
}
