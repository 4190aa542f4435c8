//! One group of sets: judged, made durable, handed to the flusher, answered.

use super::ids::{RowIds, UniqueId};
use super::outcome::{GroupOutcome, Verdict, answer, io_reason};
use super::{Health, Job};
use crate::clock::{Clock, monotonic};
use crate::error::reason;
use crate::flush::{ENDED, Flusher, Progress, SqliteWal};
use crate::key_index::{Home, KeyIndex, youngest_partition};
use crate::log::{AppendError, LogEntry, WriteAheadLog};
use crate::memtable::{DurableGroup, RowVersion};
use crate::options::{FaultPoint, Options, fault_at};
use crate::tables::{self, Origin, RowWriter, Write};
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_store::judge::{Image, judge};
use counterfoil_store::{Change, CommitReceipt, Position, Row, RowKey};
use rusqlite::{Connection, Error, ErrorCode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Judged changes after which the image is trimmed. A completion finds the rows of its claim in the
/// image without a query.
const IMAGE_ROWS_MAX: usize = 16_384;
/// Balances that survive a trim (some 10 MiB), because every group moves the hot accounts.
const IMAGE_BALANCES_MAX: usize = 32_768;
/// Estimated keys per page of the database. A wrong estimate makes the filter worse, not wrong.
const KEYS_PER_PAGE: usize = 3;

/// The writer's own state.
pub(crate) struct Writer {
    /// Reads flushed rows.
    db: Connection,
    log: WriteAheadLog,
    /// The log entry of the current group.
    entry: LogEntry,
    /// Cached rows after the last group, and on top the rows of the current group. Only this thread
    /// writes, so the cache is never outdated.
    image: Image,
    /// Changes judged since the last trim.
    image_rows: usize,
    ids: RowIds,
    keys: KeyIndex,
    /// The image contains writes that were not committed.
    is_stale: bool,
    position: u64,
    shared: Shared,
    options: Options,
}

/// Parts shared with other threads.
pub(crate) struct Shared {
    pub(crate) clock: Arc<Clock>,
    pub(crate) wal: Arc<SqliteWal>,
    pub(crate) health: Arc<Health>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) flusher: Arc<Flusher>,
}

/// Closes the flusher when the writer ends, also by a panic.
pub(super) struct CloseGuard(Arc<Flusher>);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

type BalanceKey = (TenantId, AccountId, u8);

/// The moved balances of a group; true for new ones.
type MovedBalances = BTreeMap<BalanceKey, bool>;

impl Writer {
    pub(crate) fn new(
        home: Home,
        db: Connection,
        log: WriteAheadLog,
        position: u64,
        shared: Shared,
        options: Options,
    ) -> Result<Writer, Error> {
        let ids = RowIds::load(&db, shared.clock.now())?;
        let youngest = youngest_partition(&db)?;
        let keys = KeyIndex::open(home, &shared.progress, position, room_for_keys(&db)?, youngest);
        Ok(Writer {
            db,
            log,
            entry: LogEntry::default(),
            image: Image::default(),
            image_rows: 0,
            ids,
            keys,
            is_stale: false,
            position,
            shared,
            options,
        })
    }

    pub(super) fn close_guard(&self) -> CloseGuard {
        CloseGuard(Arc::clone(&self.shared.flusher))
    }

    /// Commits the group and answers every set in it.
    pub(super) fn commit(&mut self, group: &mut Vec<Job>) {
        let (verdicts, outcome) = self.attempt(group);
        answer(group.drain(..), verdicts, &outcome);
    }

    fn has_unflushed(&self) -> bool {
        self.shared.progress.flushed() < self.position
    }

    fn attempt(&mut self, group: &mut [Job]) -> (Vec<Verdict>, GroupOutcome) {
        if let Some(ailment) = self.shared.health.ailment() {
            return (Vec::new(), GroupOutcome::Untouched(ailment.to_owned()));
        }
        let begun = monotonic();
        if let Err(why) = self.prepare() {
            return (Vec::new(), GroupOutcome::Untouched(why));
        }
        let mut writes = Vec::new();
        let verdicts = match self.judge_group(group, &mut writes) {
            Ok(verdicts) => verdicts,
            Err(error) => {
                self.is_stale = true;
                return (Vec::new(), GroupOutcome::Untouched(reason(&error)));
            }
        };
        let admitted = verdicts.iter().filter_map(Verdict::receipt).count();
        if admitted == 0 {
            return (verdicts, GroupOutcome::Durable);
        }
        if let Err(outcome) = self.make_durable(admitted, writes) {
            self.is_stale = true;
            return (verdicts, outcome);
        }
        if let Some(observe) = &self.options.observe {
            observe(admitted, monotonic().saturating_sub(begun));
        }
        (verdicts, GroupOutcome::Durable)
    }

