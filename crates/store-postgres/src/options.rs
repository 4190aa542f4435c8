//! What a caller may choose when opening a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Told of every durable write: how many sets it carried and how long it took.
pub type Observe = Arc<dyn Fn(usize, Duration) + Send + Sync>;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Connections that commit. Two are enough: one builds its group while the other waits for the disk.
    pub committers: usize,
    /// Connections for reads, opened as they are needed.
    pub readers: usize,
    /// For metrics.
    pub observe: Option<Observe>,
}

impl Default for Options {
    fn default() -> Options {
        Options { committers: 2, readers: 8, observe: None }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("committers", &self.committers)
            .field("readers", &self.readers)
            .finish_non_exhaustive()
    }
}
