//! One group: judged, made durable, answered, and handed on to be shown.

use super::ids::{Ids, Taken};
use super::keys::{Home, Keys};
use super::{Health, Job};
use crate::checkpoint::Wal;
use crate::clock::{Clock, monotonic};
use crate::display::{Display, ENDED, Group};
use crate::error::{NO_SPACE, reason};
use crate::options::{FaultPoint, Options, fault_at};
use crate::progress::Progress;
use crate::redo::{Failed, Redo, Script};
use crate::tables::{self, Origin, Pen, Write, volumes};
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_store::judge::{Image, judge};
use counterfoil_store::{Change, CommitError, CommitReceipt, CommitRefusal, Position, Row, RowKey};
use rusqlite::{Connection, Error, ErrorCode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes after which the writer forgets rows. Those it remembers are found without asking anybody: a completion needs what
/// its claim wrote.
const IMAGE_ROWS_MAX: usize = 16_384;
/// Balances that stay when the others are forgotten, because hot accounts are moved by every group: some 10 MiB.
const IMAGE_BALANCES_MAX: usize = 32_768;
/// Keys for which a page of the database is needed, with all that hangs on them. More make the filter worse, not wrong.
const KEYS_PER_PAGE: usize = 3;

/// The writer's own state.
pub(crate) struct Writer {
    /// Reads what the database shows.
    db: Connection,
    redo: Redo,
    /// The statements of the group at hand.
    script: Script,
    /// Rows as the last group left them, laid over by the group at hand. Only what passes through here is written, so they may
    /// be trusted.
    image: Image,
    /// Changes judged since the image was last cut back.
    image_rows: usize,
    ids: Ids,
    keys: Keys,
    /// Whether that is all: no other program has written keys.
    knows_all_keys: bool,
    /// The image holds something that was not written, or lacks something that another program wrote.
    is_stale: bool,
    /// Another program wrote.
    is_meddled: bool,
    position: u64,
    shared: Shared,
    options: Options,
}

/// What the writer has in common with others.
pub(crate) struct Shared {
    pub(crate) clock: Arc<Clock>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) health: Arc<Health>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) display: Arc<Display>,
}

