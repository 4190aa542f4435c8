//! One group: judged, written, synced, answered.

use super::{Health, Job};
use crate::checkpoint::Wal;
use crate::clock::{Clock, monotonic};
use crate::error::{is_of_the_set, reason};
use crate::options::{Fault, FaultPoint, Options};
use crate::tables;
use counterfoil_core::types::id::AccountId;
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, CommitError, Position, Receipt, Refusal, Row, RowKey};
use rusqlite::ffi;
use rusqlite::{Connection, Error, ErrorCode};
use std::sync::Arc;

/// Rows the writer remembers from groups before: a completion then finds what its claim wrote without a query.
const IMAGE_ROWS_MAX: usize = 16_384;
/// Balances that stay when the others are forgotten, because hot accounts are moved by every group: some 10 MiB.
const IMAGE_BALANCES_MAX: usize = 32_768;

/// The writer's own state.
pub(crate) struct Writer {
    db: Connection,
    /// Committed rows, laid over by the group at hand. This thread is the only writer, so it may trust them; it
    /// drops them when a write fails or another program has written.
    image: Image,
    /// Changes judged since the image was last cut back.
    image_rows: usize,
    position: u64,
    data_version: i64,
    clock: Arc<Clock>,
    wal: Arc<Wal>,
    health: Arc<Health>,
    options: Options,
}

/// What is looked up before judging.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Not the absence of rows that bring new ids with them: their tables refuse a second one.
    Trusting,
    /// Everything.
    Thorough,
}

/// What became of a group.
enum Fate {
    /// Every admitted set is durable, or none was admitted.
    Durable,
    /// Nothing was written.
    Untouched(String),
    /// The commit itself failed: the admitted sets may be found after a restart.
    Doubtful(String),
    /// Nothing was written, and one of the sets is to blame.
    AtFault(String),
}

type Verdict = Result<Receipt, Box<Refusal>>;

impl Writer {
    pub(crate) fn new(
        db: Connection,
        position: u64,
        clock: Arc<Clock>,
        wal: Arc<Wal>,
        health: Arc<Health>,
        options: Options,
    ) -> Writer {
        Writer {
            db,
            image: Image::default(),
            image_rows: 0,
            position,
            data_version: -1,
            clock,
            wal,
            health,
            options,
        }
    }

    pub(super) fn into_connection(self) -> Connection {
        self.db
    }

    /// Commits the group and answers every set in it.
    pub(super) fn commit(&mut self, group: &mut Vec<Job>) {
        let (verdicts, fate) = self.attempt(group, Care::Trusting);
        if matches!(fate, Fate::AtFault(_)) {
            // One set hit a rule of the tables. Alone, each gets the answer that is its own.
            for job in group.drain(..) {
                let alone = std::slice::from_ref(&job);
                let (verdicts, fate) = self.attempt(alone, Care::Thorough);
                answer(std::iter::once(job), verdicts, &fate);
            }
        } else {
            answer(group.drain(..), verdicts, &fate);
        }
        self.wal.between_groups(&self.db);
    }

    fn attempt(&mut self, group: &[Job], care: Care) -> (Vec<Verdict>, Fate) {
        if let Some(ailment) = self.health.ailment() {
            return (Vec::new(), Fate::Untouched(ailment.to_owned()));
        }
        let begun = monotonic();
        let verdicts = match self.fill(group, care) {
            Ok(verdicts) => verdicts,
            Err(error) => {
                self.roll_back();
                let why = reason(&error);
                let fate = if is_of_the_set(&error) { Fate::AtFault } else { Fate::Untouched };
                return (Vec::new(), fate(why));
            }
        };
        let admitted = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
        if admitted == 0 {
            // Nothing was written, so there is nothing to sync.
            return match self.execute("ROLLBACK") {
                Ok(()) => (verdicts, Fate::Durable),
                Err(error) => (Vec::new(), Fate::Untouched(reason(&error))),
            };
        }
        if let Err(error) = self.seal() {
            self.roll_back();
            let why = reason(&error);
            if error.sqlite_error_code() != Some(ErrorCode::DiskFull) {
                self.health.fail(format!("the disk did not confirm a commit ({why}); restart to recover"));
            }
            return (verdicts, Fate::Doubtful(why));
        }
        self.position = self.position.saturating_add(u64::try_from(admitted).unwrap_or(0));
        if let Some(observe) = &self.options.observe {
            observe(admitted, monotonic().saturating_sub(begun));
        }
        (verdicts, Fate::Durable)
    }

    /// Opens the transaction, judges every set and writes those that hold.
    fn fill(&mut self, group: &[Job], care: Care) -> Result<Vec<Verdict>, Error> {
        self.execute("BEGIN IMMEDIATE")?;
        self.refresh()?;
        self.fault(FaultPoint::Write)?;
        let at = self.clock.now();
        let mut position = self.position;
        let mut verdicts = Vec::with_capacity(group.len());
        let mut moved = Vec::new();
        for job in group {
            if let Err(refusal) = self.judge(job, care)? {
                verdicts.push(Err(refusal));
                continue;
            }
            position = position.saturating_add(1);
            let receipt = Receipt { position: Position(position), at };
            for change in job.set.changes() {
                tables::apply(&self.db, change, receipt)?;
                moved.extend(balance_of(change));
            }
            tables::commits::insert(&self.db, receipt, job.set.id(), &job.touched)?;
            verdicts.push(Ok(receipt));
        }
        self.write_balances(moved)?;
        Ok(verdicts)
    }

