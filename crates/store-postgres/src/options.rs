//! The options for opening a store.

use counterfoil_core::types::time::Span;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const DAY: Span = Span::from_ms(86_400_000);

/// Called for every durable write with its number of sets and its duration.
pub type Observe = Arc<dyn Fn(usize, Duration) + Send + Sync>;

#[derive(Clone)]
pub struct Options {
    /// Connections that commit. Two suffice: while a connection waits for the disk, the second
    /// collects a group.
    pub committers: usize,
    /// The bound of read connections, which are opened on demand.
    pub readers: usize,
    /// The usual replay window. Claims with other windows work too, but settling them costs more.
    pub replay_window: Span,
    /// A hook for metrics.
    pub observe: Option<Observe>,
}

impl Default for Options {
    fn default() -> Options {
        Options { committers: 2, readers: 8, replay_window: DAY, observe: None }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("committers", &self.committers)
            .field("readers", &self.readers)
            .field("replay_window", &self.replay_window)
            .finish_non_exhaustive()
    }
}
