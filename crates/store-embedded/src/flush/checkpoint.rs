//! Keeps SQLite's WAL short without making commits wait.
//!
//! A thread copies the WAL into the database in small steps while flushes go on. SQLite restarts
//! the WAL only when all of it is copied, which never happens by itself under constant load. Once
//! the WAL is long and nearly copied, the thread asks the flusher to copy the small rest between
//! two transactions.

use super::lower_thread_priority;
use super::progress::Progress;
use crate::options::SqliteWalBounds;
use crate::writer::Health;
use rusqlite::{Connection, ErrorCode};
use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Steps that try to make the rest small before the flusher copies it in any case.
const STEPS_MAX: u32 = 3;
/// Frames at which a warning is logged: 256 MiB. Only a foreign reader can hold the WAL so long.
const ALARM: u32 = 65_536;

/// Sync the database file and the WAL file.
pub(crate) struct Syncs {
    pub(crate) database: Box<Sync>,
    pub(crate) wal: Box<Sync>,
}

type Sync = dyn Fn() -> io::Result<()> + Send;

/// The state of SQLite's WAL, shared by the flusher and the checkpointer.
#[derive(Debug)]
pub(crate) struct SqliteWal {
    frames: AtomicU32,
    copied: AtomicU32,
    /// The flusher shall copy the rest between two transactions.
    finish: AtomicBool,
    wake: SyncSender<()>,
    bounds: SqliteWalBounds,
    health: Arc<Health>,
    progress: Arc<Progress>,
    /// One step at a time: a flusher whose WAL is too long waits for the step under way.
    stepping: Mutex<()>,
    /// A checkpoint is requested although the WAL is short: a log segment waits to be reused.
    is_requested: AtomicBool,
}

impl SqliteWal {
    pub(crate) fn new(
        bounds: SqliteWalBounds,
        health: Arc<Health>,
        progress: Arc<Progress>,
    ) -> (Arc<SqliteWal>, Receiver<()>) {
        let (wake, woken) = sync_channel(1);
        let wal = SqliteWal {
            frames: AtomicU32::new(0),
            copied: AtomicU32::new(0),
            finish: AtomicBool::new(false),
            wake,
            bounds,
            health,
            progress,
            stepping: Mutex::new(()),
            is_requested: AtomicBool::new(false),
        };
        (Arc::new(wal), woken)
    }

    /// SQLite's hook: the number of frames after a commit.
    pub(crate) fn set_frames(&self, frames: i32) {
        self.frames.store(u32::try_from(frames).unwrap_or(0), Ordering::Relaxed);
    }

    /// Requests a checkpoint step, however short the WAL is.
    pub(crate) fn request_checkpoint(&self) {
        self.is_requested.store(true, Ordering::Release);
        self.wake();
    }

    /// Called by the flusher between two transactions.
    pub(crate) fn between_transactions(&self, db: &Connection) {
        if self.health.ailment().is_some() {
            return;
        }
        let is_too_long = self.frames.load(Ordering::Relaxed) > self.bounds.too_long;
        if self.finish.swap(false, Ordering::AcqRel) || is_too_long {
            self.step(db);
        } else if self.left() >= self.bounds.step {
            self.wake();
        }
    }

    /// Wakes the checkpointer for a step, or to notice that it should end.
    pub(crate) fn wake(&self) {
        match self.wake.try_send(()) {
            // Full: it is awake already. Disconnected: it has ended.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }

    /// Frames that are not copied yet.
    fn left(&self) -> u32 {
        let frames = self.frames.load(Ordering::Relaxed);
        let copied = self.copied.load(Ordering::Relaxed);
        // A WAL shorter than its copied part has restarted.
        if frames < copied { frames } else { frames.saturating_sub(copied) }
    }

    /// Copies the frames that are there now, without waiting for readers or the flusher.
    fn step(&self, db: &Connection) {
        let _alone = self.stepping.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(2));
        match copied.map(u32::try_from) {
            Ok(Ok(frames)) => self.copied.store(frames, Ordering::Relaxed),
            // Another program runs a checkpoint.
            Ok(Err(_)) => {}
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) => self.fail(&error),
            // Most likely the disk is full. The WAL keeps its frames, and the next step retries.
            Err(error) => tracing::warn!(%error, "a checkpoint of the store failed; it is tried again"),
        }
    }

    /// An unconfirmed write may be lost although a later sync succeeds. The WAL must not restart;
    /// the next opening copies all of it.
    fn fail(&self, error: &dyn Display) {
        self.health.fail(format!("the disk did not confirm a checkpoint ({error}); restart to recover"));
    }
}

/// The checkpointer's thread. It ends when it is woken with `stop` set.
///
/// SQLite syncs the database only when all of the WAL is copied, so the thread syncs it after each
/// step; the flusher would otherwise wait for all steps at once. The thread also syncs the WAL,
/// because flushes do not. Rows that were flushed before are durable then, and their log entries
/// may be overwritten.
pub(crate) fn run(db: &Connection, syncs: &Syncs, wal: &SqliteWal, woken: &Receiver<()>, stop: &AtomicBool) {
    lower_thread_priority();
    let mut is_alarmed = false;
    while woken.recv().is_ok() && !stop.load(Ordering::Acquire) {
        // The last step has answered a wake-up that came during it.
        let is_requested = wal.is_requested.swap(false, Ordering::AcqRel);
        if (wal.left() < wal.bounds.step && !is_requested) || wal.health.ailment().is_some() {
            continue;
        }
        for step in 1..=STEPS_MAX {
            let flushed = wal.progress.flushed();
            wal.step(db);
            match (syncs.wal)().and_then(|()| (syncs.database)()) {
                Ok(()) => wal.progress.set_checkpointed(flushed),
                Err(error) => wal.fail(&error),
            }
            if wal.health.ailment().is_some() {
                break;
            }
            let frames = wal.frames.load(Ordering::Relaxed);
            if frames > ALARM && !is_alarmed {
                tracing::warn!(frames, "SQLite's WAL grows: another program reads the database for long");
            }
            is_alarmed = frames > ALARM;
            let left = wal.left();
            if frames < wal.bounds.long || left == 0 {
                break;
            }
            if left <= wal.bounds.rest || step == STEPS_MAX || frames > wal.bounds.too_long {
                wal.finish.store(true, Ordering::Release);
                break;
            }
        }
    }
}
