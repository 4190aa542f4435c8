//! Executes what is durable in one transaction of the database.
//!
//! A write transaction is always open, so no other program can write. The one gap is between the
//! commit of a flush and the next `BEGIN IMMEDIATE`. `PRAGMA data_version` tells whether another
//! connection has committed in that gap; if so, the store stops before it writes anything more.

use super::hidden::{Group, Hidden};
use crate::checkpoint::Wal;
use crate::error::{OpenError, is_refusal, reason};
use crate::options::{FaultHook, FaultPoint, fault_at};
use crate::progress::Progress;
use crate::tables::volumes::{self, Volume};
use crate::tables::{self, Write};
use crate::writer::Health;
use rusqlite::{Connection, Error};
use std::sync::Arc;
use std::time::Duration;

/// Why the store stops when another program has written.
const FOREIGN_WRITE: &str = "another program wrote to the database counterfoil.db while the store was open; \
    stop that program and restart the server: nothing that was answered is lost";

/// The one connection that writes, and the rows that it has to write.
pub(crate) struct Applier {
    db: Connection,
    hidden: Hidden,
    /// The database's version as this connection left it; none if it could not be read.
    data_version: Option<i64>,
    /// The highest volume that keys were added to, once it is known that those below it are listed.
    volume: Option<Volume>,
    /// Why the database does not take what is durable, if it does not now.
    trouble: Option<String>,
    /// Retrying cannot help: the tables refused a row, or another program has written.
    is_stopped: bool,
    wal: Arc<Wal>,
    health: Arc<Health>,
    progress: Arc<Progress>,
    fault: Option<FaultHook>,
}

/// Why a flush failed.
#[derive(Debug)]
enum FlushError {
    Database(Error),
    /// Another program has written since the last flush.
    ForeignWrite,
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
    /// Takes the write lock. `data_version` is that of `db` before anything was read from it, so
    /// that a foreign write during the opening is noticed too.
    pub(crate) fn new(
        db: Connection,
        data_version: i64,
        wal: Arc<Wal>,
        health: Arc<Health>,
        progress: Arc<Progress>,
        fault: Option<FaultHook>,
    ) -> Result<Applier, OpenError> {
        let applier = Applier {
            db,
            hidden: Hidden::default(),
            data_version: Some(data_version),
            volume: None,
            trouble: None,
            is_stopped: false,
            wal,
            health,
            progress,
            fault,
        };
        applier.begin().map_err(|error| match error {
            FlushError::Database(error) => OpenError::Io(reason(&error)),
            FlushError::ForeignWrite => OpenError::Io(FOREIGN_WRITE.to_owned()),
        })?;
        Ok(applier)
    }

    /// Takes groups that are to be shown with the next ones.
    pub(super) fn hide(&mut self, groups: Vec<Group>, now: Duration) {
        for group in groups {
            self.hidden.add(group, now);
        }
    }

