//! The writes of the next flush, and when the batch is large or old enough to be flushed.
//!
//! A row that is inserted and changed before the flush is written once; a row that is inserted and
//! removed is never written. Work of a charge is opened and done within milliseconds, and a hot
//! balance is one row. Rows of the database are changed step by step, as the triggers require.

use crate::tables::Write;
use counterfoil_store::{KeyMap, Row};
use std::sync::Arc;
use std::time::Duration;

/// A flush is due after this many writes in this many groups. Smaller batches write the same pages
/// again and again; larger ones keep a processor busy for longer at a time.
const WRITES_MIN: usize = 20_480;
const GROUPS_MIN: usize = 24;
/// A flush is due after this many bytes of log entries; the log has room for many times as many.
const BYTES_MAX: usize = 4 << 20;
/// A flush is due at this age of the oldest group, or earlier on request.
const AGE_MAX: Duration = Duration::from_millis(250);

/// A group that is durable in the write-ahead log.
#[derive(Debug)]
pub(crate) struct DurableGroup {
    pub(crate) writes: Vec<Write>,
    /// The position of the last set.
    pub(crate) last: u64,
    /// Bytes of the log entry.
    pub(crate) bytes: usize,
    /// The log's segment is full and can be reused only after a flush and a checkpoint.
    pub(crate) fills_a_segment: bool,
}

/// The size of some groups.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupTotals {
    pub(crate) bytes: usize,
    writes: usize,
    groups: usize,
    fills_a_segment: bool,
}

impl GroupTotals {
    pub(crate) fn add(&mut self, group: &DurableGroup) {
        self.bytes = self.bytes.saturating_add(group.bytes);
        self.writes = self.writes.saturating_add(group.writes.len());
        self.groups = self.groups.saturating_add(1);
        self.fills_a_segment |= group.fills_a_segment;
    }

    /// Whether groups of this size are worth a flush.
    pub(crate) fn is_enough(&self) -> bool {
        (self.writes >= WRITES_MIN && self.groups >= GROUPS_MIN)
            || self.bytes > BYTES_MAX
            || self.fills_a_segment
    }
}

/// The folded writes of groups that are not flushed.
#[derive(Debug, Default)]
pub(crate) struct FlushBatch {
    writes: Vec<Option<Write>>,
    /// Indexes in `writes` of rows that can still be folded.
    open: KeyMap<usize>,
    totals: GroupTotals,
    last: u64,
    since: Duration,
}

impl FlushBatch {
    pub(crate) fn add(&mut self, group: DurableGroup, now: Duration) {
        if self.is_empty() {
            self.since = now;
        }
        self.totals.add(&group);
        self.last = group.last;
        for write in group.writes {
            self.fold(write);
        }
    }

    fn fold(&mut self, write: Write) {
        match write {
            Write::Insert(row, origin) => {
                self.track(&row);
                self.writes.push(Some(Write::Insert(row, origin)));
            }
            Write::Replace(row) => self.update(row, Write::Replace),
            Write::Reuse(row, left, partition) => self.update(row, |row| Write::Reuse(row, left, partition)),
            Write::Remove(row) => {
                match self.open.remove(&row.key()).and_then(|place| self.writes.get_mut(place)) {
                    Some(opened) => *opened = None,
                    None => self.writes.push(Some(Write::Remove(row))),
                }
            }
            Write::Commit(..) => self.writes.push(Some(write)),
        }
    }

    /// Replaces the pending version of the row, or appends the write if the database has the row.
    fn update(&mut self, row: Arc<Row>, write: impl FnOnce(Arc<Row>) -> Write) {
        let pending = self.open.get(&row.key()).and_then(|place| self.writes.get_mut(*place));
        if let Some(Some(Write::Insert(pending, _) | Write::Replace(pending))) = pending {
            *pending = row;
            return;
        }
        if matches!(*row, Row::Balance(_)) {
            self.track(&row);
        }
        self.writes.push(Some(write(row)));
    }

    /// Folds later writes of this row into the next appended write.
    fn track(&mut self, row: &Row) {
        let is_final = matches!(
            row,
            Row::Audit(_) | Row::Transaction(_) | Row::Reversal(_) | Row::Name(_) | Row::Asset(_)
        );
        if !is_final {
            self.open.insert(row.key(), self.writes.len());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.totals.groups == 0
    }

    /// The writes, in commit order.
    pub(crate) fn writes(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter().flatten()
    }

    /// The position of the last set.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// An empty batch that reuses the allocated memory.
    pub(crate) fn emptied(self) -> FlushBatch {
        let (mut writes, mut open) = (self.writes, self.open);
        writes.clear();
        open.clear();
        FlushBatch { writes, open, ..FlushBatch::default() }
    }

    /// Whether the batch is large or old enough to be flushed.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.totals.is_enough() || self.remaining(now) == Some(Duration::ZERO)
    }

