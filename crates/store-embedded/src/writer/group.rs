//! One group: judged, executed, made durable, answered; and later shown by the database, with its neighbours.

use super::hidden::Hidden;
use super::{Health, Job};
use crate::checkpoint::Wal;
use crate::clock::{Clock, monotonic};
use crate::error::{NO_SPACE, is_of_the_set, reason};
use crate::options::{Fault, FaultPoint, Options};
use crate::progress::Progress;
use crate::redo::{self, Failed, Redo, Script};
use crate::tables::{self, Pen};
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, CommitError, Position, Receipt, Refusal, Row, RowKey};
use rusqlite::ffi;
use rusqlite::{Connection, Error, ErrorCode};
use std::sync::Arc;
use std::time::Duration;

/// Rows the writer remembers from groups before: a completion then finds what its claim wrote without a query.
const IMAGE_ROWS_MAX: usize = 16_384;
/// Balances that stay when the others are forgotten, because hot accounts are moved by every group: some 10 MiB.
const IMAGE_BALANCES_MAX: usize = 32_768;
/// How long the writer has nothing to do before it lets the database show what is durable. Under load there is always a
/// next group, and showing them together is what makes them cheap.
const IDLE: Duration = Duration::from_micros(500);
/// How long it waits instead when the database could not take it.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// The writer's own state.
pub(crate) struct Writer {
    db: Connection,
    redo: Redo,
    /// The statements of the group at hand.
    script: Script,
    /// Groups that are durable and that the database does not show yet.
    hidden: Hidden,
    /// Committed rows, laid over by the group at hand. This thread is the only writer, so it may trust them; it
    /// drops them when a write fails or another program has written.
    image: Image,
    /// Changes judged since the image was last cut back.
    image_rows: usize,
    position: u64,
    data_version: i64,
    /// Why the database does not take what is durable, if it does not now: then nothing more is taken either.
    stalled: Option<String>,
    shared: Shared,
    options: Options,
}

/// What the writer has in common with others.
pub(crate) struct Shared {
    pub(crate) clock: Arc<Clock>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) health: Arc<Health>,
    pub(crate) progress: Arc<Progress>,
}

