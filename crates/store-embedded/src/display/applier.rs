//! Executes what is durable in one transaction of the database.

use super::hidden::{Group, Hidden};
use crate::checkpoint::Wal;
use crate::error::{is_refusal, reason};
use crate::options::{FaultHook, FaultPoint, fault_at};
use crate::progress::Progress;
use crate::tables::volumes::{self, Volume};
use crate::tables::{self, Write};
use crate::writer::Health;
use rusqlite::{Connection, Error};
use std::sync::Arc;
use std::time::Duration;

/// The one connection that writes, and what it has to.
pub(crate) struct Applier {
    db: Connection,
    hidden: Hidden,
    data_version: i64,
    /// The highest volume that keys were added to, once it is known that those below it are listed.
    volume: Option<Volume>,
    /// Another program wrote, and the writer has not looked at it yet: what it has admitted may be there twice.
    is_meddled: bool,
    /// Why the database does not take what is durable, if it does not now.
    trouble: Option<String>,
    /// It never will: that is not tried again.
    is_refused: bool,
    wal: Arc<Wal>,
    health: Arc<Health>,
    progress: Arc<Progress>,
    fault: Option<FaultHook>,
}

impl std::fmt::Debug for Applier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Applier").field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

impl Applier {
    pub(crate) fn new(
        db: Connection,
        wal: Arc<Wal>,
        health: Arc<Health>,
        progress: Arc<Progress>,
        fault: Option<FaultHook>,
    ) -> Result<Applier, Error> {
        let data_version = version(&db)?;
        Ok(Applier {
            db,
            hidden: Hidden::default(),
            data_version,
            volume: None,
            is_meddled: false,
            trouble: None,
            is_refused: false,
            wal,
            health,
            progress,
            fault,
        })
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

    /// Whether something is durable that the database does not show.
    pub(super) fn has_hidden(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// The same for the next groups, if it can be had: otherwise it is tried again when they are shown.
    pub(super) fn keep_others_out(&mut self) {
        if self.trouble.is_none() && self.begin().is_err() {
            self.undo();
        }
    }

    /// Keeps every other program from writing, until what is hidden is shown.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        if !self.db.is_autocommit() {
            return Ok(());
        }
        self.execute("BEGIN IMMEDIATE")?;
        let version = version(&self.db)?;
        if version != self.data_version {
            self.data_version = version;
            self.is_meddled = true;
            self.progress.meddle();
        }
        self.progress.be_alone(true);
        Ok(())
    }

    /// The writer has looked at everything that others wrote.
    pub(crate) fn writer_has_looked(&mut self) {
        self.is_meddled = false;
    }

    /// Lets others write again, if there is nothing to show.
    pub(crate) fn let_go(&mut self) {
        if self.hidden.is_empty() {
            self.undo();
        }
    }

    /// Lets the database show everything that is hidden. What is shown is given out, to be emptied where nobody waits for it.
    pub(super) fn show(&mut self) -> Option<Hidden> {
        if self.hidden.is_empty() {
            return None;
        }
        if self.is_refused {
            // Who has come to wait since then is told as well.
            if let Some(why) = self.trouble.clone() {
                self.progress.stall(why);
            }
            return None;
        }
        match self.write() {
            Ok(()) => {
                let shown = std::mem::take(&mut self.hidden);
                self.trouble = None;
                self.progress.show(shown.last());
                self.wal.between_transactions(&self.db);
                Some(shown)
            }
            Err(error) => {
                self.undo();
                self.stall(&error);
                None
            }
        }
    }

    /// Takes memory back for the next groups.
    pub(super) fn reuse(&mut self, shown: Hidden) {
        if self.hidden.is_empty() {
            self.hidden = shown.emptied();
        }
    }

    fn write(&mut self) -> Result<(), Error> {
        self.begin()?;
        tables::apply_all(&self.db, self.hidden.writes())?;
        tables::new_rows::check(&self.db, self.hidden.writes())?;
        if self.is_meddled {
            tables::check_keys(&self.db, self.hidden.writes())?;
        }
        let volume = self.hidden.writes().filter_map(Write::entering).map(|(_, volume)| volume).max();
        // What the writer does not know of yet may be a volume above those that it goes on with.
        let turned = volume.filter(|volume| self.volume < Some(*volume) && !self.is_meddled);
        if let Some(open) = turned {
            volumes::list_closed(&self.db, self.volume, open)?;
        }
        fault_at(self.fault.as_ref(), FaultPoint::Show)?;
        // Others can write as soon as it commits, and before it has told so: it does as little as it can by then.
        self.db.cache_flush()?;
        self.progress.be_alone(false);
        self.execute("COMMIT")?;
        self.volume = turned.or(self.volume);
        Ok(())
    }

    /// What is durable cannot be shown now, whatever the reason: the redo log keeps it, and it is tried again.
    fn stall(&mut self, error: &Error) {
        let why = reason(error);
        if is_refusal(error) {
            self.is_refused = true;
            self.health.fail(format!(
                "the database refused a commit that was admitted, which is a defect to report: {why}"
            ));
        } else if self.trouble.is_none() {
            tracing::warn!(%why, "the database does not take what is durable; it is tried again");
        }
        self.trouble = Some(why.clone());
        self.progress.stall(why);
    }

