//! The connector to a peer: another Counterfoil, with a store of its own. One payout becomes one transfer there, and one
//! [`Outcome`] here.
//!
//! It asks the peer for a transfer from our account there to the one the payout names, under the payout's derived key. A
//! peer commits a key together with what it did, so the same key gives the same transfer however often it is asked for. It
//! promises that a transfer of other money, between other accounts or for another payment is never taken for ours, that a
//! payment bound to anybody else is never sent, and that whatever it does not understand is `Unknown`. It leaves out
//! retries, breakers and every decision about a payment.
//!
//! [`Outcome`]: counterfoil_core::payments::provider::Outcome

mod answer;
mod gateway;
mod settings;

pub use gateway::PeerGateway;
pub use settings::{Settings, SettingsError};
