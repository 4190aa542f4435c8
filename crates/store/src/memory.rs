//! The reference store: rows in memory under one lock. It defines what a store means and serves tests; it keeps
//! nothing when the process ends. Tests may make it fail in every way the port allows.

use crate::change::{Change, ChangeSet};
use crate::judge::Image;
use crate::port::{CommitError, Committed, Due, Position, ReadError, Receipt, Scan, Store, Tally};
use crate::row::{Row, RowKey};
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::{Span, Time};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a memory store's time comes from.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The in-memory store.
pub struct MemoryStore {
    clock: Clock,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    rows: BTreeMap<RowKey, Row>,
    log: Vec<Committed>,
    sets: HashMap<SetId, Receipt>,
    faults: VecDeque<Fault>,
    down: bool,
    sets_hidden: bool,
    latest: Option<Time>,
}

/// What the next commit does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is written, but the caller is not told.
    DoubtAfter,
    /// It is not written, and the caller is not told.
    DoubtBefore,
    /// Somebody else was in the way.
    Conflict,
    /// Too much is asked.
    Throttle,
    /// It goes through: for faults on a later commit.
    Pass,
}

impl MemoryStore {
    /// An empty store on `clock`.
    pub fn new(clock: Clock) -> MemoryStore {
        MemoryStore { clock, shared: Mutex::default() }
    }

    /// Lines faults up for the commits to come.
    pub fn fail_next(&self, faults: &[Fault]) {
        self.lock().faults.extend(faults);
    }

    /// Cuts the store off, or brings it back.
    pub fn set_down(&self, down: bool) {
        self.lock().down = down;
    }

    /// Makes it impossible to learn which sets were committed, or possible again.
    pub fn hide_sets(&self, hidden: bool) {
        self.lock().sets_hidden = hidden;
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic while the lock was held would have to come from the allocator: the rows are still whole.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readable(&self) -> Result<MutexGuard<'_, Shared>, ReadError> {
        let shared = self.lock();
        if shared.down { Err(ReadError("the memory store was cut off".into())) } else { Ok(shared) }
    }
}

impl Shared {
    fn commit(&mut self, set: &ChangeSet, at: Time) -> Result<Receipt, CommitError> {
        let mut image = Image::default();
        for key in set.changes().iter().map(Change::key) {
            let row = self.rows.get(&key).cloned();
            image.bring(key, row);
        }
        image.admit(set).map_err(CommitError::Refused)?;
        for change in set.changes() {
            match change {
                Change::Insert(row) | Change::Replace { row, .. } => {
                    self.rows.insert(row.key(), Row::clone(row))
                }
                Change::Remove { key, .. } => self.rows.remove(key),
            };
        }
        let position = Position(u64::try_from(self.log.len()).unwrap_or(u64::MAX).saturating_add(1));
        let receipt = Receipt { position, at };
        let touched = set.changes().iter().map(Change::key).collect();
        self.log.push(Committed { receipt, set: set.id(), touched });
        self.sets.insert(set.id(), receipt);
        Ok(receipt)
    }
}

impl Store for MemoryStore {
    fn now(&self) -> Time {
        let mut shared = self.lock();
        let now = (self.clock)().max(shared.latest.unwrap_or(Time::EPOCH));
        shared.latest = Some(now);
        now
    }

    fn secret(&self) -> Masked<[u8; 32]> {
        Masked::new([7; 32])
    }