    /// Whether they should be shown, although nobody asks.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.trouble.is_some() || self.hidden.is_enough(now)
    }

    /// How long they may stay hidden, if there are any.
    pub(super) fn patience(&self, now: Duration) -> Option<Duration> {
        self.hidden.patience(now)
    }

    /// Why the database does not take what is durable, if it does not now.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    /// Lets other programs write again, at the end.
    pub(super) fn release_write_lock(&mut self) {
        self.roll_back();
    }

    /// Lets the database show everything that is hidden. What is shown is given out, to be emptied where nobody waits for it.
    pub(super) fn show(&mut self) -> Option<Hidden> {
        if self.is_stopped {
            // Readers that came since then are told as well.
            if let Some(why) = self.trouble.clone() {
                self.progress.stall(why);
            }
            return None;
        }
        if let Err(error) = self.write() {
            self.stall(&error);
            return None;
        }
        self.trouble = None;
        if self.hidden.is_empty() {
            self.progress.show(self.progress.visible());
            return None;
        }
        let shown = std::mem::take(&mut self.hidden);
        self.progress.show(shown.last());
        self.wal.between_transactions(&self.db);
        let begun = fault_at(self.fault.as_ref(), FaultPoint::BetweenFlushes);
        if let Err(error) = begun.map_err(FlushError::from).and_then(|()| self.begin()) {
            self.stall(&error);
        }
        Some(shown)
    }

    /// Takes memory back for the next groups.
    pub(super) fn reuse(&mut self, shown: Hidden) {
        if self.hidden.is_empty() {
            self.hidden = shown.emptied();
        }
    }

    /// Opens a write transaction, which keeps every other program from writing, and fails if
    /// another program has written since the last one.
    fn begin(&self) -> Result<(), FlushError> {
        if !self.db.is_autocommit() {
            return Ok(());
        }
        self.execute("BEGIN IMMEDIATE")?;
        let found = version(&self.db);
        match (self.data_version, found) {
            (Some(expected), Ok(found)) if expected != found => {
                self.roll_back();
                Err(FlushError::ForeignWrite)
            }
            (_, Ok(_)) => Ok(()),
            (_, Err(error)) => {
                self.roll_back();
                Err(error.into())
            }
        }
    }

    fn write(&mut self) -> Result<(), FlushError> {
        self.begin()?;
        if self.hidden.is_empty() {
            return Ok(());
        }
        let written = self.write_and_commit();
        if written.is_err() {
            self.roll_back();
            // SQLite also counts up when a failed transaction resets its page cache.
            self.data_version = version(&self.db).ok();
        }
        Ok(written?)
    }

    fn write_and_commit(&mut self) -> Result<(), Error> {
        tables::apply_all(&self.db, self.hidden.writes())?;
        tables::new_rows::check(&self.db, self.hidden.writes())?;
        let volume = self.hidden.writes().filter_map(Write::entering).map(|(_, volume)| volume).max();
        let turned = volume.filter(|volume| self.volume < Some(*volume));
        if let Some(open) = turned {
            volumes::list_closed(&self.db, self.volume, open)?;
        }
        fault_at(self.fault.as_ref(), FaultPoint::Show)?;
        // Other programs may write as soon as it commits: it does as little as it can by then.
        self.db.cache_flush()?;
        self.execute("COMMIT")?;
        self.volume = turned.or(self.volume);
        Ok(())
    }

    /// What is durable cannot be shown now, whatever the reason: the redo log keeps it, and it is tried again.
    fn stall(&mut self, error: &FlushError) {
        let why = match error {
            FlushError::ForeignWrite => {
                self.is_stopped = true;
                self.health.fail(FOREIGN_WRITE.to_owned());
                FOREIGN_WRITE.to_owned()
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
                    tracing::warn!(%why, "the database does not take what is durable; it is tried again");
                }
                why
            }
        };
        self.trouble = Some(why.clone());
        self.progress.stall(why);
    }

    fn roll_back(&self) {
        // SQLite rolls back by itself on some errors.
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

/// Counts the commits of other connections.
pub(crate) fn version(db: &Connection) -> Result<i64, Error> {
    db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::schema::{Found, STEPS, copy_rules, migrate};
    use counterfoil_core::types::id::SetId;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::{Position, Receipt};

    fn connection(dir: &std::path::Path) -> Connection {
        Connection::open(dir.join("counterfoil.db")).unwrap()
    }

    fn applier(dir: &std::path::Path, fault: Option<FaultHook>) -> (Applier, Arc<Progress>) {
        let mut db = connection(dir);
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").unwrap();
        let data_version = version(&db).unwrap();
        migrate(&mut db, Found::Fresh, STEPS).unwrap();
        let (health, progress) = (Arc::new(Health::default()), Arc::new(Progress::new(0)));
        let (wal, _) = Wal::new(Options::default().log, Arc::clone(&health), Arc::clone(&progress));
        (Applier::new(db, data_version, wal, health, Arc::clone(&progress), fault).unwrap(), progress)
    }

    fn group() -> Group {
        let commit =
            Write::Commit(Receipt { position: Position(1), at: Time::EPOCH }, SetId::from_i64(1), Vec::new());
        Group { writes: vec![commit], last: 1, bytes: 0, fills_a_segment: false }
    }

    #[test]
    fn other_programs_can_write_only_between_two_flushes() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path(), None);
        let other = connection(dir.path());
        other.busy_timeout(Duration::ZERO).unwrap();
        assert!(other.execute_batch("BEGIN IMMEDIATE").is_err());
        applier.hide(vec![group()], Duration::ZERO);
        assert!(applier.show().is_some());
        assert_eq!(progress.visible(), 1);
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
        applier.hide(vec![group()], Duration::ZERO);
        assert!(applier.show().is_some(), "the flush before the foreign write is whole");
        assert!(applier.health.ailment().is_some_and(|why| why.contains("another program wrote")));
        applier.hide(vec![Group { last: 2, ..group() }], Duration::ZERO);
        assert!(applier.show().is_none());
        assert_eq!(progress.visible(), 1);
        connection(dir.path()).execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    }

    /// A full disk resets SQLite's page cache, which changes the version that this connection sees.
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
        applier.hide(vec![Group { writes, ..group() }], Duration::ZERO);
        assert!(applier.show().is_none());
        assert!(applier.trouble().is_some_and(|why| why.contains("no space left")));
        applier.db.execute_batch("PRAGMA max_page_count = 100000").unwrap();
        assert!(applier.show().is_some());
        assert_eq!((progress.visible(), applier.health.ailment()), (1, None));
    }

    /// The tables of this connection do not ask it for every row.
    #[test]
    fn a_commit_below_one_that_is_there_stops_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path(), None);
        copy_rules(&applier.db).unwrap();
        applier.db.execute("INSERT INTO commits VALUES (2, 2, 0, x'')", []).unwrap();
        applier.hide(vec![group()], Duration::ZERO);
        assert!(applier.show().is_none());
        assert_eq!(progress.visible(), 0);
        assert!(applier.health.ailment().is_some_and(|why| why.contains("a defect to report")));
    }
}
