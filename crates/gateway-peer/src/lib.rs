//! The connector to a peer: another Counterfoil with its own store. One payout becomes one transfer
//! there and one [`ProviderOutcome`] here.
//!
//! The connector asks the peer for a transfer from our account there to the payout's destination,
//! under the payout's derived key. A peer commits a key together with its effect, so repeated
//! requests under one key give the same transfer. A transfer of another amount, between other
//! accounts or for another payment is never taken for ours. A payment bound elsewhere is never
//! sent, and an answer that the connector does not understand is `Unknown`. Retries, circuit
//! breakers and decisions about a payment belong to the engine.
//!
//! [`ProviderOutcome`]: counterfoil_core::payments::provider::ProviderOutcome

mod answer;
mod gateway;
mod settings;

pub use gateway::PeerGateway;
pub use settings::{PeerSettings, PeerSettingsError};
