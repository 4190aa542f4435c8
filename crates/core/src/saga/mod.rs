//! Sagas: definitions of several steps, progress through them, and retry delays.

pub mod backoff;
pub mod definition;
pub mod progress;
