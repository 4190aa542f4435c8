//! Executes one flush: all pending writes in one SQLite transaction.
//!
//! A write transaction is always open, so no other program can write. The only gap is between the
//! commit of a flush and the next `BEGIN IMMEDIATE`. `PRAGMA data_version` detects a foreign commit
//! in the gap. The store then stops: the writer may have judged sets by stale rows, and only the
//! next opening reads everything again.

use super::{Progress, SqliteWal};
use crate::error::{OpenError, is_refusal, reason};
use crate::key_index::{Partition, list_closed_partitions};
use crate::memtable::{DurableGroup, FlushBatch};
use crate::open::connect::BUSY;
use crate::options::{FaultHook, FaultPoint, fault_at};
use crate::tables::{self, Write};
use crate::writer::Health;
use rusqlite::{Connection, Error, ErrorCode};
use std::sync::Arc;
use std::time::Duration;

/// The reason of a stop after a foreign write.
const FOREIGN_WRITE: &str = "another program wrote to the database counterfoil.db, or restarted its WAL, while the store was open; \
    stop that program and restart the server: nothing that was answered is lost";

/// The only writing connection, and the batch of the next flush.
pub(crate) struct Applier {
    db: Connection,
    batch: FlushBatch,
    /// `PRAGMA data_version` after the last flush.
    data_version: i64,
    /// The youngest partition with flushed keys; the keys of all older partitions are listed.
    youngest: Option<Partition>,
    /// The error of the last flush, if it failed.
    trouble: Option<String>,
    /// Retrying cannot help: the tables refused a row, or another program has written.
    is_stopped: bool,
    wal: Arc<SqliteWal>,
    health: Arc<Health>,
    progress: Arc<Progress>,
    fault: Option<FaultHook>,
}

#[derive(Debug)]
enum FlushError {
    Database(Error),
    ForeignWrite,
    /// The version could not be read after a failed flush, so a foreign write could go unnoticed.
    VersionUnknown(Error),
}

impl From<Error> for FlushError {
    fn from(error: Error) -> FlushError {
        FlushError::Database(error)
    }
}

impl std::fmt::Debug for Applier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Applier").field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

impl Applier {
    /// Takes the write lock. `data_version` was read before any row, which also detects a foreign
    /// write during the opening.
    pub(crate) fn new(
        db: Connection,
        data_version: i64,
        wal: Arc<SqliteWal>,
        health: Arc<Health>,
        progress: Arc<Progress>,
        fault: Option<FaultHook>,
    ) -> Result<Applier, OpenError> {
        let mut applier = Applier {
            db,
            batch: FlushBatch::default(),
            data_version,
            youngest: None,
            trouble: None,
            is_stopped: false,
            wal,
            health,
            progress,
            fault,
        };
        applier.begin().map_err(|error| match error {
            FlushError::Database(error) | FlushError::VersionUnknown(error) => OpenError::Io(reason(&error)),
            FlushError::ForeignWrite => OpenError::Io(FOREIGN_WRITE.to_owned()),
        })?;
        Ok(applier)
    }

    /// Adds groups to the next flush.
    pub(super) fn add(&mut self, groups: Vec<DurableGroup>, now: Duration) {
        for group in groups {
            self.batch.add(group, now);
        }
    }