/// Tells readers when the writer has ended, however it did.
pub(super) struct Ending(Arc<Progress>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
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
    pub(crate) fn new(db: Connection, redo: Redo, position: u64, shared: Shared, options: Options) -> Writer {
        Writer {
            db,
            redo,
            script: Script::default(),
            hidden: Hidden::default(),
            image: Image::default(),
            image_rows: 0,
            position,
            data_version: -1,
            stalled: None,
            shared,
            options,
        }
    }

    pub(super) fn into_connection(self) -> Connection {
        self.db
    }

    /// Tells readers of the end, when it is dropped.
    pub(super) fn ending(&self) -> Ending {
        Ending(Arc::clone(&self.shared.progress))
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
        if self.hidden.is_enough(monotonic()) || self.shared.progress.take_wish() {
            self.show();
        }
    }

    /// Whether something is durable that the database does not show.
    pub(super) fn has_hidden(&self) -> bool {
        !self.hidden.scripts.is_empty()
    }

    /// How long to wait for the next order before the database is asked to show what it does not.
    pub(super) fn patience(&self) -> Duration {
        if self.stalled.is_some() { TRY_AGAIN } else { IDLE }
    }

    /// Lets the database show everything that is durable.
    pub(super) fn show(&mut self) {
        self.shared.progress.take_wish();
        let shown =
            self.begin().and_then(|()| self.fault(FaultPoint::Show)).and_then(|()| self.execute("COMMIT"));
        match shown {
            Ok(()) => {
                self.hidden = Hidden::default();
                self.stalled = None;
                self.shared.progress.show(self.position);
                self.shared.wal.between_transactions(&self.db);
            }
            Err(error) => {
                self.undo();
                self.stall(&error);
            }
        }
    }

    /// What is durable cannot be shown now, whatever the reason: the redo log keeps it, and it is tried again.
    fn stall(&mut self, error: &Error) {
        let why = reason(error);
        if self.stalled.is_none() {
            tracing::warn!(%why, "the database does not take what is durable; it is tried again");
        }
        self.stalled = Some(why.clone());
        self.shared.progress.stall(why);
    }

    fn attempt(&mut self, group: &[Job], care: Care) -> (Vec<Verdict>, Fate) {
        if let Some(ailment) = self.shared.health.ailment() {
            return (Vec::new(), Fate::Untouched(ailment.to_owned()));
        }
        let begun = monotonic();
        if self.stalled.is_some() {
            self.show();
        }
        if let Some(why) = &self.stalled {
            return (Vec::new(), Fate::Untouched(why.clone()));
        }
        if let Err(error) = self.begin() {
            self.undo();
            self.stall(&error);
            return (Vec::new(), Fate::Untouched(reason(&error)));
        }
        let verdicts = match self.fill(group, care) {
            Ok(verdicts) => verdicts,
            Err(error) => {
                self.undo();
                let why = reason(&error);
                let fate = if is_of_the_set(&error) { Fate::AtFault } else { Fate::Untouched };
                return (Vec::new(), fate(why));
            }
        };
        let admitted = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
        if admitted == 0 {
            return match self.leave_untouched() {
                Ok(()) => (verdicts, Fate::Durable),
                Err(error) => (Vec::new(), Fate::Untouched(reason(&error))),
            };
        }
        if let Err(fate) = self.make_durable(admitted) {
            self.undo();
            return (verdicts, fate);
        }
        for (job, receipt) in
            group.iter().zip(&verdicts).filter_map(|(job, verdict)| Some((job, verdict.as_ref().ok()?)))
        {
            self.shared.progress.committed(receipt.position.0, job.set.changes().iter().map(Change::key));
        }
        if let Some(observe) = &self.options.observe {
            observe(admitted, monotonic().saturating_sub(begun));
        }
        (verdicts, Fate::Durable)
    }

    /// Opens a transaction if none is open, and executes again what the last one lost.
    fn begin(&mut self) -> Result<(), Error> {
        if !self.db.is_autocommit() {
            return Ok(());
        }
        self.execute("BEGIN IMMEDIATE")?;
        self.refresh()?;
        self.hidden.scripts.iter().try_for_each(|script| redo::play(&self.db, script))
    }

    /// Nothing was written, so there is nothing to make durable, and nobody else is kept from writing.
    fn leave_untouched(&mut self) -> Result<(), Error> {
        if self.has_hidden() { Ok(()) } else { self.execute("ROLLBACK") }
    }

    /// Judges every set and executes those that hold.
    fn fill(&mut self, group: &[Job], care: Care) -> Result<Vec<Verdict>, Error> {
        self.script.clear();
        self.fault(FaultPoint::Write)?;
        let at = self.shared.clock.now();
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
            let mut pen = Pen::new(&self.db, &mut self.script);
            for change in job.set.changes() {
                tables::apply(&mut pen, change, receipt)?;
                moved.extend(balance_of(change));
            }
            tables::commits::insert(&mut pen, receipt, job.set.id(), &job.touched)?;
            verdicts.push(Ok(receipt));
        }
        self.write_balances(moved)?;
        Ok(verdicts)
    }

    /// Makes the group at hand durable.
    fn make_durable(&mut self, admitted: usize) -> Result<(), Fate> {
        self.fault(FaultPoint::Commit).map_err(|error| self.doubt(&error))?;
        let sets = u64::try_from(admitted).unwrap_or(0);
        let script = self.script.encode();
        if self.redo.turn_if_full() {
            self.shared.wal.urge();
            self.hidden.fills_a_segment = true;
        }
        match self.redo.append(self.position.saturating_add(1), sets, &script) {
            Ok(()) => {}
            Err(Failed::Unwritten(error)) => return Err(Fate::Untouched(told(&error))),
            Err(Failed::Unconfirmed(error)) => {
                let why = told(&error);
                let stop = format!("the disk did not confirm a commit ({why}); restart to recover");
                self.shared.health.fail(stop);
                return Err(Fate::Doubtful(why));
            }
        }
        self.position = self.position.saturating_add(sets);
        self.hidden.add(script, self.script.statements(), monotonic());
        Ok(())
    }

    /// The group may or may not be found after a restart.
    fn doubt(&self, error: &Error) -> Fate {
        let why = reason(error);
        if error.sqlite_error_code() != Some(ErrorCode::DiskFull) {
            let stop = format!("the disk did not confirm a commit ({why}); restart to recover");
            self.shared.health.fail(stop);
        }
        Fate::Doubtful(why)
    }

    /// Writes each balance the group moved once, however many sets moved it.
    fn write_balances(&mut self, mut moved: Vec<(TenantId, AccountId, u8)>) -> Result<(), Error> {
        moved.sort_unstable();
        moved.dedup();
        let mut pen = Pen::new(&self.db, &mut self.script);
        for (tenant, account, shard) in moved {
            if let Some(Row::Balance(balance)) = self.image.get(&RowKey::Balance(tenant, account, shard)) {
                tables::balances::put(&mut pen, balance)?;
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
            if !self.has_hidden() {
                self.position = tables::commits::last(&self.db)?.map_or(0, |last| last.position.0);
            }
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

    /// Undoes the group at hand, and with it what the database does not show yet: that is executed again.
    fn undo(&mut self) {
        self.forget();
        // SQLite rolls back by itself on some errors.
        if !self.db.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            self.shared.health.fail(format!("a transaction could not be rolled back: {error}"));
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

/// The reason as operators read it.
fn told(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => NO_SPACE.to_owned(),
        _ => error.to_string(),
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
fn balance_of(change: &Change) -> Option<(TenantId, AccountId, u8)> {
    match change {
        Change::Move(motion) => Some((motion.tenant, motion.account, motion.shard)),
        Change::Insert(row) => match &**row {
            Row::Balance(balance) => Some((balance.tenant, balance.account, balance.shard)),
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