    /// Makes sure that the image is right and that flushes succeed, or says why not.
    fn prepare(&mut self) -> Result<(), String> {
        if self.is_stale || self.shared.progress.trouble().is_some() {
            self.shared.flusher.flush_all()?;
        }
        if self.is_stale {
            self.reload().map_err(|error| reason(&error))?;
        }
        if self.image_rows > IMAGE_ROWS_MAX {
            self.trim();
        }
        Ok(())
    }

    /// Forgets the writes that failed. Everything that was committed is flushed.
    fn reload(&mut self) -> Result<(), Error> {
        self.image.clear();
        self.image_rows = 0;
        self.ids = RowIds::load(&self.db, self.shared.clock.now())?;
        self.is_stale = false;
        Ok(())
    }

    /// Drops cached rows. Rows that are needed again come from the memtable or the database.
    fn trim(&mut self) {
        if self.image.keep(|key| matches!(key, RowKey::Balance(..))) > IMAGE_BALANCES_MAX {
            self.image.clear();
        }
        self.image_rows = 0;
        self.ids.trim(self.position, self.shared.progress.flushed());
        self.keys.make_room(self.position);
    }

    /// Judges every set and writes the log entry of the admitted ones.
    fn judge_group(&mut self, group: &mut [Job], writes: &mut Vec<Write>) -> Result<Vec<Verdict>, Error> {
        self.entry.clear();
        fault_at(self.options.fault.as_ref(), FaultPoint::Judge)?;
        self.fetch_unflushed(group);
        // One read transaction is one snapshot, and costs less than one per row.
        self.execute("BEGIN")?;
        let judged = self.judge_each(group, writes);
        // After some errors SQLite has ended the transaction already.
        let ended = if self.db.is_autocommit() { Ok(()) } else { self.execute("COMMIT") };
        let verdicts = judged?;
        ended?;
        let mut writer = RowWriter::Logging(&mut self.entry);
        writes.iter().try_for_each(|write| tables::apply(&mut writer, write))?;
        Ok(verdicts)
    }

