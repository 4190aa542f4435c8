//! The store itself: the port's questions, answered by the readers, the writer and the clock.

use crate::checkpoint::Wal;
use crate::clock::Clock;
use crate::connect;
use crate::display::{Display, Now};
use crate::lock::Lock;
use crate::progress::Progress;
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
    /// Absent when the store was opened for reading only.
    pub(crate) running: Option<Running>,
}

/// What a store that is open for writing keeps going. The file and the lock are let go last.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) queue: Queue,
    /// Let go before the connection in it is used to close.
    pub(crate) display: Option<Arc<Display>>,
    pub(crate) shows: Option<JoinHandle<()>>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) health: Arc<Health>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) checkpointer: Option<JoinHandle<()>>,
    pub(crate) _file: Arc<File>,
    pub(crate) _lock: Lock,
}

impl Running {
    /// Somebody waits for the database to show more.
    fn nudge(&self) {
        if let Some(display) = &self.display {
            display.nudge();
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
        let Some(display) = self.running.as_ref().and_then(|running| running.display.as_ref()) else {
            return self.readers.with(|db| {
                // One transaction sees one moment.
                let moment = db.unchecked_transaction()?;
                keys.iter().map(|key| tables::load(&moment, key)).collect()
            });
        };
        let (hidden, ()) = display.find(&keys, || ());
        if let Some(rows) = hidden.into_iter().map(|now| now.map(Now::into_row)).collect() {
            return Ok(rows);
        }
        self.readers.with(|db| {
            if let [key] = keys.as_slice() {
                return Ok(vec![tables::load(db, key)?]);
            }
            let moment = db.unchecked_transaction()?;
            // What is hidden at the moment the transaction sees is laid over it.
            let (hidden, looked) = display.find(&keys, || tables::commits::last(&moment));
            looked?;
            let rows = keys.iter().zip(hidden).map(|(key, now)| match now {
                Some(now) => Ok(now.into_row()),
                None => tables::load(&moment, key),
            });
            rows.collect()
        })
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        self.sees_all().await?;
        self.readers.with(|db| tables::scan(db, &scan))
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        self.sees_all().await?;
        self.readers.with(|db| tables::due(db, due, now, limit))
    }

    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let Some(running) = &self.running else {
            return Err(CommitError::Unavailable("the store was opened for reading only".to_owned()));
        };
        running.queue.commit(set).await
    }

    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        // After a sync that failed, a set that is not visible now may still be found by the next opening.
        if let Some(ailment) = self.running.as_ref().and_then(|running| running.health.ailment()) {
            return Err(ReadError(ailment.to_owned()));
        }
        self.sees_all().await?;
        self.readers.with(|db| tables::commits::of_set(db, id))
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        let page = || self.readers.with(|db| tables::commits::after(db, after, tables::bound(limit)));
        if self.running.as_ref().is_some_and(|running| running.progress.hides_any()) {
            // Positions leave no gap, so nothing that is hidden belongs into a page that is full without it.
            let shown = page()?;
            if shown.len() >= limit {
                return Ok(shown);
            }
            self.sees_all().await?;
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
        self.sees_all().await?;
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
            Upto::Position(position) => self.sees(position).await?,
            Upto::Now | Upto::Time(_) => self.sees_all().await?,
        }
        self.readers.with(|db| {
            if !tables::owners::may_see(db, tenant, account)? {
                return Ok(Folded::default());
            }
            tables::entries::fold(db, account, after, upto)
        })
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        self.sees_all().await?;
        self.readers.with(|db| tables::outbox::tally(db, now))
    }

    fn settled_elsewhere(&self, _: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        // There is nobody else.
        None::<std::future::Ready<()>>
    }
}

impl EmbeddedStore {
    /// Waits until the database shows everything that was answered.
    async fn sees_all(&self) -> Result<(), ReadError> {
        self.sees(Position(u64::MAX)).await
    }

    /// Waits until the database shows everything that was answered, up to a position.
    async fn sees(&self, upto: Position) -> Result<(), ReadError> {
        let Some(running) = &self.running else { return Ok(()) };
        running.progress.sees(upto.0, || running.nudge()).await
    }

    /// Commits what waits, copies the log into the database and closes the files. Dropping the store does the same.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        let Some(running) = &mut self.running else { return };
        running.queue.stop();
        if let Some(thread) = running.shows.take() {
            // One that panicked left the rest in the redo log: it is played at the next opening.
            let _ = thread.join();
        }
        running.stop.store(true, Ordering::Release);
        running.wal.wake();
        if let Some(thread) = running.checkpointer.take() {
            // A checkpointer that panicked left the log as it is: it is read at the next opening.
            let _ = thread.join();
        }
        self.readers = Readers::new(Vec::new());
        let Some(db) = running.display.take().and_then(Arc::into_inner).map(Display::into_connection) else {
            return;
        };
        if running.health.ailment().is_some() {
            // The log is what the next opening recovers from: closing must not touch it.
            return;
        }
        // The log must be synced before it is copied, although commits were not.
        let copied = connect::sync_commits(&db);
        let copied = copied.and_then(|()| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        // Only a log of which nothing is needed any more is removed with the connection.
        let ended = copied.and_then(|()| connect::copy_on_close(&db, true));
        if let Err(error) = ended {
            tracing::warn!(%error, "the store's log could not be copied at the end; the next opening reads it");
        }
    }
}
