//! The rules of idempotency: keys, fingerprints, the claim's state machine, and stored answers.

pub mod claim;
pub mod derive;
pub mod fingerprint;
pub mod key;
pub mod reply;
pub mod request;
pub mod window;