    fn judge_each(&mut self, group: &mut [Job], writes: &mut Vec<Write>) -> Result<Vec<Verdict>, Error> {
        let at = self.shared.clock.now();
        let mut position = self.position;
        let mut moved = MovedBalances::new();
        let mut verdicts = Vec::with_capacity(group.len());
        for job in group {
            let receipt = CommitReceipt { position: Position(position.saturating_add(1)), at };
            let verdict = self.judge_one(job, receipt, writes, &mut moved)?;
            if verdict.receipt().is_some() {
                position = receipt.position.0;
            }
            verdicts.push(verdict);
        }
        // A balance is written once per group, however many sets move it.
        for ((tenant, account, shard), is_new) in moved {
            if let Some(row) = self.image.shared(&RowKey::Balance(tenant, account, shard)) {
                let receipt = CommitReceipt { position: Position(position), at };
                let origin = Origin { receipt, partition: self.keys.youngest() };
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
        moved: &mut MovedBalances,
    ) -> Result<Verdict, Error> {
        let of_another_tenant = self.fetch_flushed(job)?;
        let written = writes.len();
        let changes = job.set.changes();
        let origin = Origin { receipt, partition: self.keys.youngest() };
        writes.extend(changes.iter().filter_map(|change| Write::of(change, &self.image, origin)));
        let mut ids: Vec<UniqueId> = writes.iter().skip(written).filter_map(UniqueId::of).collect();
        ids.push(UniqueId::Set(job.set.id()));
        let taken = match of_another_tenant {
            Some(id) => Some(id),
            None => self.ids.first_taken(&self.db, &ids)?,
        };
        if let Some(taken) = taken {
            writes.truncate(written);
            return Ok(
                judge(&self.image, &job.set).map_or_else(Verdict::Refused, |()| Verdict::IdTaken(taken))
            );
        }
        let balances: Vec<(BalanceKey, bool)> = changes
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
        // Admitted: nothing below can refuse.
        for (balance, is_new) in balances {
            moved.entry(balance).or_insert(is_new);
        }
        for id in ids {
            self.ids.take(id);
        }
        for change in changes {
            if let Change::Insert(row) = change {
                self.ids.inserted(&row.key());
            }
        }
        // Reused keys are added, too: the filling thread may read their old partition after, and
        // their new partition before the move.
        for (id, _) in writes.iter().skip(written).filter_map(Write::new_key) {
            self.keys.add(id);
        }
        writes.push(Write::Commit(receipt, job.set.id(), std::mem::take(&mut job.touched)));
        Ok(Verdict::Admitted(receipt))
    }

    /// Brings unflushed rows into the image. The database is read afterwards, and has the rows that
    /// are flushed in between.
    fn fetch_unflushed(&mut self, group: &[Job]) {
        if !self.has_unflushed() {
            return;
        }
        let changes = group.iter().flat_map(|job| job.set.changes());
        let keys: Vec<RowKey> = changes.filter(|change| self.is_unknown(change)).map(Change::key).collect();
        let (found, ()) = self.shared.flusher.find(&keys, || ());
        for (key, version) in keys.into_iter().zip(found) {
            if let Some(version) = version {
                self.image.bring(key, RowVersion::shared(version));
            }
        }
    }

    /// Whether the row of a change must be looked up.
    fn is_unknown(&self, change: &Change) -> bool {
        let key = change.key();
        // The id alone mostly tells that a row is new, which costs less than asking the image.
        let is_known = matches!(change, Change::Insert(_)) && self.is_new(&key) || self.image.knows(&key);
        !is_known
    }

    /// Whether no such row can exist outside the image.
    fn is_new(&self, key: &RowKey) -> bool {
        match key {
            RowKey::Claim(_, id) => self.keys.is_new(*id),
            key => self.ids.is_new(key),
        }
    }

    /// Brings the flushed rows of the set into the image. Rows of other tenants are invisible, and
    /// their ids cannot be used again.
    fn fetch_flushed(&mut self, job: &Job) -> Result<Option<UniqueId>, Error> {
        let mut of_another_tenant = None;
        for change in job.set.changes() {
            if !self.is_unknown(change) {
                continue;
            }
            let key = change.key();
            let row = tables::load(&self.db, &key)?;
            if row.is_none() && tables::is_of_another_tenant(&self.db, &key)? {
                of_another_tenant = Some(UniqueId::OfAnotherTenant);
            }
            self.image.bring(key, row);
        }
        Ok(of_another_tenant)
    }

    /// Appends the current group to the log and hands it to the flusher.
    fn make_durable(&mut self, admitted: usize, writes: Vec<Write>) -> Result<(), GroupOutcome> {
        // The flusher may have found a foreign write while this group was judged.
        if let Some(ailment) = self.shared.health.ailment() {
            return Err(GroupOutcome::Untouched(ailment.to_owned()));
        }
        fault_at(self.options.fault.as_ref(), FaultPoint::Append).map_err(|error| self.doubt(&error))?;
        let sets = u64::try_from(admitted).unwrap_or(0);
        let entry = self.entry.encode();
        let fills_a_segment = self.log.rotate_if_full();
        if fills_a_segment {
            self.shared.wal.request_checkpoint();
        }
        match self.log.append(self.position.saturating_add(1), sets, &entry) {
            Ok(()) => {}
            Err(AppendError::Unwritten(error)) => return Err(GroupOutcome::Untouched(io_reason(&error))),
            Err(AppendError::Unconfirmed(error)) => {
                let why = io_reason(&error);
                self.stop_unconfirmed(&why);
                return Err(GroupOutcome::Doubtful(why));
            }
        }
        self.position = self.position.saturating_add(sets);
        let group = DurableGroup { writes, last: self.position, bytes: entry.len(), fills_a_segment };
        if !self.shared.flusher.accept(group) {
            self.shared.health.fail(ENDED.to_owned());
        }
        Ok(())
    }

    /// An opening may or may not find the group.
    fn doubt(&self, error: &Error) -> GroupOutcome {
        let why = reason(error);
        if error.sqlite_error_code() != Some(ErrorCode::DiskFull) {
            self.stop_unconfirmed(&why);
        }
        GroupOutcome::Doubtful(why)
    }

    fn stop_unconfirmed(&self, why: &str) {
        self.shared.health.fail(format!("the disk did not confirm a commit ({why}); restart to recover"));
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

/// The balance that a change inserts or moves.
fn balance_of(change: &Change) -> Option<BalanceKey> {
    match change {
        Change::Move(motion) => Some((motion.tenant, motion.account, motion.shard)),
        Change::Insert(row) => match &**row {
            Row::Balance(balance) => Some((balance.tenant, balance.account, balance.shard)),
            _ => None,
        },
        Change::Replace { .. } | Change::Remove { .. } => None,
    }
}
