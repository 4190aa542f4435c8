//! The provider port: what the engine asks of a payment provider, the profiles that describe each provider's own
//! contract, the circuit breaker that protects it, the fence that keeps processes from calling it at once for one
//! payment, and the inbox for what it sends on its own.

#![deny(clippy::disallowed_methods)]

pub mod breaker;
pub mod fence;
pub mod inbox;
pub mod pace;
pub mod port;
pub mod profile;
pub mod routes;

pub use fence::Fence;
pub use inbox::Inbox;
pub use port::{Gateway, ProviderCall, ProviderLookup};
pub use profile::ProviderProfile;
pub use routes::Routes;
