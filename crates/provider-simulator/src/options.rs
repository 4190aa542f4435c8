//! Start options.

use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::{Clock, WallClock};

/// Settings for the whole life of one simulator.
#[derive(Clone)]
pub struct Options {
    /// Appends each effect to this file as a JSON line, before the effect is answered.
    pub log: Option<PathBuf>,
    /// The source of time; tests pass a [`crate::ManualClock`].
    pub clock: Arc<dyn Clock>,
    /// Effects (and intents) held in memory; at the bound, new work is refused with 429.
    pub effects_max: u32,
    /// Idempotency answers held in memory; above the bound, the oldest is forgotten.
    pub keys_max: usize,
}

impl Default for Options {
    /// No log, real time, five million effects (about 2 GB at the bound) and two million remembered
    /// answers.
    fn default() -> Self {
        Options { log: None, clock: Arc::new(WallClock::new()), effects_max: 5_000_000, keys_max: 2_000_000 }
    }
}
