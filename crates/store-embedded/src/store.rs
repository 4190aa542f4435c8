//! The store port, implemented with the readers, the writer's queue, the memtable and the clock.

use crate::clock::Clock;
use crate::flush::{Flusher, Progress, SqliteWal};
use crate::memtable::RowVersion;
use crate::open::{Lock, connect};
use crate::readers::Readers;
use crate::tables;
use crate::writer::{Health, Queue};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, Position, ReadError, Row,
    RowKey, Scan, Store, Tally, Upto,
};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A store in a directory of this machine.
#[derive(Debug)]
pub struct EmbeddedStore {
    pub(crate) secret: Masked<[u8; 32]>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) readers: Readers,
    /// None if the store was opened for reading only.
    pub(crate) running: Option<Running>,
}

/// The parts of a store that is open for writing. The file and the lock are released last.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) queue: Queue,
    pub(crate) flusher: Option<Arc<Flusher>>,
    pub(crate) flusher_thread: Option<JoinHandle<()>>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) health: Arc<Health>,
    pub(crate) wal: Arc<SqliteWal>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) checkpointer: Option<JoinHandle<()>>,
    pub(crate) _file: Arc<File>,
    pub(crate) _lock: Lock,
}

impl Running {
    fn request_flush(&self) {
        if let Some(flusher) = &self.flusher {
            flusher.request_flush();
        }
    }
}

impl Store for EmbeddedStore {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn secret(&self) -> Masked<[u8; 32]> {
        self.secret.clone()
    }

    fn is_exclusive(&self) -> bool {
        self.running.is_some()
    }

    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        let Some(flusher) = self.running.as_ref().and_then(|running| running.flusher.as_ref()) else {
            return self.readers.with(|db| {
                // One transaction is one snapshot.
                let snapshot = db.unchecked_transaction()?;
                keys.iter().map(|key| tables::load(&snapshot, key)).collect()
            });
        };
        let (unflushed, ()) = flusher.find(&keys, || ());
        if let Some(rows) = unflushed.into_iter().map(|version| version.map(RowVersion::into_row)).collect() {
            return Ok(rows);
        }
        self.readers.with(|db| {
            if let [key] = keys.as_slice() {
                return Ok(vec![tables::load(db, key)?]);
            }
            let snapshot = db.unchecked_transaction()?;
            // The first query begins the snapshot under the memtable's lock, so that both are of
            // the same moment.
            let (unflushed, begun) = flusher.find(&keys, || tables::commits::last(&snapshot));
            begun?;
            let rows = keys.iter().zip(unflushed).map(|(key, version)| match version {
                Some(version) => Ok(version.into_row()),
                None => tables::load(&snapshot, key),
            });
            rows.collect()
        })
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        self.wait_until_all_flushed().await?;
        self.readers.with(|db| tables::scan(db, &scan))
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        self.wait_until_all_flushed().await?;
        self.readers.with(|db| tables::due(db, due, now, limit))
    }

    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let Some(running) = &self.running else {
            return Err(CommitError::Unavailable("the store was opened for reading only".to_owned()));
        };
        running.queue.commit(set).await
    }

    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        // After a failed sync, the next opening may still find a set that is not visible now.
        if let Some(ailment) = self.running.as_ref().and_then(|running| running.health.ailment()) {
            return Err(ReadError(ailment.to_owned()));
        }
        self.wait_until_all_flushed().await?;
        self.readers.with(|db| tables::commits::of_set(db, id))
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        let page = || self.readers.with(|db| tables::commits::after(db, after, tables::bound(limit)));
        if self.running.as_ref().is_some_and(|running| running.progress.has_unflushed()) {
            // Positions have no gaps: no unflushed commit belongs into a page that is full already.
            let flushed = page()?;
            if flushed.len() >= limit {
                return Ok(flushed);
            }
            self.wait_until_all_flushed().await?;
        }
        page()
    }

    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        self.wait_until_all_flushed().await?;
        self.readers.with(|db| {
            if !tables::owners::may_see(db, tenant, account)? {
                return Ok(Vec::new());
            }
            tables::entries::page(db, account, page, tables::bound(limit))
        })
    }

    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        match upto {
            Upto::Position(position) => self.wait_until_flushed(position).await?,
            Upto::Now | Upto::Time(_) => self.wait_until_all_flushed().await?,
        }
        self.readers.with(|db| {
            if !tables::owners::may_see(db, tenant, account)? {
                return Ok(Folded::default());
            }
            tables::entries::fold(db, account, after, upto)
        })
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        self.wait_until_all_flushed().await?;
        // Readiness rests on this count. A store that has stopped is not ready, although it is flushed.
        if let Some(why) = self.running.as_ref().and_then(|running| running.health.ailment()) {
            return Err(ReadError(why.to_owned()));
        }
        self.readers.with(|db| tables::outbox::tally(db, now))
    }

    fn settled_elsewhere(&self, _: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        // One process writes; there is no elsewhere.
        None::<std::future::Ready<()>>
    }
}

impl EmbeddedStore {
    /// Waits until everything that was answered is flushed.
    async fn wait_until_all_flushed(&self) -> Result<(), ReadError> {
        self.wait_until_flushed(Position(u64::MAX)).await
    }

    /// Waits until everything that was answered is flushed, up to a position.
    async fn wait_until_flushed(&self, upto: Position) -> Result<(), ReadError> {
        let Some(running) = &self.running else { return Ok(()) };
        running.progress.wait_until_flushed(upto.0, || running.request_flush()).await
    }

    /// Commits the waiting sets, flushes, checkpoints and closes. Dropping the store does the same.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        let Some(running) = &mut self.running else { return };
        running.queue.stop();
        if let Some(thread) = running.flusher_thread.take() {
            // After a panic the next opening replays the unflushed groups.
            let _ = thread.join();
        }
        running.stop.store(true, Ordering::Release);
        running.wal.wake();
        if let Some(thread) = running.checkpointer.take() {
            // After a panic the next opening reads SQLite's WAL.
            let _ = thread.join();
        }
        self.readers = Readers::new(Vec::new());
        let Some(db) = running.flusher.take().and_then(Arc::into_inner).map(Flusher::into_connection) else {
            return;
        };
        if running.health.ailment().is_some() {
            // The next opening recovers from the WAL, so closing must not touch it.
            return;
        }
        // The WAL must be synced before it is copied, although commits were not.
        let copied = connect::sync_commits(&db);
        let copied = copied.and_then(|()| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        // SQLite may remove the WAL with the connection only after a complete copy.
        let ended = copied.and_then(|()| connect::checkpoint_on_close(&db, true));
        if let Err(error) = ended {
            tracing::warn!(%error, "SQLite's WAL could not be copied at the end; the next opening reads it");
        }
    }
}
