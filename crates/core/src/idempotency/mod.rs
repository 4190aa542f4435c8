//! The idempotency layer's rules: what a key is, which requests are the same, who may execute, what is replayed.

pub mod claim;
pub mod derive;
pub mod fingerprint;
pub mod key;
pub mod reply;
pub mod request;
pub mod window;
