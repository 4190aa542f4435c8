//! Sagas: what is done step by step and undone in reverse, and the waits between attempts.

pub mod backoff;
pub mod definition;
pub mod progress;
