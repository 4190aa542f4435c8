//! A change of state as a value: the rows to write, and the preconditions under which they may be
//! written.

use crate::row::{Row, RowKey};
use counterfoil_core::ledger::balance::{Delta, Guarded};
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use std::sync::Arc;

/// A write and its precondition. Rows are shared instead of copied, because a caller may offer a
/// set again and a store may keep the rows it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The row must not exist.
    Insert(Arc<Row>),
    /// The row must exist with the revision `expect`.
    Replace { row: Arc<Row>, expect: u64 },
    /// The row must exist with the revision `expect`.
    Remove { key: RowKey, expect: u64 },
    /// The balance changes by a delta and must stay within its bounds. A shard without a row starts
    /// empty.
    Move(Move),
}

/// A guarded change of a balance. A move carries a delta and no resulting balance, so concurrent
/// moves of one balance do not conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub tenant: TenantId,
    pub account: AccountId,
    pub shard: u8,
    /// The bounds that the account has.
    pub guarded: Guarded,
    pub delta: Delta,
}

impl Change {
    /// The key of the changed row.
    pub fn key(&self) -> RowKey {
        match self {
            Change::Insert(row) | Change::Replace { row, .. } => row.key(),
            Change::Remove { key, .. } => key.clone(),
            Change::Move(motion) => RowKey::Balance(motion.tenant, motion.account, motion.shard),
        }
    }
}

/// Changes that happen together or not at all. A set names each row at most once. Cloning is cheap,
/// so a caller can keep a copy for a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSet {
    id: SetId,
    changes: Arc<Vec<Change>>,
}

impl ChangeSet {
    /// An empty set. The id resolves a commit in doubt.
    pub fn new(id: SetId) -> ChangeSet {
        ChangeSet { id, changes: Arc::new(Vec::with_capacity(8)) }
    }

    /// Adds an insertion. A store refuses the set if the row exists, and returns the row it found.
    pub fn insert(self, row: impl Into<Row>) -> ChangeSet {
        self.with(Change::Insert(Arc::new(row.into())))
    }

    /// Adds a replacement: a compare-and-swap on the row's revision.
    pub fn replace(self, row: impl Into<Row>, expect: u64) -> ChangeSet {
        self.with(Change::Replace { row: Arc::new(row.into()), expect })
    }

    pub fn remove(self, key: RowKey, expect: u64) -> ChangeSet {
        self.with(Change::Remove { key, expect })
    }

    /// Adds a guarded change of a balance.
    pub fn shift(self, motion: Move) -> ChangeSet {
        self.with(Change::Move(motion))
    }

    pub fn with(mut self, change: Change) -> ChangeSet {
        Arc::make_mut(&mut self.changes).push(change);
        self
    }

    pub fn id(&self) -> SetId {
        self.id
    }

    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}
