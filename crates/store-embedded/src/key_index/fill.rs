//! Fills a Bloom filter with the keys of the database, on a background thread.

use super::filter::BloomFilter;
use super::partitions::{KeyPrefix, Partition, read_all_keys};
use crate::error::OpenError;
use crate::flush::{Progress, lower_thread_priority};
use crate::log::Lineage;
use crate::open::connect;
use crate::tables::meta;
use counterfoil_core::idempotency::claim::ClaimId;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

/// Room for this many keys at the least (2 MiB) and at the most (128 MiB).
pub(super) const FILTER_ROOM_MIN: usize = 1 << 20;
pub(super) const FILTER_ROOM_MAX: usize = 1 << 26;
/// The interval at which the thread checks whether the database has caught up.
const POLL: Duration = Duration::from_millis(10);

/// The store's directory, and the opening that its database must belong to.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) dir: PathBuf,
    pub(crate) lineage: Lineage,
}

/// A Bloom filter and the thread that fills it.
#[derive(Debug)]
pub(super) struct KeyFilter {
    pub(super) filling: Arc<Filling>,
    /// The number of keys that the filter was made for.
    pub(super) room: usize,
    /// Keys that the writer has added.
    pub(super) added: usize,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl KeyFilter {
    /// Starts to fill a filter once everything up to `position` is flushed.
    pub(super) fn fill(
        home: &Home,
        progress: &Arc<Progress>,
        position: u64,
        room: usize,
        youngest: Partition,
    ) -> KeyFilter {
        let room = room.clamp(FILTER_ROOM_MIN, FILTER_ROOM_MAX);
        let filling = Arc::new(Filling::new(room, youngest));
        let thread = {
            let (filling, home, progress) = (Arc::clone(&filling), home.clone(), Arc::clone(progress));
            Builder::new().name("store-keys".to_owned()).spawn(move || {
                lower_thread_priority();
                // The filter stays incomplete after an error, and every key is looked up.
                if let Err(error) = filling.run(&home, &progress, position) {
                    tracing::warn!(%error, "the keys of the store could not be read");
                }
            })
        };
        KeyFilter { filling, room, added: 0, thread: thread.ok() }
    }

    /// Whether the filter has all keys of the database.
    pub(super) fn is_whole(&self) -> bool {
        self.filling.is_whole.load(Ordering::Acquire)
    }

    pub(super) fn may_have(&self, id: ClaimId) -> bool {
        self.filling.filter.may_have(id.into())
    }

    pub(super) fn add(&mut self, id: ClaimId) {
        self.filling.filter.add(id.into());
        self.added = self.added.saturating_add(1);
    }

    /// The number of keys that the filter has.
    pub(super) fn keys(&self) -> usize {
        self.added.saturating_add(self.filling.found.load(Ordering::Relaxed))
    }
}

impl Drop for KeyFilter {
    fn drop(&mut self) {
        self.filling.is_cancelled.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has left the filter incomplete.
            let _ = thread.join();
        }
    }
}

/// The filter as the writer and the filling thread share it.
#[derive(Debug)]
pub(super) struct Filling {
    filter: BloomFilter,
    /// Keys found in the database.
    found: AtomicUsize,
    youngest: Partition,
    pub(super) found_in_youngest: AtomicUsize,
    is_whole: AtomicBool,
    is_cancelled: AtomicBool,
}

impl Filling {
    fn new(room: usize, youngest: Partition) -> Filling {
        Filling {
            filter: BloomFilter::with_room(room),
            found: AtomicUsize::new(0),
            youngest,
            found_in_youngest: AtomicUsize::new(0),
            is_whole: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
        }
    }

    fn run(&self, home: &Home, progress: &Progress, position: u64) -> Result<(), OpenError> {
        while progress.flushed() < position {
            if self.is_cancelled() {
                return Ok(());
            }
            sleep(POLL);
        }
        let db = connect::reader(&home.dir)?;
        if meta::lineage(&db)? != Some(home.lineage) {
            let why = "another database has taken the place of the store's; stop the server before you move its files";
            return Err(OpenError::Io(why.to_owned()));
        }
        let add = |partition, keys: &[KeyPrefix]| {
            for key in keys {
                self.filter.add(*key);
            }
            self.found.fetch_add(keys.len(), Ordering::Relaxed);
            if partition == self.youngest {
                self.found_in_youngest.fetch_add(keys.len(), Ordering::Relaxed);
            }
        };
        read_all_keys(&db, add, || !self.is_cancelled())?;
        if !self.is_cancelled() {
            self.is_whole.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}
