//! The flusher: a thread that writes durable groups to SQLite, many groups per transaction.
//!
//! [`Flusher`] is the inbox between the writer and that thread, and owns the memtable. The
//! [`Applier`] executes one flush. [`Progress`] tells readers how far flushes are, and
//! [`SqliteWal`] keeps SQLite's own write-ahead log short by checkpoints.
//!
//! Promises: groups are flushed in order, each exactly once. A group that cannot be flushed now is
//! kept and retried, and the writer is told. Rows of unflushed groups are found in the memtable.

mod applier;
mod checkpoint;
mod priority;
mod progress;

pub(crate) use applier::{Applier, data_version};
pub(crate) use checkpoint::{SqliteWal, Syncs, run as run_checkpointer};
pub(crate) use priority::lower_thread_priority;
pub(crate) use progress::Progress;

use crate::clock::monotonic;
use crate::error::OpenError;
use crate::memtable::{DurableGroup, GroupTotals, Memtable, RowVersion};
use counterfoil_store::RowKey;
use rusqlite::Connection;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Bytes of log entries that may wait for the flusher; beyond that the writer waits too.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// The pause after a failed flush.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The answer to commits after the thread has ended.
pub(crate) const ENDED: &str = "the store's flusher has ended; restart to recover";

/// The inbox of the flusher's thread.
#[derive(Debug)]
pub(crate) struct Flusher {
    inbox: Mutex<Inbox>,
    /// Signals new groups and requests to the flusher.
    arrived: Condvar,
    /// Signals free room to the writer.
    taken: Condvar,
    applier: Mutex<Applier>,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Inbox {
    /// Groups that the flusher has not taken yet.
    groups: Vec<DurableGroup>,
    totals: GroupTotals,
    /// Rows of these groups, and of groups that the flusher has taken and not flushed.
    memtable: Memtable,
    /// No more groups will come.
    is_closed: bool,
    /// The thread has ended.
    has_ended: bool,
}

/// Tells everyone who waits that the thread has ended, also by a panic.
struct EndGuard(Arc<Flusher>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        lock(&self.0.inbox).has_ended = true;
        self.0.taken.notify_all();
        self.0.progress.end();
    }
}

impl Flusher {
    pub(crate) fn new(applier: Applier, progress: Arc<Progress>) -> Flusher {
        Flusher {
            inbox: Mutex::default(),
            arrived: Condvar::new(),
            taken: Condvar::new(),
            applier: Mutex::new(applier),
            progress,
        }
    }

    /// Starts the thread. It ends after [`Flusher::close`].
    pub(crate) fn start(self: &Arc<Flusher>) -> Result<JoinHandle<()>, OpenError> {
        let flusher = Arc::clone(self);
        Ok(Builder::new().name("store-flusher".to_owned()).spawn(move || {
            lower_thread_priority();
            let guard = EndGuard(flusher);
            guard.0.run();
        })?)
    }

    /// Publishes a durable group to readers and to the flusher. Waits while the inbox is full.
    /// Returns false if the flusher has ended.
    pub(crate) fn accept(&self, group: DurableGroup) -> bool {
        let inbox = lock(&self.inbox);
        let is_full = |inbox: &mut Inbox| inbox.totals.bytes > WAITING_BYTES_MAX && !inbox.has_ended;
        let mut inbox = self.taken.wait_while(inbox, is_full).unwrap_or_else(PoisonError::into_inner);
        inbox.totals.add(&group);
        // Publish rows, position and group under one lock: a scan that waits for this position
        // must find the group in the inbox.
        inbox.memtable.insert(&group.writes, group.last);
        self.progress.set_durable(group.last);
        inbox.groups.push(group);
        // Don't wake the flusher for every group; its timeout picks up small batches.
        if inbox.groups.len() == 1 || inbox.totals.is_enough() {
            self.arrived.notify_one();
        }
        !inbox.has_ended
    }

