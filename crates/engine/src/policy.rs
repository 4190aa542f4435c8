//! The engine's settings, already checked.

use counterfoil_core::idempotency::claim::LeasePolicy;
use counterfoil_core::idempotency::window;
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::breaker;

/// The engine's settings.
#[derive(Clone, Copy, Debug)]
pub struct EnginePolicy {
    pub lease: LeasePolicy,
    /// Interval of lease renewals.
    pub heartbeat: Span,
    /// Longest wait of a request for another request with the same key.
    pub wait: Span,
    pub windows: window::WindowPolicy,
    /// Calls without effect before a charge fails.
    pub attempts_max: u32,
    /// Backoff between attempts.
    pub backoff: Backoff,
    /// Poll interval of the recovery worker.
    pub poll: Span,
    /// Rows the recovery worker reads at once.
    pub batch: usize,
    pub breaker: breaker::BreakerPolicy,
}

/// Lease of a worker slot. Longer than a claim's lease, because losing it stops all new work of the
/// process.
pub(crate) const SLOT_LEASE: Span = Span::from_ms(60_000);
/// Interval of worker slot renewals.
pub(crate) const SLOT_RENEWAL: Span = Span::from_ms(15_000);
/// Longest wait for another task that claims a worker slot for all.
pub(crate) const SLOT_PATIENCE: Span = Span::from_ms(5_000);
/// Pause after a failed renewal.
pub(crate) const SLOT_RETRY: Span = Span::from_ms(1_000);
/// Lifetime of a cached API key: a revocation takes effect within this time.
pub(crate) const PRINCIPAL_TTL: Span = Span::from_ms(500);
/// Largest random addition to a wait, so that waiting requests do not all come back together.
pub(crate) const WAIT_JITTER_MS: u64 = 100;
/// Interval of the sweeper.
pub(crate) const SWEEP_INTERVAL: Span = Span::from_ms(5_000);
/// Interval of the check for lapsed holds.
pub(crate) const HOLDS_INTERVAL: Span = Span::from_ms(500);
/// Interval of the projection once it has caught up.
pub(crate) const PROJECTION_INTERVAL: Span = Span::from_ms(250);
/// Concurrent recoveries of a process per lane while its provider is healthy.
pub(crate) const RECOVERIES_MAX: u32 = 256;
