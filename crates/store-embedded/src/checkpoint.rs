//! Keeps the write-ahead log short without making commits wait.
//!
//! A thread copies the log into the database in small steps while commits go on. The log can only start over when
//! nothing of it is left to copy, which under constant load never happens by itself: once it is long and nearly
//! copied, the thread asks the writer to copy the small rest between two transactions.

use crate::background::stand_back;
use crate::options::LogBounds;
use crate::progress::Progress;
use crate::writer::Health;
use rusqlite::{Connection, ErrorCode};
use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Steps in a row that try to get the rest that small, before the writer copies what there is.
const STEPS_MAX: u32 = 3;
/// Frames at which an operator should know: 256 MiB. Only a foreign reader can bring the log there.
const ALARM: u32 = 65_536;

/// Syncs what was written to the database and to its log.
pub(crate) struct Syncs {
    pub(crate) database: Box<Sync>,
    pub(crate) log: Box<Sync>,
}

type Sync = dyn Fn() -> io::Result<()> + Send;

/// What the writer and the checkpointer tell each other.
#[derive(Debug)]
pub(crate) struct Wal {
    frames: AtomicU32,
    copied: AtomicU32,
    finish: AtomicBool,
    wake: SyncSender<()>,
    bounds: LogBounds,
    health: Arc<Health>,
    progress: Arc<Progress>,
    /// One step at a time: a writer whose log is too long waits for the one under way.
    stepping: Mutex<()>,
    /// Asked for although the log is short: the redo log needs room.
    urged: AtomicBool,
}

impl Wal {
    pub(crate) fn new(
        bounds: LogBounds,
        health: Arc<Health>,
        progress: Arc<Progress>,
    ) -> (Arc<Wal>, Receiver<()>) {
        let (wake, woken) = sync_channel(1);
        let wal = Wal {
            frames: AtomicU32::new(0),
            copied: AtomicU32::new(0),
            finish: AtomicBool::new(false),
            wake,
            bounds,
            health,
            progress,
            stepping: Mutex::new(()),
            urged: AtomicBool::new(false),
        };
        (Arc::new(wal), woken)
    }

    /// Told by SQLite after every commit how long the log is.
    pub(crate) fn grew_to(&self, frames: i32) {
        self.frames.store(u32::try_from(frames).unwrap_or(0), Ordering::Relaxed);
    }

    /// Asks for a step, however short the log is: it makes the database safe.
    pub(crate) fn urge(&self) {
        self.urged.store(true, Ordering::Release);
        self.wake();
    }

    /// The writer stands between two transactions.
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

    /// Wakes the checkpointer: for a step, or to see that it should end.
    pub(crate) fn wake(&self) {
        match self.wake.try_send(()) {
            // Full: it is awake already. Disconnected: it has ended.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }

    fn left(&self) -> u32 {
        let frames = self.frames.load(Ordering::Relaxed);
        let copied = self.copied.load(Ordering::Relaxed);
        // A log shorter than what was copied of it has started over.
        if frames < copied { frames } else { frames.saturating_sub(copied) }
    }

    /// Copies what is there now. Readers and the writer are not waited for.
    fn step(&self, db: &Connection) {
        let _alone = self.stepping.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(2));
        match copied.map(u32::try_from) {
            Ok(Ok(frames)) => self.copied.store(frames, Ordering::Relaxed),
            // Another program is at it.
            Ok(Err(_)) => {}
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) => self.fail(&error),
            // No space, most likely. The log keeps what could not be copied, and the next step tries again.
            Err(error) => tracing::warn!(%error, "a checkpoint of the store failed; it is tried again"),
        }
    }

    /// A write the disk does not confirm may be lost though a later sync succeeds: the log must not start over, and
    /// the next opening copies it whole.
    fn fail(&self, error: &dyn Display) {
        self.health.fail(format!("the disk did not confirm a checkpoint ({error}); restart to recover"));
    }
}

/// The checkpointer's thread: it ends when it is woken with `stop` set.
///
/// SQLite syncs the database only when nothing of the log is left, so each step is followed by a sync of its own: the
/// writer would otherwise have to wait for all of them at once. The log itself is synced because commits are not: what
/// was visible before is safe then, and the redo log may let go of it.
pub(crate) fn run(db: &Connection, syncs: &Syncs, wal: &Wal, woken: &Receiver<()>, stop: &AtomicBool) {
    stand_back();
    let mut alarmed = false;
    while woken.recv().is_ok() && !stop.load(Ordering::Acquire) {
        // A call that came during the last step was answered by it.
        let urged = wal.urged.swap(false, Ordering::AcqRel);
        if (wal.left() < wal.bounds.step && !urged) || wal.health.ailment().is_some() {
            continue;
        }
        for step in 1..=STEPS_MAX {
            let visible = wal.progress.visible();
            wal.step(db);
            match (syncs.log)().and_then(|()| (syncs.database)()) {
                Ok(()) => wal.progress.is_safe_up_to(visible),
                Err(error) => wal.fail(&error),
            }
            if wal.health.ailment().is_some() {
                break;
            }
            let frames = wal.frames.load(Ordering::Relaxed);
            if frames > ALARM && !alarmed {
                tracing::warn!(frames, "the store's log grows: another program reads the database for long");
            }
            alarmed = frames > ALARM;
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