/// Tells the display that nothing more comes, however the writer ended.
pub(super) struct Ending(Arc<Display>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What became of a group.
enum NextStep {
    /// Every admitted set is durable, or none was admitted.
    Durable,
    /// Nothing was written.
    Untouched(String),
    /// The commit itself failed: the admitted sets may be found after a restart.
    Doubtful(String),
}

/// What is said of one set.
enum Verdict {
    Admitted(CommitReceipt),
    Refused(Box<CommitRefusal>),
    /// No caller makes such a set, and the judge does not see why it cannot be.
    Unfit(Taken),
}

impl Verdict {
    fn receipt(&self) -> Option<CommitReceipt> {
        match self {
            Verdict::Admitted(receipt) => Some(*receipt),
            Verdict::Refused(_) | Verdict::Unfit(_) => None,
        }
    }
}

/// The balances a group moves, and whether they are new.
type Moved = BTreeMap<(TenantId, AccountId, u8), bool>;

impl Writer {
    pub(crate) fn new(
        home: Home,
        db: Connection,
        redo: Redo,
        position: u64,
        shared: Shared,
        options: Options,
    ) -> Result<Writer, Error> {
        let ids = Ids::load(&db, shared.clock.now())?;
        let keys = Keys::of(home, &shared.progress, position, room_for_keys(&db)?, volumes::youngest(&db)?);
        Ok(Writer {
            db,
            redo,
            script: Script::default(),
            image: Image::default(),
            image_rows: 0,
            ids,
            keys,
            knows_all_keys: false,
            is_stale: false,
            is_meddled: false,
            position,
            shared,
            options,
        })
    }

    /// Tells the display of the end, when it is dropped.
    pub(super) fn ending(&self) -> Ending {
        Ending(Arc::clone(&self.shared.display))
    }

    /// Commits the group and answers every set in it.
    pub(super) fn commit(&mut self, group: &mut Vec<Job>) {
        self.shared.display.judging(true);
        let (verdicts, next_step) = self.attempt(group);
        self.shared.display.judging(false);
        answer(group.drain(..), verdicts, &next_step);
        // The display may have shown it all by now, and begun again for the group it saw judged.
        self.let_go();
    }

    fn has_hidden(&self) -> bool {
        self.shared.progress.visible() < self.position
    }

    fn attempt(&mut self, group: &mut [Job]) -> (Vec<Verdict>, NextStep) {
        if let Some(ailment) = self.shared.health.ailment() {
            return (Vec::new(), NextStep::Untouched(ailment.to_owned()));
        }
        let begun = monotonic();
        if let Err(why) = self.make_ready() {
            return (Vec::new(), NextStep::Untouched(why));
        }
        let mut writes = Vec::new();
        let verdicts = match self.fill(group, &mut writes) {
            Ok(verdicts) => verdicts,
            Err(error) => {
                self.give_up();
                return (Vec::new(), NextStep::Untouched(reason(&error)));
            }
        };
        let admitted = verdicts.iter().filter_map(Verdict::receipt).count();
        if admitted == 0 {
            self.let_go();
            return (verdicts, NextStep::Durable);
        }
        if let Err(next_step) = self.make_durable(admitted, writes) {
            self.give_up();
            return (verdicts, next_step);
        }
        if let Some(observe) = &self.options.observe {
            observe(admitted, monotonic().saturating_sub(begun));
        }
        (verdicts, NextStep::Durable)
    }

    /// The image is right, nobody else writes, and the database takes what is durable; why not, if not.
    fn make_ready(&mut self) -> Result<(), String> {
        self.note_meddling();
        if self.is_stale || self.shared.progress.trouble().is_some() {
            self.shared.display.show_all()?;
        }
        if !self.has_hidden()
            && let Err(error) = self.be_alone()
        {
            self.give_up();
            return Err(reason(&error));
        }
        if self.image_rows > IMAGE_ROWS_MAX {
            self.cut_back();
        }
        Ok(())
    }

    /// Keeps other programs from writing, and looks at what they wrote.
    fn be_alone(&mut self) -> Result<(), Error> {
        self.shared.display.applier().begin()?;
        self.note_meddling();
        if self.is_stale { self.look_again() } else { Ok(()) }
    }

    fn note_meddling(&mut self) {
        self.is_meddled |= self.shared.progress.take_meddled();
        self.is_stale |= self.is_meddled;
    }

    /// Everything is in the database, and only there.
    fn look_again(&mut self) -> Result<(), Error> {
        self.image.clear();
        self.image_rows = 0;
        self.position = tables::commits::last(&self.db)?.map_or(0, |last| last.position.0);
        self.shared.progress.show(self.position);
        self.ids = Ids::load(&self.db, self.shared.clock.now())?;
        if self.is_meddled {
            self.keys.learn_anew(self.position, volumes::youngest(&self.db)?);
        }
        (self.is_stale, self.is_meddled) = (false, false);
        self.shared.display.applier().writer_has_looked();
        Ok(())
    }

    /// Forgets rows: what is needed again is found where readers find it.
    fn cut_back(&mut self) {
        if self.image.keep(|key| matches!(key, RowKey::Balance(..))) > IMAGE_BALANCES_MAX {
            self.image.clear();
        }
        self.image_rows = 0;
        self.ids.cut_back(self.position, self.shared.progress.visible());
        self.keys.make_room(self.position);
    }

    /// Judges every set and notes what those that hold write.
    fn fill(&mut self, group: &mut [Job], writes: &mut Vec<Write>) -> Result<Vec<Verdict>, Error> {
        self.script.clear();
        fault_at(self.options.fault.as_ref(), FaultPoint::Write)?;
        self.knows_all_keys = self.shared.progress.is_untouched();
        self.recall(group);
        // One transaction sees one moment, and costs less than one for every row.
        self.execute("BEGIN")?;
        let judged = self.judge_each(group, writes);
        // SQLite ends it by itself on some errors.
        let ended = if self.db.is_autocommit() { Ok(()) } else { self.execute("COMMIT") };
        let verdicts = judged?;
        ended?;
        let mut pen = Pen::Noting(&mut self.script);
        writes.iter().try_for_each(|write| tables::apply(&mut pen, write))?;
        Ok(verdicts)
    }

    fn judge_each(&mut self, group: &mut [Job], writes: &mut Vec<Write>) -> Result<Vec<Verdict>, Error> {
        let at = self.shared.clock.now();
        let mut position = self.position;
        let mut moved = Moved::new();
        let mut verdicts = Vec::with_capacity(group.len());
        for job in group {
            let receipt = CommitReceipt { position: Position(position.saturating_add(1)), at };
            let verdict = self.judge_one(job, receipt, writes, &mut moved)?;
            if verdict.receipt().is_some() {
                position = receipt.position.0;
            }
            verdicts.push(verdict);
        }
        for ((tenant, account, shard), is_new) in moved {
            if let Some(row) = self.image.shared(&RowKey::Balance(tenant, account, shard)) {
                let receipt = CommitReceipt { position: Position(position), at };
                let origin = Origin { receipt, volume: self.keys.volume() };
                writes.push(if is_new { Write::Insert(row, origin) } else { Write::Replace(row) });
            }
        }
        Ok(verdicts)
    }

    fn judge_one(
        &mut self,
        job: &mut Job,
        receipt: CommitReceipt,
        writes: &mut Vec<Write>,
        moved: &mut Moved,
    ) -> Result<Verdict, Error> {
        let anothers = self.bring(job)?;
        let written = writes.len();
        let changes = job.set.changes();
        let origin = Origin { receipt, volume: self.keys.volume() };
        writes.extend(changes.iter().filter_map(|change| Write::of(change, &self.image, origin)));
        let mut takes: Vec<Taken> = writes.iter().skip(written).filter_map(Taken::by).collect();
        takes.push(Taken::Set(job.set.id()));
        if let Some(unfit) =
            anothers.map_or_else(|| self.ids.first_taken(&self.db, &takes), |it| Ok(Some(it)))?
        {
            writes.truncate(written);
            return Ok(judge(&self.image, &job.set).map_or_else(Verdict::Refused, |()| Verdict::Unfit(unfit)));
        }
        let balances: Vec<((TenantId, AccountId, u8), bool)> = changes
            .iter()
            .filter_map(balance_of)
            .map(|balance @ (tenant, account, shard)| {
                (balance, self.image.get(&RowKey::Balance(tenant, account, shard)).is_none())
            })
            .collect();
        self.image_rows = self.image_rows.saturating_add(changes.len());
        if let Err(refusal) = self.image.admit(&job.set) {
            writes.truncate(written);
            return Ok(Verdict::Refused(refusal));
        }
        for (balance, is_new) in balances {
            moved.entry(balance).or_insert(is_new);
        }
        for taken in takes {
            self.ids.take(taken);
        }
        for change in changes {
            if let Change::Insert(row) = change {
                self.ids.inserted(&row.key());
            }
        }
        // Also those that only move: who reads all volumes may have read the one they come from and miss the one they go to.
        for (id, _) in writes.iter().skip(written).filter_map(Write::entering) {
            self.keys.admitted(id);
        }
        writes.push(Write::Commit(receipt, job.set.id(), std::mem::take(&mut job.touched)));
        Ok(Verdict::Admitted(receipt))
    }

    /// Brings those rows that the database may not show. This comes before it is looked at: what is shown in between is
    /// found there.
    fn recall(&mut self, group: &[Job]) {
        if !self.has_hidden() {
            return;
        }
        let changes = group.iter().flat_map(|job| job.set.changes());
        let keys: Vec<RowKey> = changes.filter(|change| self.is_unknown(change)).map(Change::key).collect();
        let (found, ()) = self.shared.display.find(&keys, || ());
        for (key, now) in keys.into_iter().zip(found) {
            if let Some(now) = now {
                self.image.bring(key, now.shared());
            }
        }
    }

    /// Whether the row a change is about must be looked for.
    fn is_unknown(&self, change: &Change) -> bool {
        let key = change.key();
        // What is new is mostly known by its number alone, which costs less than looking for it.
        let is_known = matches!(change, Change::Insert(_)) && self.is_new(&key) || self.image.knows(&key);
        !is_known
    }

    /// Whether no such row can be there, unless the image has it.
    fn is_new(&self, key: &RowKey) -> bool {
        match key {
            RowKey::Claim(_, id) => self.knows_all_keys && self.keys.is_new(*id),
            key => self.ids.is_new(key),
        }
    }

    /// Brings the rows the set is judged by. What is another tenant's is not there for this one, and cannot be made.
    fn bring(&mut self, job: &Job) -> Result<Option<Taken>, Error> {
        let mut anothers = None;
        for change in job.set.changes() {
            if !self.is_unknown(change) {
                continue;
            }
            let key = change.key();
            let row = tables::load(&self.db, &key)?;
            if row.is_none() && tables::is_anothers(&self.db, &key)? {
                anothers = Some(Taken::Anothers);
            }
            self.image.bring(key, row);
        }
        Ok(anothers)
    }

    /// Makes the group at hand durable, and lets it be shown.
    fn make_durable(&mut self, admitted: usize, writes: Vec<Write>) -> Result<(), NextStep> {
        fault_at(self.options.fault.as_ref(), FaultPoint::Commit).map_err(|error| self.doubt(&error))?;
        let sets = u64::try_from(admitted).unwrap_or(0);
        let script = self.script.encode();
        let fills_a_segment = self.redo.turn_if_full();
        if fills_a_segment {
            self.shared.wal.urge();
        }
        match self.redo.append(self.position.saturating_add(1), sets, &script) {
            Ok(()) => {}
            Err(Failed::Unwritten(error)) => return Err(NextStep::Untouched(told(&error))),
            Err(Failed::Unconfirmed(error)) => {
                let why = told(&error);
                let stop = format!("the disk did not confirm a commit ({why}); restart to recover");
                self.shared.health.fail(stop);
                return Err(NextStep::Doubtful(why));
            }
        }
        self.position = self.position.saturating_add(sets);
        let durable = Group { writes, last: self.position, bytes: script.len(), fills_a_segment };
        if !self.shared.display.take(durable) {
            self.shared.health.fail(ENDED.to_owned());
        }
        Ok(())
    }

    /// The group may or may not be found after a restart.
    fn doubt(&self, error: &Error) -> NextStep {
        let why = reason(error);
        if error.sqlite_error_code() != Some(ErrorCode::DiskFull) {
            let stop = format!("the disk did not confirm a commit ({why}); restart to recover");
            self.shared.health.fail(stop);
        }
        NextStep::Doubtful(why)
    }

    /// The image has what was not written.
    fn give_up(&mut self) {
        self.is_stale = true;
        self.let_go();
    }

    /// Nothing was written: nobody else is kept from writing, if nothing is hidden.
    fn let_go(&self) {
        if !self.has_hidden() {
            self.shared.display.applier().let_go();
        }
    }

    fn execute(&self, sql: &'static str) -> Result<(), Error> {
        self.db.prepare_cached(sql)?.execute([]).map(|_| ())
    }
}

/// Room for twice as many keys as the database is likely to have.
fn room_for_keys(db: &Connection) -> Result<usize, Error> {
    let pages: usize = db.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    Ok(pages.saturating_mul(2 * KEYS_PER_PAGE))
}

/// The reason as operators read it.
fn told(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => NO_SPACE.to_owned(),
        _ => error.to_string(),
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
fn answer(jobs: impl Iterator<Item = Job>, verdicts: Vec<Verdict>, next_step: &NextStep) {
    let mut verdicts = verdicts.into_iter();
    for job in jobs {
        let verdict = verdicts.next();
        let result = match (next_step, verdict) {
            (NextStep::Durable, Some(Verdict::Admitted(receipt))) => Ok(receipt),
            (NextStep::Durable, Some(Verdict::Refused(refusal))) => Err(CommitError::Refused(refusal)),
            (_, Some(Verdict::Unfit(taken))) => Err(CommitError::Unavailable(format!(
                "the store refused the set, which is a defect to report: {}",
                taken.why()
            ))),
            // A set without a verdict cannot be; if it is, nothing is known of it.
            (NextStep::Doubtful(_), Some(Verdict::Admitted(_))) | (NextStep::Durable, None) => {
                Err(CommitError::InDoubt(job.set.id()))
            }
            (NextStep::Untouched(why) | NextStep::Doubtful(why), _) => {
                Err(CommitError::Unavailable(why.clone()))
            }
        };
        // Nobody may wait any more: the caller went away, the commit stands.
        let _ = job.answer.send(result);
    }
}
