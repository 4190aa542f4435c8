//! The engine's settings, already checked.

use counterfoil_core::idempotency::claim::LeasePolicy;
use counterfoil_core::idempotency::window;
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::breaker;

/// How the engine behaves.
#[derive(Clone, Copy, Debug)]
pub struct EnginePolicy {
    /// Length and ceiling of leases.
    pub lease: LeasePolicy,
    /// How often a lease is renewed.
    pub heartbeat: Span,
    /// How long a twin waits.
    pub wait: Span,
    /// How long answers and tombstones are kept.
    pub windows: window::WindowPolicy,
    /// Calls without effect before a charge fails.
    pub attempts_max: u32,
    /// Waits between attempts.
    pub backoff: Backoff,
    /// How often the recovery worker looks.
    pub poll: Span,
    /// Rows it takes at once.
    pub batch: usize,
    /// When the provider is left alone.
    pub breaker: breaker::BreakerPolicy,
}

/// Lease of a worker slot. Longer than a lease of a claim: losing it stops all new work of the process.
pub(crate) const SLOT_LEASE: Span = Span::from_ms(60_000);
/// How often a worker slot is renewed.
pub(crate) const SLOT_RENEWAL: Span = Span::from_ms(15_000);
/// How long a request waits for another that claims a slot for both.
pub(crate) const SLOT_PATIENCE: Span = Span::from_ms(5_000);
/// How soon a failed renewal is tried again.
pub(crate) const SLOT_RETRY: Span = Span::from_ms(1_000);
/// How long a looked-up API key is believed; revocation is seen within this time.
pub(crate) const PRINCIPAL_TTL: Span = Span::from_ms(500);
/// Extra wait of a twin, at most, so that twins do not all come back together.
pub(crate) const WAIT_JITTER_MS: u64 = 100;
/// How often the sweeper looks for claims that outlived their windows.
pub(crate) const SWEEP_INTERVAL: Span = Span::from_ms(5_000);
/// How often holds are looked through for passed deadlines.
pub(crate) const HOLDS_INTERVAL: Span = Span::from_ms(500);
/// How often the projection looks for new commits once it has seen all.
pub(crate) const PROJECTION_INTERVAL: Span = Span::from_ms(250);
/// Attempts of recovery that may run at once in one process, when the provider is well.
pub(crate) const RECOVERIES_MAX: u32 = 256;
