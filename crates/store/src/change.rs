//! A change of state as a value: what is to be written, and what must be true for it.

use crate::row::{Row, RowKey};
use counterfoil_core::ledger::balance::{Delta, Guarded};
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use std::sync::Arc;

/// One write with its precondition. Rows are shared, not copied: a set may be offered more than once, and a store may
/// keep what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The row must not be there yet.
    Insert(Arc<Row>),
    /// The row must be there with this revision.
    Replace {
        row: Arc<Row>,
        /// The revision it replaces.
        expect: u64,
    },
    /// The row must be there with this revision.
    Remove {
        key: RowKey,
        /// The revision that is removed.
        expect: u64,
    },
    /// The balance moves by a delta and must stay within its bounds. A shard that was never written starts empty.
    Move(Move),
}

/// A guarded change of a balance: never an image of one, so two of them do not stand in each other's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub tenant: TenantId,
    pub account: AccountId,
    pub shard: u8,
    /// Which bounds the account has.
    pub guarded: Guarded,
    pub delta: Delta,
}

impl Change {
    /// The row it is about.
    pub fn key(&self) -> RowKey {
        match self {
            Change::Insert(row) | Change::Replace { row, .. } => row.key(),
            Change::Remove { key, .. } => key.clone(),
            Change::Move(motion) => RowKey::Balance(motion.tenant, motion.account, motion.shard),
        }
    }
}

/// Changes that happen together or not at all. No row stands in it twice. A copy costs nothing: whoever commits keeps one, to
/// try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSet {
    id: SetId,
    changes: Arc<Vec<Change>>,
}

impl ChangeSet {
    /// An empty set under its own id, by which a commit in doubt is resolved.
    pub fn new(id: SetId) -> ChangeSet {
        ChangeSet { id, changes: Arc::new(Vec::with_capacity(8)) }
    }

    /// Adds an insertion: refused if the row is there, and the refusal says what is there.
    pub fn insert(self, row: impl Into<Row>) -> ChangeSet {
        self.with(Change::Insert(Arc::new(row.into())))
    }

    /// Adds a compare-and-swap on the row's revision.
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
