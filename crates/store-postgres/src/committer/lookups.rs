//! The rows that a group reads before it is judged.

use super::Job;
use super::memory::{Memory, Remembered};
use crate::tables::TableId;
use counterfoil_store::{Change, KeyMap, KeySet, Row, RowKey};
use std::collections::{BTreeMap, BTreeSet};

/// How a group learns the current rows.
///
/// A group is first tried optimistically. After a conflict the group is tried again with `Locked`,
/// which also reads the inserted rows: the judge needs the conflicting row for the refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadMode {
    /// Rows this process wrote recently are taken from memory, and inserted claims and minted ids
    /// are assumed to be new. The writes verify both: by `xmin`, and by the primary keys.
    Optimistic,
    /// All rows are read. Rows that may change are locked.
    Locked,
}

impl ReadMode {
    /// Whether the row is inserted without reading it first.
    pub(super) fn assumes_new(self, change: &Change) -> bool {
        match self {
            ReadMode::Optimistic => is_claim(change) || has_minted_id(change),
            ReadMode::Locked => false,
        }
    }
}

fn is_claim(change: &Change) -> bool {
    matches!(change, Change::Insert(row) if matches!(&**row, Row::Claim(_)))
}

fn has_minted_id(change: &Change) -> bool {
    matches!(change, Change::Insert(_)) && TableId::of_change(change).is_minted()
}

/// Keys to read, by table and by whether their rows are locked. The order of the map is the lock
/// order of all processes: first by table, then by key within a statement.
#[derive(Default)]
pub(super) struct Lookups(pub(super) BTreeMap<(bool, TableId), Vec<RowKey>>);

impl Lookups {
    /// The keys to read, and the remembered rows used instead.
    ///
    /// Rows that may change are locked. Inserted claims are locked too: a transaction must wait for
    /// a claim of another process before locking other rows. Other inserted rows need no lock. If
    /// the row exists the set is refused; otherwise the primary key guards the insertion.
    pub(super) fn of(group: &[Job], mode: ReadMode, memory: &Memory) -> (Lookups, KeyMap<Remembered>) {
        let (mut locked, mut read) = (KeySet::default(), KeySet::default());
        for change in group.iter().flat_map(|job| job.set.changes()) {
            match change {
                Change::Replace { .. } | Change::Remove { .. } | Change::Move(_) => {
                    locked.insert(change.key());
                }
                // A claim in memory exists, so its set will be refused, and a refusal needs the row
                // itself.
                Change::Insert(_) => {
                    if !mode.assumes_new(change) || (is_claim(change) && memory.contains(&change.key())) {
                        read.insert(change.key());
                    }
                }
            }
        }
        let remembered = (mode == ReadMode::Optimistic).then(|| remembered(group, &locked, memory)).flatten();
        if remembered.is_none() && !locked.is_empty() {
            let changes = group.iter().flat_map(|job| job.set.changes());
            locked.extend(changes.filter(|change| is_claim(change)).map(Change::key));
        }
        let mut all = Lookups::default();
        for key in read.into_iter().filter(|key| !locked.contains(key)) {
            all.add(false, key);
        }
        if remembered.is_none() {
            for key in locked {
                all.add(!TableId::of(&key).is_immutable(), key);
            }
        }
        (all, remembered.unwrap_or_default())
    }

    /// Adds a key; callers never add a key twice.
    pub(super) fn add(&mut self, locked: bool, key: RowKey) {
        self.0.entry((locked, TableId::of(&key))).or_default().push(key);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The rows to change, if all of them are remembered. The writes themselves then lock the rows.
///
/// Everything is read instead if the writes would break the lock order. This is so if a row is not
/// remembered, because a row is locked by reading, or if a table has updates and removals, which
/// are two statements.
fn remembered(group: &[Job], changing: &KeySet, memory: &Memory) -> Option<KeyMap<Remembered>> {
    let (mut updated, mut removed) = (BTreeSet::new(), BTreeSet::new());
    for change in group.iter().flat_map(|job| job.set.changes()) {
        match change {
            Change::Replace { .. } | Change::Move(_) => updated.insert(TableId::of_change(change)),
            Change::Remove { .. } => removed.insert(TableId::of_change(change)),
            Change::Insert(_) => false,
        };
    }
    if updated.is_disjoint(&removed) { memory.recall(changing.iter()) } else { None }
}
