//! What a caller may choose when opening a store.

use counterfoil_core::types::time::Span;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const DAY: Span = Span::from_ms(86_400_000);

/// Told of every durable write: how many sets it carried and how long it took.
pub type Observe = Arc<dyn Fn(usize, Duration) + Send + Sync>;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Connections that commit. Two are enough: one builds its group while the other waits for the disk.
    pub committers: usize,
    /// Connections for reads, opened as they are needed.
    pub readers: usize,
    /// How long most answers are replayed. Claims of other windows are kept as well, only less cheaply.
    pub replay_window: Span,
    /// For metrics.
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
