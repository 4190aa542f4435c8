//! The one judge: whether a change set may commit against given rows.
//!
//! It is pure. The in-memory, embedded and PostgreSQL stores call it under their own lock, so their meaning
//! cannot drift; a store that expresses preconditions natively is held to it by the conformance suite.

use crate::change::{Change, ChangeSet, Move};
use crate::port::{CommitRefusal, RefusalReason};
use crate::row::{KeyMap, Row, RowKey};
use counterfoil_core::ledger::balance::{Balance, BalanceRefusal};
use counterfoil_core::types::limits::CHANGES_PER_SET_MAX;
use foldhash::fast::RandomState;
use std::sync::Arc;

/// The rows a group of sets is judged against, with the writes of those already accepted laid over them.
#[derive(Debug, Default)]
pub struct Image {
    rows: KeyMap<Option<Arc<Row>>>,
}

impl Image {
    /// An empty one with room for so many rows.
    pub fn with_room(rows: usize) -> Image {
        Image { rows: KeyMap::with_capacity_and_hasher(rows, RandomState::default()) }
    }

    /// Whether the row (or its absence) is already known.
    pub fn knows(&self, key: &RowKey) -> bool {
        self.rows.contains_key(key)
    }

    /// Brings a row, or the knowledge that there is none.
    pub fn bring(&mut self, key: RowKey, row: Option<impl Into<Arc<Row>>>) {
        self.rows.insert(key, row.map(Into::into));
    }

    /// The row as the next set will find it. What was never brought counts as absent.
    pub fn get(&self, key: &RowKey) -> Option<&Row> {
        self.rows.get(key).and_then(Option::as_deref)
    }

    /// The same, to keep.
    pub fn shared(&self, key: &RowKey) -> Option<Arc<Row>> {
        self.rows.get(key).cloned().flatten()
    }

    /// Judges `set` and, if it may commit, lays its writes over the image for its neighbours.
    pub fn admit(&mut self, set: &ChangeSet) -> Result<(), Box<CommitRefusal>> {
        judge(self, set)?;
        for change in set.changes() {
            let row = match change {
                Change::Insert(row) | Change::Replace { row, .. } => Some(Arc::clone(row)),
                Change::Remove { .. } => None,
                // It was judged a moment ago against the same row.
                Change::Move(motion) => {
                    self.after(motion).ok().map(|balance| Arc::new(Row::Balance(balance)))
                }
            };
            self.rows.insert(change.key(), row);
        }
        Ok(())
    }

    /// The balance after `motion`, as the next set will find it.
    fn after(&self, motion: &Move) -> Result<Balance, BalanceRefusal> {
        let key = RowKey::Balance(motion.tenant, motion.account, motion.shard);
        let found = match self.get(&key) {
            Some(Row::Balance(balance)) => *balance,
            Some(_) | None => Balance::empty(motion.tenant, motion.account, motion.shard, motion.guarded),
        };
        found.moved(motion.delta)
    }

    /// Forgets all rows but those `keep` names, and tells how many are left.
    pub fn keep(&mut self, keep: impl Fn(&RowKey) -> bool) -> usize {
        self.rows.retain(|key, _| keep(key));
        self.rows.len()
    }

    /// Forgets everything; the memory is kept for the next group.
    pub fn clear(&mut self) {
        self.rows.clear();
    }
}

/// Judges `set` against `image`: the first change whose precondition does not hold, or nothing.
pub fn judge(image: &Image, set: &ChangeSet) -> Result<(), Box<CommitRefusal>> {
    let changes = set.changes();
    if let Some(change) = malformed(changes) {
        return Err(Box::new(CommitRefusal { change, reason: RefusalReason::Malformed, found: None }));
    }
    for (index, change) in changes.iter().enumerate() {
        let found = image.get(&change.key());
        let reason = match change {
            Change::Move(motion) => image.after(motion).err().map(|unfit| match unfit {
                BalanceRefusal::Insufficient => RefusalReason::Insufficient,
                BalanceRefusal::CapExceeded => RefusalReason::CapExceeded,
                BalanceRefusal::NotHeld => RefusalReason::NotHeld,
            }),
            Change::Insert(_) | Change::Replace { .. } | Change::Remove { .. } => refuse(change, found),
        };
        if let Some(reason) = reason {
            return Err(Box::new(CommitRefusal { change: index, reason, found: found.cloned() }));
        }
    }
    Ok(())
}

fn malformed(changes: &[Change]) -> Option<usize> {
    if changes.is_empty() || changes.len() > CHANGES_PER_SET_MAX {
        return Some(0);
    }
    let keys: Vec<RowKey> = changes.iter().map(Change::key).collect();
    keys.iter().enumerate().position(|(index, key)| keys.iter().take(index).any(|earlier| earlier == key))
}

fn refuse(change: &Change, found: Option<&Row>) -> Option<RefusalReason> {
    match (change, found) {
        // Money enters a balance only by moving.
        (Change::Insert(row), None) => (!row.may_begin()).then_some(RefusalReason::IllegalMove),
        (Change::Move(_), _) => None,
        (Change::Insert(_), Some(_)) => Some(RefusalReason::Present),
        (Change::Replace { .. } | Change::Remove { .. }, None) => Some(RefusalReason::Absent),
        (Change::Replace { expect, .. } | Change::Remove { expect, .. }, Some(row))
            if row.revision() != *expect =>
        {
            Some(RefusalReason::Stale)
        }
        (Change::Replace { row, .. }, Some(old)) => {
            (!old.may_become(row)).then_some(RefusalReason::IllegalMove)
        }
        (Change::Remove { .. }, Some(old)) => (!old.may_be_removed()).then_some(RefusalReason::IllegalMove),
    }
}
