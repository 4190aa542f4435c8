//! How an answer becomes bytes. The public form belongs to `wire`; the engine only stores what it is given, in the
//! same change set as the effect.

use counterfoil_core::idempotency::reply::Reply;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::types::ulid::Ulid;

/// Renders answers.
pub trait Present: Send + Sync + 'static {
    /// The answer to a charge that succeeded or was authorized.
    fn charge(&self, charge: &Charge) -> Reply;

    /// The answer to a charge that failed; `request` is the request that made the claim.
    fn failure(&self, charge: &Charge, request: Ulid) -> Reply;
}