    /// The time until the batch is due by its age; none if it is empty.
    pub(crate) fn remaining(&self, now: Duration) -> Option<Duration> {
        (!self.is_empty()).then(|| AGE_MAX.saturating_sub(now.saturating_sub(self.since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_index::Partition;
    use crate::tables::Origin;
    use counterfoil_core::types::id::SetId;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::conformance::fixtures::ledger::account;
    use counterfoil_store::{CommitReceipt, Position};

    const BEGUN: Duration = Duration::from_secs(7);
    const RECEIPT: CommitReceipt = CommitReceipt { position: Position(1), at: Time::EPOCH };
    const ORIGIN: Origin = Origin { receipt: RECEIPT, partition: Partition::FIRST };

    fn group(writes: Vec<Write>, bytes: usize) -> DurableGroup {
        DurableGroup { writes, last: 1, bytes, fills_a_segment: false }
    }

    fn batch(groups: usize, writes: usize, bytes: usize) -> FlushBatch {
        let mut batch = FlushBatch::default();
        for _ in 0..groups {
            let writes = (0..writes).map(|_| Write::Commit(RECEIPT, SetId::from_i64(1), Vec::new()));
            batch.add(group(writes.collect(), bytes), BEGUN);
        }
        batch
    }

    #[test]
    fn short_groups_wait_for_writes_and_long_ones_for_groups() {
        assert!(!batch(WRITES_MIN - 1, 1, 0).is_due(BEGUN));
        assert!(batch(WRITES_MIN, 1, 0).is_due(BEGUN));
        assert!(!batch(GROUPS_MIN - 1, 1_000, 0).is_due(BEGUN));
        assert!(batch(GROUPS_MIN, 1_000, 0).is_due(BEGUN));
    }

    #[test]
    fn many_bytes_make_a_batch_due() {
        assert!(!batch(1, 1, BYTES_MAX).is_due(BEGUN));
        assert!(batch(1, 1, BYTES_MAX + 1).is_due(BEGUN));
    }

    #[test]
    fn a_batch_is_due_a_quarter_of_a_second_after_its_first_group() {
        let mut batch = batch(1, 1, 0);
        batch.add(group(Vec::new(), 1), BEGUN + AGE_MAX);
        assert!(!batch.is_due(BEGUN + Duration::from_millis(249)));
        assert!(batch.is_due(BEGUN + AGE_MAX));
        assert!(!FlushBatch::default().is_due(BEGUN + AGE_MAX));
    }

    fn opened(shards: u16) -> Arc<Row> {
        let mut account = account(1);
        account.shards = shards;
        Arc::new(account.into())
    }

    fn folded(writes: Vec<Write>) -> Vec<String> {
        let mut batch = FlushBatch::default();
        batch.add(group(writes, 0), BEGUN);
        batch
            .writes()
            .map(|write| match write {
                Write::Insert(row, _) => format!("insert {:?}", shards(row)),
                Write::Replace(row) => format!("replace {:?}", shards(row)),
                Write::Reuse(..) => "reuse".to_owned(),
                Write::Remove(_) => "remove".to_owned(),
                Write::Commit(..) => "commit".to_owned(),
            })
            .collect()
    }

    fn shards(row: &Row) -> Option<u16> {
        match row {
            Row::Account(account) => Some(account.shards),
            _ => None,
        }
    }

    #[test]
    fn a_new_row_is_written_once_in_its_last_version() {
        let writes =
            vec![Write::Insert(opened(1), ORIGIN), Write::Replace(opened(2)), Write::Replace(opened(3))];
        assert_eq!(folded(writes), ["insert Some(3)"]);
    }

    #[test]
    fn a_row_that_was_inserted_and_removed_is_not_written() {
        let remove = || Write::Remove(opened(1));
        assert!(folded(vec![Write::Insert(opened(1), ORIGIN), remove()]).is_empty());
        let again =
            vec![remove(), Write::Insert(opened(1), ORIGIN), remove(), Write::Insert(opened(2), ORIGIN)];
        assert_eq!(folded(again), ["remove", "insert Some(2)"]);
    }

    #[test]
    fn a_row_that_the_database_has_is_changed_step_by_step() {
        let writes = vec![Write::Replace(opened(1)), Write::Replace(opened(2)), Write::Remove(opened(1))];
        assert_eq!(folded(writes), ["replace Some(1)", "replace Some(2)", "remove"]);
    }
}
