//! What multi-step work shares: when to try again.

pub mod backoff;