    /// Whether a flush is due without a request: the batch is large or old, or the last flush
    /// failed.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.trouble.is_some() || self.batch.is_due(now)
    }

    /// The time until the batch is due by its age; none if it is empty.
    pub(super) fn remaining(&self, now: Duration) -> Option<Duration> {
        self.batch.remaining(now)
    }

    /// The error of the last flush, if it failed.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    /// Lets other programs write again, at the end.
    pub(super) fn release_write_lock(&mut self) {
        self.roll_back();
    }

    /// Writes and commits the batch. The caller gets the flushed batch, and empties it where no
    /// thread waits.
    pub(super) fn flush(&mut self) -> Option<FlushBatch> {
        if self.is_stopped {
            // Readers that came after the stop need the reason, too.
            if let Some(why) = self.trouble.clone() {
                self.progress.set_trouble(why);
            }
            return None;
        }
        if let Err(error) = self.write() {
            self.report(&error);
            return None;
        }
        self.trouble = None;
        if self.batch.is_empty() {
            self.progress.set_flushed(self.progress.flushed());
            return None;
        }
        let flushed = std::mem::take(&mut self.batch);
        self.progress.set_flushed(flushed.last());
        self.wal.between_transactions(&self.db);
        let begun = fault_at(self.fault.as_ref(), FaultPoint::BetweenFlushes);
        if let Err(error) = begun.map_err(FlushError::from).and_then(|()| self.begin()) {
            self.report(&error);
        }
        Some(flushed)
    }

    /// Keeps the memory of a flushed batch for the next one.
    pub(super) fn recycle(&mut self, flushed: FlushBatch) {
        if self.batch.is_empty() {
            self.batch = flushed.emptied();
        }
    }

    /// Opens a write transaction, which locks out other programs. Fails after a foreign write.
    fn begin(&mut self) -> Result<(), FlushError> {
        if !self.db.is_autocommit() {
            return Ok(());
        }
        self.lock_for_writing()?;
        let checked = self.check_version();
        if checked.is_err() {
            self.roll_back();
        }
        checked
    }

    /// Begins a write transaction. While another program holds the lock, the writer is told, so that
    /// it judges no set by rows which that program may change.
    fn lock_for_writing(&self) -> Result<(), Error> {
        self.db.busy_timeout(Duration::ZERO)?;
        let begun = self.execute("BEGIN IMMEDIATE");
        self.db.busy_timeout(BUSY)?;
        match begun {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                self.progress.set_trouble("another program holds the write lock of the database".to_owned());
                self.execute("BEGIN IMMEDIATE")?;
                self.progress.set_flushed(self.progress.flushed());
                Ok(())
            }
            begun => begun,
        }
    }

    fn check_version(&self) -> Result<(), FlushError> {
        let found = data_version(&self.db)?;
        if found == self.data_version { Ok(()) } else { Err(FlushError::ForeignWrite) }
    }

    fn write(&mut self) -> Result<(), FlushError> {
        self.begin()?;
        if self.batch.is_empty() {
            return Ok(());
        }
        let written = self.write_and_commit();
        if written.is_err() {
            self.roll_back();
            // A failed transaction resets the page cache, which also changes the version.
            self.data_version = data_version(&self.db).map_err(FlushError::VersionUnknown)?;
        }
        Ok(written?)
    }

    fn write_and_commit(&mut self) -> Result<(), Error> {
        tables::apply_all(&self.db, self.batch.writes())?;
        tables::new_rows::check(&self.db, self.batch.writes())?;
        let partitions = self.batch.writes().filter_map(Write::new_key).map(|(_, partition)| partition);
        let begun = partitions.max().filter(|partition| self.youngest < Some(*partition));
        if let Some(open) = begun {
            list_closed_partitions(&self.db, self.youngest, open)?;
        }
        fault_at(self.fault.as_ref(), FaultPoint::Flush)?;
        // Writing the pages before the commit keeps the following gap short.
        self.db.cache_flush()?;
        self.execute("COMMIT")?;
        self.youngest = begun.or(self.youngest);
        Ok(())
    }

    /// Reports a failed flush. The log keeps the groups; the flush is retried unless it cannot
    /// succeed.
    fn report(&mut self, error: &FlushError) {
        let why = match error {
            FlushError::ForeignWrite => {
                self.is_stopped = true;
                self.health.fail(FOREIGN_WRITE.to_owned());
                FOREIGN_WRITE.to_owned()
            }
            FlushError::VersionUnknown(error) => {
                let why = reason(error);
                self.is_stopped = true;
                self.health.fail(format!(
                    "the database could not be read after a failed flush ({why}); restart the server: nothing that was answered is lost"
                ));
                why
            }
            FlushError::Database(error) if is_refusal(error) => {
                let why = reason(error);
                self.is_stopped = true;
                self.health.fail(format!(
                    "the database refused a commit that was admitted, which is a defect to report: {why}"
                ));
                why
            }
            FlushError::Database(error) => {
                let why = reason(error);
                if self.trouble.is_none() {
                    tracing::warn!(%why, "a flush to the database failed; it is tried again");
                }
                why
            }
        };
        self.trouble = Some(why.clone());
        self.progress.set_trouble(why);
    }

    fn roll_back(&self) {
        // After some errors SQLite has rolled back already.
        if !self.db.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            self.health.fail(format!("a transaction could not be rolled back: {error}"));
        }
    }

    fn execute(&self, sql: &'static str) -> Result<(), Error> {
        self.db.prepare_cached(sql)?.execute([]).map(|_| ())
    }

    /// The connection, without a transaction.
    pub(super) fn into_connection(self) -> Connection {
        self.roll_back();
        self.db
    }
}