    /// The newest unflushed version of each key, as one snapshot. `meanwhile` runs under the same
    /// lock, so a read transaction begun there sees the same moment.
    pub(crate) fn find<T>(
        &self,
        keys: &[RowKey],
        meanwhile: impl FnOnce() -> T,
    ) -> (Vec<Option<RowVersion>>, T) {
        let inbox = lock(&self.inbox);
        (keys.iter().map(|key| inbox.memtable.find(key)).collect(), meanwhile())
    }

    /// Wakes the flusher's thread after a flush was requested.
    pub(crate) fn request_flush(&self) {
        // The lock keeps the wake-up from falling between the thread's check and its wait.
        let _inbox = lock(&self.inbox);
        self.arrived.notify_one();
    }

    /// Ends the thread after a last flush.
    pub(crate) fn close(&self) {
        lock(&self.inbox).is_closed = true;
        self.arrived.notify_one();
    }

    /// Flushes everything that was accepted, on the caller's thread.
    pub(crate) fn flush_all(&self) -> Result<(), String> {
        let mut applier = lock(&self.applier);
        if lock(&self.inbox).has_ended {
            return Err(ENDED.to_owned());
        }
        self.flush(&mut applier);
        applier.trouble().map_or(Ok(()), Err)
    }

    /// The connection, once both threads have ended.
    pub(crate) fn into_connection(self) -> Connection {
        self.applier.into_inner().unwrap_or_else(PoisonError::into_inner).into_connection()
    }

    fn run(&self) {
        let mut timeout = None;
        loop {
            let is_closed = self.wait(timeout);
            let mut applier = lock(&self.applier);
            // Clear the request before taking the groups: a later request may mean later groups.
            let is_requested = self.progress.take_flush_request();
            let groups = self.take_groups(&mut lock(&self.inbox));
            let now = monotonic();
            applier.add(groups, now);
            if is_requested || is_closed || applier.is_due(now) {
                self.flush(&mut applier);
            }
            if is_closed {
                applier.release_write_lock();
                return;
            }
            timeout =
                if applier.trouble().is_some() { Some(RETRY_AFTER) } else { applier.remaining(monotonic()) };
        }
    }

    /// Flushes all groups of the inbox and of the applier. The caller holds the applier, so no
    /// other thread takes groups meanwhile.
    fn flush(&self, applier: &mut Applier) {
        let mut inbox = lock(&self.inbox);
        let groups = self.take_groups(&mut inbox);
        inbox.memtable.start_generation();
        drop(inbox);
        applier.add(groups, monotonic());
        let flushed = applier.flush();
        // Maps and batches are emptied outside the inbox lock.
        let dropped = lock(&self.inbox).memtable.drop_flushed(self.progress.flushed());
        for mut rows in dropped {
            rows.clear();
            lock(&self.inbox).memtable.recycle(rows);
        }
        if let Some(flushed) = flushed {
            applier.recycle(flushed);
        }
    }

    /// Waits for work and returns whether the flusher is closed. `timeout` is the time until the
    /// taken groups are due; none if there are none.
    fn wait(&self, timeout: Option<Duration>) -> bool {
        let inbox = lock(&self.inbox);
        let is_idle = |inbox: &mut Inbox| {
            let has_work = match timeout {
                None => !inbox.groups.is_empty(),
                Some(_) => inbox.totals.is_enough(),
            };
            !has_work && !inbox.is_closed && !self.progress.is_flush_requested()
        };
        let inbox = match timeout {
            None => self.arrived.wait_while(inbox, is_idle).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                let woken = self.arrived.wait_timeout_while(inbox, timeout, is_idle);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        inbox.is_closed
    }

    fn take_groups(&self, inbox: &mut Inbox) -> Vec<DurableGroup> {
        inbox.totals = GroupTotals::default();
        self.taken.notify_one();
        std::mem::take(&mut inbox.groups)
    }
}

/// Locks despite poison: a thread that panicked leaves durable groups, or an open transaction that
/// nobody commits.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
