//! Options for opening a store.

use crate::clock::{SystemTime, TimeSource};
use crate::log::{DiskFiles, LogStorage};
use rusqlite::{Error, ffi};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Observes every durable group: the number of its sets, and how long it took.
pub type Observe = Arc<dyn Fn(usize, Duration) + Send + Sync>;

/// Called at each [`FaultPoint`]; tests inject a fault or delay the thread.
pub type FaultHook = Arc<dyn Fn(FaultPoint) -> Option<Fault> + Send + Sync>;

#[derive(Clone)]
pub struct Options {
    /// Connections for reads; more than the machine has cores gain nothing.
    pub readers: usize,
    pub time: Arc<dyn TimeSource>,
    /// For metrics.
    pub observe: Option<Observe>,
    /// For tests.
    pub fault: Option<FaultHook>,
    /// A quota for the database, in pages of 4 KiB. A flush beyond it fails as on a full disk.
    pub pages_max: Option<u32>,
    /// Tests shorten SQLite's WAL, so that it restarts often.
    pub sqlite_wal: SqliteWalBounds,
    /// Tests shorten the segments of the write-ahead log.
    pub log: LogBounds,
    /// The files of the write-ahead log. Tests record them.
    pub log_storage: Arc<dyn LogStorage>,
}

/// Lengths of SQLite's WAL, in frames of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteWalBounds {
    /// A checkpoint step begins when this many frames are not copied.
    pub step: u32,
    /// The WAL should restart beyond this length.
    pub long: u32,
    /// The flusher copies the rest beyond this length, however large the rest is.
    pub too_long: u32,
    /// A longer file is truncated. Load alone stays well below: freeing and allocating the end of
    /// the file at every restart would cost the disk more than the space is worth.
    pub kept: u32,
    /// The flusher may be asked to copy this many frames itself.
    pub rest: u32,
}

impl Default for SqliteWalBounds {
    /// 8 MiB, 16 MiB, 32 MiB, 64 MiB and 1 MiB. An opening after a crash reads and rewrites the
    /// WAL.
    fn default() -> SqliteWalBounds {
        SqliteWalBounds { step: 2_048, long: 4_096, too_long: 8_192, kept: 16_384, rest: 256 }
    }
}

/// Lengths in the write-ahead log, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// A segment takes no further record beyond this length. An opening reads all heads in it.
    pub segment: u64,
    /// A segment grows by this length at a time.
    pub extent: usize,
}

impl Default for LogBounds {
    /// 8 MiB and 1 MiB.
    fn default() -> LogBounds {
        LogBounds { segment: 8 << 20, extent: 1 << 20 }
    }
}

/// A point at which tests inject faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// Before a group is judged.
    Judge,
    /// Before a group is appended to the write-ahead log.
    Append,
    /// Before the commit of a flush.
    Flush,
    /// Between two flush transactions, while the write lock is free.
    BetweenFlushes,
    /// Before the database is synced after a checkpoint step.
    Checkpoint,
    /// Before SQLite's WAL is synced after a checkpoint step.
    CheckpointWal,
    /// Before an opening syncs the WAL that it has rewritten.
    RewriteWal,
}

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    DiskFull,
    /// The disk does not confirm a write.
    Sync,
}

/// The injected fault of this point, as an SQLite error.
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
            sqlite_wal: SqliteWalBounds::default(),
            log: LogBounds::default(),
            log_storage: Arc::new(DiskFiles),
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
