//! The provider port: the calls the engine makes to a payment provider, and the profile of each
//! provider's contract. Also the circuit breaker, the fence that keeps processes from calling at
//! once for one payment, and the webhook inbox.

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