/// Changes with the commits of other connections.
pub(crate) fn data_version(db: &Connection) -> Result<i64, Error> {
    db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::schema::{Found, STEPS, copy_rules, migrate};
    use counterfoil_core::types::id::SetId;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::{CommitReceipt, Position};

    fn connection(dir: &std::path::Path) -> Connection {
        Connection::open(dir.join("counterfoil.db")).unwrap()
    }

    fn applier(dir: &std::path::Path, fault: Option<FaultHook>) -> (Applier, Arc<Progress>) {
        let mut db = connection(dir);
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").unwrap();
        let version = data_version(&db).unwrap();
        migrate(&mut db, Found::Fresh, STEPS).unwrap();
        let (health, progress) = (Arc::new(Health::default()), Arc::new(Progress::new(0)));
        let (wal, _) =
            SqliteWal::new(Options::default().sqlite_wal, Arc::clone(&health), Arc::clone(&progress));
        (Applier::new(db, version, wal, health, Arc::clone(&progress), fault).unwrap(), progress)
    }

    fn group() -> DurableGroup {
        let commit = Write::Commit(
            CommitReceipt { position: Position(1), at: Time::EPOCH },
            SetId::from_i64(1),
            Vec::new(),
        );
        DurableGroup { writes: vec![commit], last: 1, bytes: 0, fills_a_segment: false }
    }

    #[test]
    fn other_programs_can_write_only_between_two_flushes() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path(), None);
        let other = connection(dir.path());
        other.busy_timeout(Duration::ZERO).unwrap();
        assert!(other.execute_batch("BEGIN IMMEDIATE").is_err());
        applier.add(vec![group()], Duration::ZERO);
        assert!(applier.flush().is_some());
        assert_eq!(progress.flushed(), 1);
        assert!(other.execute_batch("BEGIN IMMEDIATE").is_err(), "the next transaction is open");
        applier.release_write_lock();
        other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    }

    #[test]
    fn a_foreign_write_between_two_flushes_stops_the_store_before_it_writes_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let hook: FaultHook = Arc::new(move |point| {
            if point == FaultPoint::BetweenFlushes {
                connection(&path).execute("INSERT INTO meta VALUES ('by hand', 1)", []).unwrap();
            }
            None
        });
        let (mut applier, progress) = applier(dir.path(), Some(hook));
        applier.add(vec![group()], Duration::ZERO);
        assert!(applier.flush().is_some(), "the flush before the foreign write is whole");
        assert!(applier.health.ailment().is_some_and(|why| why.contains("another program wrote")));
        applier.add(vec![DurableGroup { last: 2, ..group() }], Duration::ZERO);
        assert!(applier.flush().is_none());
        assert_eq!(progress.flushed(), 1);
        connection(dir.path()).execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    }

    #[test]
    fn the_writer_is_told_while_another_program_holds_the_lock_between_two_flushes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let (arrive, reached) = std::sync::mpsc::channel();
        let (locked, wait) = std::sync::mpsc::channel();
        let (arrive, wait) = (std::sync::Mutex::new(arrive), std::sync::Mutex::new(wait));
        let hook: FaultHook = Arc::new(move |point| {
            if point == FaultPoint::BetweenFlushes {
                arrive.lock().unwrap().send(()).unwrap();
                wait.lock().unwrap().recv().unwrap();
            }
            None
        });
        let (mut applier, progress) = applier(dir.path(), Some(hook));
        let seen = Arc::clone(&progress);
        let other = std::thread::spawn(move || {
            let db = connection(&path);
            reached.recv().unwrap();
            db.execute_batch("BEGIN IMMEDIATE").unwrap();
            locked.send(()).unwrap();
            while seen.trouble().is_none() {
                std::thread::yield_now();
            }
            db.execute_batch("ROLLBACK").unwrap();
        });
        applier.add(vec![group()], Duration::ZERO);
        assert!(applier.flush().is_some());
        other.join().unwrap();
        assert_eq!((progress.trouble(), applier.health.ailment()), (None, None), "nothing was written");
    }

    /// A full disk makes SQLite reset its page cache, which changes the version.
    #[test]
    fn a_failed_flush_is_not_taken_for_a_foreign_write() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path(), None);
        let pages: u32 = applier.db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        applier.db.execute_batch(&format!("PRAGMA max_page_count = {pages}")).unwrap();
        let large = |write| match write {
            Write::Commit(receipt, set, _) => Write::Commit(receipt, set, vec![0; 1 << 20]),
            other => other,
        };
        let writes = group().writes.into_iter().map(large).collect();
        applier.add(vec![DurableGroup { writes, ..group() }], Duration::ZERO);
        assert!(applier.flush().is_none());
        assert!(applier.trouble().is_some_and(|why| why.contains("no space left")));
        applier.db.execute_batch("PRAGMA max_page_count = 100000").unwrap();
        assert!(applier.flush().is_some());
        assert_eq!((progress.flushed(), applier.health.ailment()), (1, None));
    }

    /// No trigger of this connection checks positions; `new_rows` does.
    #[test]
    fn a_commit_below_the_last_position_stops_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path(), None);
        copy_rules(&applier.db).unwrap();
        applier.db.execute("INSERT INTO commits VALUES (2, 2, 0, x'')", []).unwrap();
        applier.add(vec![group()], Duration::ZERO);
        assert!(applier.flush().is_none());
        assert_eq!(progress.flushed(), 0);
        assert!(applier.health.ailment().is_some_and(|why| why.contains("a defect to report")));
    }
}
