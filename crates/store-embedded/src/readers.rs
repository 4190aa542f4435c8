//! A fixed pool of read-only connections, used on the caller's thread: a point read takes
//! microseconds, which is less than handing it to another thread.

use crate::error::reason;
use counterfoil_store::ReadError;
use rusqlite::{Connection, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(crate) struct Readers {
    connections: Vec<Mutex<Connection>>,
    next: AtomicUsize,
}

impl Readers {
    pub(crate) fn new(connections: Vec<Connection>) -> Readers {
        Readers { connections: connections.into_iter().map(Mutex::new).collect(), next: AtomicUsize::new(0) }
    }

    /// Runs `query` on a free connection, or waits for one.
    pub(crate) fn with<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T, ReadError> {
        let db = self.take().ok_or_else(|| ReadError("the store is closed".to_owned()))?;
        query(&db).map_err(|error| ReadError(reason(&error)))
    }

    fn take(&self) -> Option<MutexGuard<'_, Connection>> {
        // Prefer the first free connection: a quiet server then uses few, warm caches.
        if let Some(free) = self.connections.iter().find_map(|connection| connection.try_lock().ok()) {
            return Some(free);
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let index = turn.checked_rem(self.connections.len())?;
        // A reader that panicked leaves at most an unfinished query; the connection is usable.
        Some(self.connections.get(index)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
