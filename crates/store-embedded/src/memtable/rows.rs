//! The memtable: the newest version of each row that is not flushed yet.

use crate::tables::Write;
use counterfoil_store::{KeyMap, Row, RowKey};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows by key. Reads of single rows find unflushed rows here and never wait for a flush.
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    /// Generations, oldest first. One generation is flushed and dropped as a whole, so the lock is
    /// not held while rows are picked out one by one.
    generations: VecDeque<Generation>,
    /// An empty map whose memory the next generation reuses.
    spare: Rows,
}

type Rows = KeyMap<RowVersion>;

#[derive(Debug)]
struct Generation {
    rows: Rows,
    /// The position of the last set.
    last: u64,
}

/// The newest version of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowVersion {
    Present(Arc<Row>),
    /// A tombstone: the database may still have the row.
    Removed,
}

impl RowVersion {
    pub(crate) fn into_row(self) -> Option<Row> {
        self.shared().map(Arc::unwrap_or_clone)
    }

    pub(crate) fn shared(self) -> Option<Arc<Row>> {
        match self {
            RowVersion::Present(row) => Some(row),
            RowVersion::Removed => None,
        }
    }
}

impl Memtable {
    /// Inserts the writes of a group that ends at `position`.
    pub(crate) fn insert(&mut self, writes: &[Write], position: u64) {
        if self.generations.is_empty() {
            self.start_generation();
        }
        let Some(generation) = self.generations.back_mut() else { return };
        for write in writes {
            let (key, version) = match write {
                Write::Insert(row, _) | Write::Replace(row) | Write::Reuse(row, ..) => {
                    (row.key(), RowVersion::Present(Arc::clone(row)))
                }
                Write::Remove(row) => (row.key(), RowVersion::Removed),
                Write::Commit(..) => continue,
            };
            generation.rows.insert(key, version);
        }
        generation.last = position;
    }

    /// Starts a generation for the groups after the next flush, unless the newest one is empty.
    pub(crate) fn start_generation(&mut self) {
        if self.generations.back().is_none_or(|generation| !generation.rows.is_empty()) {
            let rows = std::mem::take(&mut self.spare);
            self.generations.push_back(Generation { rows, last: 0 });
        }
    }

    /// Drops the generations that end at or before `flushed`. The maps are returned, so that the
    /// caller empties them outside the lock.
    pub(crate) fn drop_flushed(&mut self, flushed: u64) -> Vec<Rows> {
        let is_flushed =
            |generation: &mut Generation| generation.last <= flushed && !generation.rows.is_empty();
        let mut dropped = Vec::new();
        while let Some(generation) = self.generations.pop_front_if(is_flushed) {
            dropped.push(generation.rows);
        }
        dropped
    }

    /// Keeps the memory of an emptied map for the next generation.
    pub(crate) fn recycle(&mut self, rows: Rows) {
        self.spare = rows;
    }

    /// The newest unflushed version of the row; none if the database has the newest.
    pub(crate) fn find(&self, key: &RowKey) -> Option<RowVersion> {
        self.generations.iter().rev().find_map(|generation| generation.rows.get(key)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_index::Partition;
    use crate::tables::Origin;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::conformance::fixtures::ledger::account;
    use counterfoil_store::{CommitReceipt, Position};

    fn opened(id: i64, shards: u16) -> Arc<Row> {
        let mut account = account(id);
        account.shards = shards;
        Arc::new(account.into())
    }

    fn insert(id: i64) -> Write {
        let receipt = CommitReceipt { position: Position(1), at: Time::EPOCH };
        Write::Insert(opened(id, 1), Origin { receipt, partition: Partition::FIRST })
    }

    #[test]
    fn the_newest_version_is_found_and_an_unchanged_row_is_not() {
        let (one, two, three) = (opened(1, 1).key(), opened(2, 1).key(), opened(3, 1).key());
        let mut memtable = Memtable::default();
        memtable.insert(&[insert(1), insert(2)], 4);
        memtable.insert(&[Write::Replace(opened(1, 2)), Write::Remove(opened(2, 1))], 5);
        assert_eq!(memtable.find(&one), Some(RowVersion::Present(opened(1, 2))));
        assert_eq!(memtable.find(&two), Some(RowVersion::Removed), "a tombstone is found");
        assert_eq!(memtable.find(&three), None);
    }

    #[test]
    fn a_row_is_dropped_when_its_last_change_is_flushed_and_not_before() {
        let (one, two) = (opened(1, 1).key(), opened(2, 1).key());
        let mut memtable = Memtable::default();
        memtable.insert(&[insert(1), insert(2)], 4);
        memtable.start_generation();
        memtable.insert(&[Write::Replace(opened(1, 2))], 5);
        let has = |memtable: &Memtable| [&one, &two].map(|key| memtable.find(key).is_some());
        memtable.drop_flushed(3);
        assert_eq!(has(&memtable), [true, true]);
        memtable.drop_flushed(4);
        assert_eq!(has(&memtable), [true, false]);
        assert_eq!(memtable.find(&one), Some(RowVersion::Present(opened(1, 2))));
        memtable.drop_flushed(5);
        assert_eq!(has(&memtable), [false, false]);
    }

    #[test]
    fn rows_of_one_generation_are_dropped_together() {
        let two = opened(2, 1).key();
        let mut memtable = Memtable::default();
        memtable.insert(&[insert(1)], 4);
        memtable.insert(&[insert(2)], 5);
        assert!(memtable.drop_flushed(4).is_empty());
        assert!(memtable.find(&two).is_some());
        assert_eq!(memtable.drop_flushed(5).len(), 1);
        assert!(memtable.find(&two).is_none());
    }

    #[test]
    fn an_empty_generation_is_kept_for_the_next_rows() {
        let mut memtable = Memtable::default();
        (0..3).for_each(|_| memtable.start_generation());
        assert!(memtable.drop_flushed(u64::MAX).is_empty());
        memtable.insert(&[insert(1)], 1);
        assert_eq!(memtable.drop_flushed(1).len(), 1);
    }
}