    fn is_exclusive(&self) -> bool {
        false
    }

    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        let shared = self.readable()?;
        Ok(keys.iter().map(|key| shared.rows.get(key).cloned()).collect())
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        let shared = self.readable()?;
        let rows = shared.rows.values();
        Ok(match scan {
            Scan::ChargesOf { tenant, before, limit } => rows
                .rev()
                .filter(|row| matches!(row, Row::Charge(charge) if charge.tenant == tenant && before.is_none_or(|b| charge.id < b)))
                .take(limit.min(SCAN_MAX))
                .cloned()
                .collect(),
            Scan::Timeline { charge, after, limit } => rows
                .filter(|row| matches!(row, Row::Audit(r) if r.subject == charge && after.is_none_or(|a| r.id > a)))
                .take(limit.min(SCAN_MAX))
                .cloned()
                .collect(),
            Scan::Claims { after, limit } => {
                let mut claims: Vec<Row> = rows
                    .filter(|row| matches!(row, Row::Claim(c) if after.is_none_or(|a| c.subject > a)))
                    .cloned()
                    .collect();
                claims.sort_by_key(|row| if let Row::Claim(claim) = row { Some(claim.subject) } else { None });
                claims.truncate(limit.min(SCAN_MAX));
                claims
            }
            Scan::Charges { after, limit } => rows
                .filter(|row| matches!(row, Row::Charge(c) if after.is_none_or(|a| c.id > a)))
                .take(limit.min(SCAN_MAX))
                .cloned()
                .collect(),
            Scan::Outbox { after, limit } => rows
                .filter(|row| matches!(row, Row::Outbox(o) if after.is_none_or(|a| o.charge > a)))
                .take(limit.min(SCAN_MAX))
                .cloned()
                .collect(),
            Scan::Tenants => rows.filter(|row| matches!(row, Row::Tenant(_))).cloned().collect(),
            Scan::ApiKeys => rows.filter(|row| matches!(row, Row::ApiKey(_))).cloned().collect(),
            Scan::Slots => rows.filter(|row| matches!(row, Row::Slot(_))).cloned().collect(),
        })
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        let shared = self.readable()?;
        let when = |row: &Row| match (due, row) {
            (Due::Outbox, Row::Outbox(outbox)) if outbox.parked.is_none() => Some(outbox.due_at),
            (Due::Claims, Row::Claim(claim)) => claim.sweep_at(),
            _ => None,
        };
        let mut rows: Vec<(Time, Row)> = shared
            .rows
            .values()
            .filter_map(|row| Some((when(row)?, row.clone())))
            .filter(|(at, _)| *at <= now)
            .collect();
        rows.sort_by_key(|(at, _)| *at);
        Ok(rows.into_iter().map(|(_, row)| row).take(limit.min(SCAN_MAX)).collect())
    }

    async fn commit(&self, set: ChangeSet) -> Result<Receipt, CommitError> {
        let mut shared = self.lock();
        let at = (self.clock)().max(shared.latest.unwrap_or(Time::EPOCH));
        shared.latest = Some(at);
        if shared.down {
            return Err(CommitError::Unavailable("the memory store was cut off".into()));
        }
        match shared.faults.pop_front() {
            None | Some(Fault::Pass) => shared.commit(&set, at),
            Some(Fault::DoubtAfter) => {
                shared.commit(&set, at)?;
                Err(CommitError::InDoubt(set.id()))
            }
            Some(Fault::DoubtBefore) => Err(CommitError::InDoubt(set.id())),
            Some(Fault::Conflict) => Err(CommitError::Conflict),
            Some(Fault::Throttle) => Err(CommitError::Throttled),
        }
    }

    async fn committed(&self, id: SetId) -> Result<Option<Receipt>, ReadError> {
        let shared = self.readable()?;
        if shared.sets_hidden {
            return Err(ReadError("the memory store hides its sets".into()));
        }
        Ok(shared.sets.get(&id).copied())
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        let shared = self.readable()?;
        Ok(shared
            .log
            .iter()
            .filter(|entry| entry.receipt.position > after)
            .take(limit.min(SCAN_MAX))
            .cloned()
            .collect())
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        let shared = self.readable()?;
        let mut tally = Tally::default();
        for row in shared.rows.values() {
            let Row::Outbox(outbox) = row else { continue };
            if outbox.parked.is_some() {
                tally.parked = tally.parked.saturating_add(1);
                continue;
            }
            let late = now.since(outbox.due_at);
            tally.pending = tally.pending.saturating_add(1);
            tally.stuck = tally.stuck.saturating_add(u64::from(late > Span::from_ms(60_000)));
            tally.lag_ms = tally.lag_ms.max(late.ms());
        }
        Ok(tally)
    }
}