    /// Writes each balance the group moved once, however many sets moved it.
    fn write_balances(&self, mut moved: Vec<(AccountId, u8)>) -> Result<(), Error> {
        moved.sort_unstable();
        moved.dedup();
        for (account, shard) in moved {
            if let Some(Row::Balance(balance)) = self.image.get(&RowKey::Balance(account, shard)) {
                tables::balances::put(&self.db, balance)?;
            }
        }
        Ok(())
    }

    fn judge(&mut self, job: &Job, care: Care) -> Result<Result<(), Box<Refusal>>, Error> {
        self.bring(job, care)?;
        let verdict = match self.image.admit(&job.set) {
            // The first failed precondition may be one that was not looked up.
            Err(_) if care == Care::Trusting => {
                self.bring(job, Care::Thorough)?;
                self.image.admit(&job.set)
            }
            verdict => verdict,
        };
        self.image_rows = self.image_rows.saturating_add(job.set.changes().len());
        Ok(verdict)
    }

    fn bring(&mut self, job: &Job, care: Care) -> Result<(), Error> {
        for change in job.set.changes() {
            if care == Care::Trusting && is_new_by_construction(change) {
                continue;
            }
            let key = change.key();
            if !self.image.knows(&key) {
                let row = tables::load(&self.db, &key)?;
                self.image.bring(key, row);
            }
        }
        Ok(())
    }

    /// Forgets remembered rows if they are too many, or if another program has written to the file.
    fn refresh(&mut self) -> Result<(), Error> {
        let version: i64 = self.db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if version != self.data_version {
            self.position = tables::commits::last(&self.db)?.map_or(0, |last| last.position.0);
            self.data_version = version;
            self.forget();
        } else if self.image_rows > IMAGE_ROWS_MAX {
            self.image_rows = 0;
            if self.image.keep(|key| matches!(key, RowKey::Balance(..))) > IMAGE_BALANCES_MAX {
                self.forget();
            }
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), Error> {
        self.fault(FaultPoint::Commit)?;
        self.execute("COMMIT")
    }

    fn roll_back(&mut self) {
        self.forget();
        // SQLite rolls back by itself on some errors.
        if !self.db.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            self.health.fail(format!("a transaction could not be rolled back: {error}"));
        }
    }

    fn forget(&mut self) {
        self.image.clear();
        self.image_rows = 0;
    }

    fn execute(&self, sql: &'static str) -> Result<(), Error> {
        self.db.prepare_cached(sql)?.execute([]).map(|_| ())
    }

    fn fault(&self, point: FaultPoint) -> Result<(), Error> {
        let code = match self.options.fault.as_ref().and_then(|fault| fault(point)) {
            None => return Ok(()),
            Some(Fault::DiskFull) => ffi::SQLITE_FULL,
            Some(Fault::Sync) => ffi::SQLITE_IOERR_FSYNC,
        };
        Err(Error::SqliteFailure(ffi::Error::new(code), None))
    }
}

/// Rows that bring new ids, and what hangs on those: looking for one would find nothing.
fn is_new_by_construction(change: &Change) -> bool {
    match change {
        Change::Insert(row) => match &**row {
            Row::Charge(_)
            | Row::Operation(_)
            | Row::Payout(_)
            | Row::Outbox(_)
            | Row::Audit(_)
            | Row::Account(_)
            | Row::Transaction(_)
            | Row::Hold(_) => true,
            Row::Claim(_)
            | Row::Tenant(_)
            | Row::ApiKey(_)
            | Row::Slot(_)
            | Row::Name(_)
            | Row::Asset(_)
            | Row::Balance(_)
            | Row::Reversal(_)
            | Row::Snapshot(_)
            | Row::Cursor(_) => false,
        },
        Change::Replace { .. } | Change::Remove { .. } | Change::Move(_) => false,
    }
}

/// The balance a change makes or moves.
fn balance_of(change: &Change) -> Option<(AccountId, u8)> {
    match change {
        Change::Move(motion) => Some((motion.account, motion.shard)),
        Change::Insert(row) => match &**row {
            Row::Balance(balance) => Some((balance.account, balance.shard)),
            _ => None,
        },
        Change::Replace { .. } | Change::Remove { .. } => None,
    }
}

/// Answers every set. A refusal may rest on a neighbour's write, so it counts only once the group is durable.
fn answer(jobs: impl Iterator<Item = Job>, verdicts: Vec<Verdict>, fate: &Fate) {
    let mut verdicts = verdicts.into_iter();
    for job in jobs {
        let verdict = verdicts.next();
        let result = match (fate, verdict) {
            (Fate::Durable, Some(Ok(receipt))) => Ok(receipt),
            (Fate::Durable, Some(Err(refusal))) => Err(CommitError::Refused(refusal)),
            // A set without a verdict cannot be; if it is, nothing is known of it.
            (Fate::Doubtful(_), Some(Ok(_))) | (Fate::Durable, None) => {
                Err(CommitError::InDoubt(job.set.id()))
            }
            (Fate::Untouched(why) | Fate::Doubtful(why), _) => Err(CommitError::Unavailable(why.clone())),
            (Fate::AtFault(why), _) => Err(CommitError::Unavailable(format!(
                "the database refused the set, which is a defect to report: {why}"
            ))),
        };
        // Nobody may wait any more: the caller went away, the commit stands.
        let _ = job.answer.send(result);
    }
}
