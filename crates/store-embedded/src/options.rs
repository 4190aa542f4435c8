//! What a caller may choose when opening a store.

use crate::clock::{SystemTime, TimeSource};
use crate::redo::{Files, Media};
use rusqlite::{Error, ffi};
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
    /// How long the write-ahead log gets. Tests shorten it, so that it starts over often.
    pub log: LogBounds,
    /// How long the redo log gets. Tests shorten it.
    pub redo: RedoBounds,
    /// The disk the redo log lies on. Tests record it.
    pub media: Arc<dyn Media>,
}

/// Lengths of the write-ahead log, in frames of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// Frames that are waited for before a step of a checkpoint.
    pub step: u32,
    /// Frames after which the log should start over.
    pub long: u32,
    /// Frames at which a large rest is better than a longer log.
    pub too_long: u32,
    /// A file that ever got longer than this is cut back. Well above what load alone brings it to: to free its end whenever it
    /// starts over, and to allocate it again, costs the disk more than the space.
    pub kept: u32,
    /// Frames the writer may be asked to copy itself.
    pub rest: u32,
}

impl Default for LogBounds {
    /// 8 MiB, 16 MiB, 32 MiB, 64 MiB and 1 MiB. An opening after a crash reads all of it and writes it again.
    fn default() -> LogBounds {
        LogBounds { step: 2_048, long: 4_096, too_long: 8_192, kept: 16_384, rest: 256 }
    }
}

/// Lengths within the redo log, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoBounds {
    /// Bytes after which a segment takes no further record; an opening looks through all of them.
    pub segment: u64,
    /// A segment grows by so many bytes at a time.
    pub extent: usize,
}

impl Default for RedoBounds {
    /// 8 MiB, 1 MiB.
    fn default() -> RedoBounds {
        RedoBounds { segment: 8 << 20, extent: 1 << 20 }
    }
}

/// Where the writer or the checkpointer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// About to judge a group and to note its rows.
    Write,
    /// About to append them to the redo log.
    Commit,
    /// About to let the database show what it has executed.
    Show,
    /// Between two flush transactions, while the write lock is free.
    BetweenFlushes,
    /// About to sync the database after a step of a checkpoint.
    Checkpoint,
    /// About to sync the write-ahead log after a step of a checkpoint.
    CheckpointLog,
    /// About to sync the log that an opening has written again.
    Log,
}

/// What goes wrong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No space is left.
    DiskFull,
    /// The disk does not confirm a write.
    Sync,
}

/// What a test wants to happen at this point, as SQLite would tell it.
pub(crate) fn fault_at(hook: Option<&FaultHook>, point: FaultPoint) -> Result<(), Error> {
    let code = match hook.and_then(|hook| hook(point)) {
        None => return Ok(()),
        Some(Fault::DiskFull) => ffi::SQLITE_FULL,
        Some(Fault::Sync) => ffi::SQLITE_IOERR_FSYNC,
    };
    Err(Error::SqliteFailure(ffi::Error::new(code), None))
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
            log: LogBounds::default(),
            redo: RedoBounds::default(),
            media: Arc::new(Files),
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
