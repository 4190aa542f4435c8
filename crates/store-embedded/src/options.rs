//! What a caller may choose when opening a store.

use crate::clock::{SystemTime, TimeSource};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Told of every durable write: how many sets it carried and how long it took.
pub type Observe = Arc<dyn Fn(usize, Duration) + Send + Sync>;

/// Asked before each of these steps; tests answer with a fault, or hold the writer up.
pub type FaultHook = Arc<dyn Fn(FaultPoint) -> Option<Fault> + Send + Sync>;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Connections for reads: more than the machine's cores gain nothing.
    pub readers: usize,
    /// Where time comes from.
    pub time: Arc<dyn TimeSource>,
    /// For metrics.
    pub observe: Option<Observe>,
    /// For tests.
    pub fault: Option<FaultHook>,
    /// Pages of 4 KiB the database may have: a quota. What does not fit is answered as a full disk.
    pub pages_max: Option<u32>,
}

/// Where the writer or the checkpointer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// About to write the rows of a group.
    Write,
    /// About to commit them.
    Commit,
    /// About to sync the database after a step of a checkpoint.
    Checkpoint,
}

/// What goes wrong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No space is left.
    DiskFull,
    /// The disk does not confirm a write.
    Sync,
}

impl Default for Options {
    fn default() -> Options {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Options {
            readers: cores.clamp(2, 16),
            time: Arc::new(SystemTime),
            observe: None,
            fault: None,
            pages_max: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("readers", &self.readers)
            .field("pages_max", &self.pages_max)
            .finish_non_exhaustive()
    }
}