    fn undo(&mut self) {
        self.progress.be_alone(false);
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

    pub(super) fn into_connection(self) -> Connection {
        self.db
    }
}

fn version(db: &Connection) -> Result<i64, Error> {
    db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::schema::{Found, keep_own, migrate};
    use crate::tables::Origin;
    use counterfoil_core::types::id::SetId;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::conformance::fixtures::claim;
    use counterfoil_store::{CommitReceipt, Position};

    fn connection(dir: &std::path::Path) -> Connection {
        Connection::open(dir.join("counterfoil.db")).unwrap()
    }

    fn applier(dir: &std::path::Path) -> (Applier, Arc<Progress>) {
        let mut db = connection(dir);
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").unwrap();
        migrate(&mut db, Found::Fresh).unwrap();
        let (health, progress) = (Arc::new(Health::default()), Arc::new(Progress::new(0)));
        let (wal, _) = Wal::new(Options::default().log, Arc::clone(&health), Arc::clone(&progress));
        (Applier::new(db, wal, health, Arc::clone(&progress), None).unwrap(), progress)
    }

    fn group() -> Group {
        let commit = Write::Commit(
            CommitReceipt { position: Position(1), at: Time::EPOCH },
            SetId::from_i64(1),
            Vec::new(),
        );
        Group { writes: vec![commit], last: 1, bytes: 0, fills_a_segment: false }
    }

    /// What the writer takes on trust about keys rests on this.
    #[test]
    fn nobody_else_can_have_written_only_while_a_transaction_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path());
        assert!(!progress.is_untouched(), "anybody may write");
        applier.begin().unwrap();
        assert!(progress.is_untouched());
        applier.hide(vec![group()], Duration::ZERO);
        applier.show();
        assert_eq!(progress.visible(), 1);
        assert!(!progress.is_untouched(), "it ended with what it showed");
        applier.begin().unwrap();
        applier.let_go();
        assert!(!progress.is_untouched(), "nothing was to be shown");
    }

    #[test]
    fn who_wrote_in_between_is_noticed_before_anything_is_taken_on_trust() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path());
        connection(dir.path()).execute("INSERT INTO meta VALUES ('by hand', 1)", []).unwrap();
        applier.begin().unwrap();
        assert!(!progress.is_untouched());
        assert!(progress.take_meddled());
        assert!(progress.is_untouched(), "the writer knows");
    }

    /// The unique index refuses it only in the same volume.
    #[test]
    fn a_key_that_another_program_used_meanwhile_is_not_written_a_second_time() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path());
        let claim = claim(1);
        let by_hand = "INSERT INTO claims (subject, id, tenant, fingerprint, request, created_at, fence, revision, \
            attempts, state, volume) VALUES (2, ?1, 1, x'', x'', 0, 1, 1, 1, 'in_flight', 0)";
        connection(dir.path()).execute(by_hand, [claim.id.digest().as_bytes()]).unwrap();
        let receipt = CommitReceipt { position: Position(1), at: Time::EPOCH };
        let origin = Origin { receipt, volume: Volume::FIRST.next() };
        let writes = vec![Write::Insert(Arc::new(claim.into()), origin)];
        applier.hide(vec![Group { writes, ..group() }], Duration::ZERO);
        assert!(applier.show().is_none());
        assert_eq!(progress.visible(), 0);
        assert!(applier.health.ailment().is_some_and(|why| why.contains("a defect to report")));
        let records: u32 =
            connection(dir.path()).query_row("SELECT count(*) FROM claims", [], |row| row.get(0)).unwrap();
        assert_eq!(records, 1);
    }

    /// The tables of this connection do not ask it for every row.
    #[test]
    fn a_commit_below_one_that_is_there_stops_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path());
        keep_own(&applier.db).unwrap();
        connection(dir.path()).execute("INSERT INTO commits VALUES (2, 2, 0, x'')", []).unwrap();
        applier.hide(vec![group()], Duration::ZERO);
        assert!(applier.show().is_none());
        assert_eq!(progress.visible(), 0);
        assert!(applier.health.ailment().is_some_and(|why| why.contains("a defect to report")));
    }

    /// The writer goes on with its own volume until it has looked.
    #[test]
    fn nothing_is_closed_because_of_a_volume_that_the_writer_does_not_know() {
        let dir = tempfile::tempdir().unwrap();
        let (mut applier, progress) = applier(dir.path());
        let receipt = CommitReceipt { position: Position(1), at: Time::EPOCH };
        let adding = |number, volume| {
            let writes = vec![Write::Insert(Arc::new(claim(number).into()), Origin { receipt, volume })];
            Group { writes, ..group() }
        };
        let lists = || -> u32 {
            connection(dir.path())
                .query_row("SELECT count(*) FROM volume_keys", [], |row| row.get(0))
                .unwrap()
        };
        let by_hand = "INSERT INTO claims (subject, id, tenant, fingerprint, request, created_at, fence, revision, \
            attempts, state, volume) VALUES (9, zeroblob(32), 1, x'', x'', 0, 1, 1, 1, 'in_flight', 7)";
        connection(dir.path()).execute(by_hand, []).unwrap();
        let first = Volume::FIRST.next();
        for number in [1, 2] {
            applier.hide(vec![adding(number, first)], Duration::ZERO);
            assert!(applier.show().is_some());
            assert_eq!(lists(), 0);
        }
        assert!(progress.take_meddled());
        applier.writer_has_looked();
        applier.hide(vec![adding(3, first.next())], Duration::ZERO);
        assert!(applier.show().is_some());
        assert_eq!(lists(), 1, "the one that is written to is open");
    }
}
