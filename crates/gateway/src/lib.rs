//! The provider port: what the engine asks of a payment provider, the profiles that describe each provider's own
//! contract, the circuit breaker that protects it, and the fence that keeps processes from calling it at once for one
//! payment.

#![deny(clippy::disallowed_methods)]

pub mod breaker;
pub mod fence;
pub mod pace;
pub mod port;
pub mod profile;
pub mod routes;

pub use fence::Fence;
pub use port::{Call, Gateway, Lookup};
pub use profile::Profile;
pub use routes::Routes;
