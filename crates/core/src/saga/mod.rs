//! Work of several steps: what a saga is, how far it has come, and when to try again.

pub mod backoff;
pub mod definition;
pub mod progress;
