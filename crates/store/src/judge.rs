//! The judge: the only function for deciding whether a change set may commit.
//!
//! The judge is pure. The in-memory, embedded and PostgreSQL stores call it under their own lock,
//! so the stores cannot disagree. The conformance suite holds a store to the same rules if the
//! store expresses preconditions natively.

use crate::change::{Change, ChangeSet, Move};
use crate::port::{CommitRefusal, RefusalReason};
use crate::row::{KeyMap, Row, RowKey};
use counterfoil_core::ledger::balance::{Balance, BalanceRefusal};
use counterfoil_core::types::limits::CHANGES_PER_SET_MAX;
use foldhash::fast::RandomState;
use std::sync::Arc;

/// The rows that a group of sets is judged against. Every accepted set writes into the image, so
/// later sets of the group see its changes.
#[derive(Debug, Default)]
pub struct Image {
    rows: KeyMap<Option<Arc<Row>>>,
}

impl Image {
    /// An empty image with capacity for that many rows.
    pub fn with_room(rows: usize) -> Image {
        Image { rows: KeyMap::with_capacity_and_hasher(rows, RandomState::default()) }
    }

    /// Whether the image has the row, or knows that the row is absent.
    pub fn knows(&self, key: &RowKey) -> bool {
        self.rows.contains_key(key)
    }

    /// Adds a row to the image, or its absence.
    pub fn bring(&mut self, key: RowKey, row: Option<impl Into<Arc<Row>>>) {
        self.rows.insert(key, row.map(Into::into));
    }

    /// The row as the next set finds it. A row that the image does not know counts as absent.
    pub fn get(&self, key: &RowKey) -> Option<&Row> {
        self.rows.get(key).and_then(Option::as_deref)
    }

    /// Like [`Image::get`], but returns a shared reference to keep.
    pub fn shared(&self, key: &RowKey) -> Option<Arc<Row>> {
        self.rows.get(key).cloned().flatten()
    }

    /// Judges `set`. If the set may commit, the image takes over its writes.
    pub fn admit(&mut self, set: &ChangeSet) -> Result<(), Box<CommitRefusal>> {
        judge(self, set)?;
        for change in set.changes() {
            let row = match change {
                Change::Insert(row) | Change::Replace { row, .. } => Some(Arc::clone(row)),
                Change::Remove { .. } => None,
                // The judge accepted this move against the same balance, so an error cannot occur.
                Change::Move(motion) => {
                    self.balance_after(motion).ok().map(|balance| Arc::new(Row::Balance(balance)))
                }
            };
            self.rows.insert(change.key(), row);
        }
        Ok(())
    }

    /// The balance after `motion`. A shard without a row starts empty.
    fn balance_after(&self, motion: &Move) -> Result<Balance, BalanceRefusal> {
        let key = RowKey::Balance(motion.tenant, motion.account, motion.shard);
        let found = match self.get(&key) {
            Some(Row::Balance(balance)) => *balance,
            Some(_) | None => Balance::empty(motion.tenant, motion.account, motion.shard, motion.guarded),
        };
        found.moved(motion.delta)
    }

    /// Keeps only rows selected by `keep`. Returns the number of rows left.
    pub fn keep(&mut self, keep: impl Fn(&RowKey) -> bool) -> usize {
        self.rows.retain(|key, _| keep(key));
        self.rows.len()
    }

    /// Drops all rows and keeps the allocated memory for the next group.
    pub fn clear(&mut self) {
        self.rows.clear();
    }
}

/// Judges `set` against `image`. The refusal names the first change whose precondition fails.
pub fn judge(image: &Image, set: &ChangeSet) -> Result<(), Box<CommitRefusal>> {
    let changes = set.changes();
    if let Some(change) = first_malformed(changes) {
        return Err(Box::new(CommitRefusal { change, reason: RefusalReason::Malformed, found: None }));
    }
    for (index, change) in changes.iter().enumerate() {
        let found = image.get(&change.key());
        let reason = match change {
            Change::Insert(row) => refuse_insertion(row, found),
            Change::Replace { row, expect } => refuse_replacement(row, *expect, found),
            Change::Remove { expect, .. } => refuse_removal(*expect, found),
            Change::Move(motion) => image.balance_after(motion).err().map(refuse_move),
        };
        if let Some(reason) = reason {
            return Err(Box::new(CommitRefusal { change: index, reason, found: found.cloned() }));
        }
    }
    Ok(())
}

/// The first change at which the set breaks a rule of form: its size, or a row named twice.
fn first_malformed(changes: &[Change]) -> Option<usize> {
    if changes.is_empty() || changes.len() > CHANGES_PER_SET_MAX {
        return Some(0);
    }
    let keys: Vec<RowKey> = changes.iter().map(Change::key).collect();
    keys.iter().enumerate().position(|(index, key)| keys.iter().take(index).any(|earlier| earlier == key))
}

fn refuse_insertion(row: &Row, found: Option<&Row>) -> Option<RefusalReason> {
    match found {
        Some(_) => Some(RefusalReason::Present),
        None => illegal_unless(row.may_be_inserted()),
    }
}

fn refuse_replacement(row: &Row, expect: u64, found: Option<&Row>) -> Option<RefusalReason> {
    match found {
        None => Some(RefusalReason::Absent),
        Some(old) if old.revision() != expect => Some(RefusalReason::Stale),
        Some(old) => illegal_unless(old.may_become(row)),
    }
}

fn refuse_removal(expect: u64, found: Option<&Row>) -> Option<RefusalReason> {
    match found {
        None => Some(RefusalReason::Absent),
        Some(old) if old.revision() != expect => Some(RefusalReason::Stale),
        Some(old) => illegal_unless(old.may_be_removed()),
    }
}

const fn refuse_move(refusal: BalanceRefusal) -> RefusalReason {
    match refusal {
        BalanceRefusal::Insufficient => RefusalReason::Insufficient,
        BalanceRefusal::CapExceeded => RefusalReason::CapExceeded,
        BalanceRefusal::NotHeld => RefusalReason::NotHeld,
    }
}

fn illegal_unless(legal: bool) -> Option<RefusalReason> {
    (!legal).then_some(RefusalReason::IllegalMove)
}
