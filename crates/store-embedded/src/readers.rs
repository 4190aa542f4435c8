//! A fixed set of read-only connections, used on the caller's own thread: a point read takes microseconds, less
//! than handing it to another thread would.

use crate::error::reason;
use counterfoil_store::ReadError;
use rusqlite::{Connection, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The connections.
#[derive(Debug)]
pub(crate) struct Readers {
    connections: Vec<Mutex<Connection>>,
    next: AtomicUsize,
}

impl Readers {
    pub(crate) fn new(connections: Vec<Connection>) -> Readers {
        Readers { connections: connections.into_iter().map(Mutex::new).collect(), next: AtomicUsize::new(0) }
    }

    /// Runs `query` on a connection that is free, or waits for one.
    pub(crate) fn with<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T, ReadError> {
        let db = self.take().ok_or_else(|| ReadError("the store is closed".to_owned()))?;
        query(&db).map_err(|error| ReadError(reason(&error)))
    }

    fn take(&self) -> Option<MutexGuard<'_, Connection>> {
        // The first free one, so that a quiet server reads through few and warm caches.
        if let Some(free) = self.connections.iter().find_map(|connection| connection.try_lock().ok()) {
            return Some(free);
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let index = turn.checked_rem(self.connections.len())?;
        // A reader that panicked left only a finished or unfinished query behind: the connection is whole.
        Some(self.connections.get(index)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
