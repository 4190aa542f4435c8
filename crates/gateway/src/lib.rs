//! The provider port: what the engine asks of a payment provider, the profiles that describe each provider's own
//! contract, and the circuit breaker that protects it.

#![deny(clippy::disallowed_methods)]

pub mod breaker;
pub mod port;
pub mod profile;

pub use port::{Call, Gateway, Lookup};
pub use profile::Profile;
