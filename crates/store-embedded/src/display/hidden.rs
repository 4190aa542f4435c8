//! What is durable and not yet in the database, and when that is enough for it to be executed.
//!
//! Rows that come, change and go in the meantime are written once or never: a charge's work is opened and done within
//! milliseconds, and a balance that every transfer moves is one row. What the database had before is changed step by step,
//! as its rules ask for.

use crate::tables::Write;
use counterfoil_store::{KeyMap, Row};
use std::sync::Arc;
use std::time::Duration;

/// Writes and groups after which the database commits. Fewer would write the same pages again and again, and rows that are about
/// to change; more would keep a processor busy for longer at a time. What comes in long groups bears a longer wait now and
/// then, for fewer of them.
const WRITES_MIN: usize = 20_480;
const GROUPS_MIN: usize = 24;
/// Bytes of scripts after which it does in any case: the redo log has room for many times as many.
const BYTES_MAX: usize = 4 << 20;
/// How long the database may be behind under load. Who reads asks for more.
const FOR_MAX: Duration = Duration::from_millis(250);

/// A group that is durable.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) writes: Vec<Write>,
    /// The position of its last set.
    pub(crate) last: u64,
    /// Bytes of its script.
    pub(crate) bytes: usize,
    /// A segment of the redo log is full and waits to be used again.
    pub(crate) fills_a_segment: bool,
}

/// How much was handed over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    pub(super) bytes: usize,
    writes: usize,
    groups: usize,
    fills_a_segment: bool,
}

impl Amount {
    pub(super) fn add(&mut self, group: &Group) {
        self.bytes = self.bytes.saturating_add(group.bytes);
        self.writes = self.writes.saturating_add(group.writes.len());
        self.groups = self.groups.saturating_add(1);
        self.fills_a_segment |= group.fills_a_segment;
    }

    /// Whether the database should show so much, although nobody asks.
    pub(super) fn is_enough(&self) -> bool {
        (self.writes >= WRITES_MIN && self.groups >= GROUPS_MIN)
            || self.bytes > BYTES_MAX
            || self.fills_a_segment
    }
}

/// Groups that are durable and that the database does not show.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    writes: Vec<Option<Write>>,
    /// Where rows stand that can still change before they are written.
    open: KeyMap<usize>,
    amount: Amount,
    last: u64,
    since: Duration,
}

impl Hidden {
    pub(super) fn add(&mut self, group: Group, now: Duration) {
        if self.is_empty() {
            self.since = now;
        }
        self.amount.add(&group);
        self.last = group.last;
        for write in group.writes {
            self.fold(write);
        }
    }

    fn fold(&mut self, write: Write) {
        match write {
            Write::Insert(row, origin) => {
                self.note(&row);
                self.writes.push(Some(Write::Insert(row, origin)));
            }
            Write::Replace(row) => self.renew(row, Write::Replace),
            Write::Reuse(row, left, volume) => self.renew(row, |row| Write::Reuse(row, left, volume)),
            Write::Remove(row) => {
                match self.open.remove(&row.key()).and_then(|place| self.writes.get_mut(place)) {
                    Some(opened) => *opened = None,
                    None => self.writes.push(Some(Write::Remove(row))),
                }
            }
            Write::Commit(..) => self.writes.push(Some(write)),
        }
    }

    /// A row takes the place of the one that waits to be written, or is written after what the database has.
    fn renew(&mut self, row: Arc<Row>, write: impl FnOnce(Arc<Row>) -> Write) {
        let waiting = self.open.get(&row.key()).and_then(|place| self.writes.get_mut(*place));
        if let Some(Some(Write::Insert(waiting, _) | Write::Replace(waiting))) = waiting {
            *waiting = row;
            return;
        }
        if matches!(*row, Row::Balance(_)) {
            self.note(&row);
        }
        self.writes.push(Some(write(row)));
    }

    /// The next write is one that a later one may change.
    fn note(&mut self, row: &Row) {
        let is_final = matches!(
            row,
            Row::Audit(_) | Row::Transaction(_) | Row::Reversal(_) | Row::Name(_) | Row::Asset(_)
        );
        if !is_final {
            self.open.insert(row.key(), self.writes.len());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.amount.groups == 0
    }

    /// What is to be written, in order.
    pub(super) fn writes(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter().flatten()
    }

    /// The position of the last set.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Its memory, without what is in it.
    pub(super) fn emptied(self) -> Hidden {
        let (mut writes, mut open) = (self.writes, self.open);
        writes.clear();
        open.clear();
        Hidden { writes, open, ..Hidden::default() }
    }

    /// Whether the database should show them, although nobody asks.
    pub(super) fn is_enough(&self, now: Duration) -> bool {
        self.amount.is_enough() || self.patience(now) == Some(Duration::ZERO)
    }

    /// How long they may stay hidden, if there are any.
    pub(super) fn patience(&self, now: Duration) -> Option<Duration> {
        (!self.is_empty()).then(|| FOR_MAX.saturating_sub(now.saturating_sub(self.since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Origin;
    use crate::tables::volumes::Volume;
    use counterfoil_core::types::id::SetId;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::conformance::fixtures::ledger::account;
    use counterfoil_store::{CommitReceipt, Position};

    const BEGUN: Duration = Duration::from_secs(7);
    const RECEIPT: CommitReceipt = CommitReceipt { position: Position(1), at: Time::EPOCH };
    const ORIGIN: Origin = Origin { receipt: RECEIPT, volume: Volume::FIRST };

    fn group(writes: Vec<Write>, bytes: usize) -> Group {
        Group { writes, last: 1, bytes, fills_a_segment: false }
    }

    fn hidden(groups: usize, writes: usize, bytes: usize) -> Hidden {
        let mut hidden = Hidden::default();
        for _ in 0..groups {
            let writes = (0..writes).map(|_| Write::Commit(RECEIPT, SetId::from_i64(1), Vec::new()));
            hidden.add(group(writes.collect(), bytes), BEGUN);
        }
        hidden
    }

    #[test]
    fn short_groups_wait_for_writes_and_long_ones_for_groups() {
        assert!(!hidden(WRITES_MIN - 1, 1, 0).is_enough(BEGUN));
        assert!(hidden(WRITES_MIN, 1, 0).is_enough(BEGUN));
        assert!(!hidden(GROUPS_MIN - 1, 1_000, 0).is_enough(BEGUN));
        assert!(hidden(GROUPS_MIN, 1_000, 0).is_enough(BEGUN));
    }

    #[test]
    fn many_bytes_are_enough() {
        assert!(!hidden(1, 1, BYTES_MAX).is_enough(BEGUN));
        assert!(hidden(1, 1, BYTES_MAX + 1).is_enough(BEGUN));
    }

    #[test]
    fn a_quarter_of_a_second_after_the_first_is_enough_if_there_is_any() {
        let mut hidden = hidden(1, 1, 0);
        hidden.add(group(Vec::new(), 1), BEGUN + FOR_MAX);
        assert!(!hidden.is_enough(BEGUN + Duration::from_millis(249)));
        assert!(hidden.is_enough(BEGUN + FOR_MAX));
        assert!(!Hidden::default().is_enough(BEGUN + FOR_MAX));
    }

    fn opened(shards: u16) -> Arc<Row> {
        let mut account = account(1);
        account.shards = shards;
        Arc::new(account.into())
    }

    fn shown(writes: Vec<Write>) -> Vec<String> {
        let mut hidden = Hidden::default();
        hidden.add(group(writes, 0), BEGUN);
        hidden
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
    fn what_is_new_is_written_as_it_ended() {
        let writes =
            vec![Write::Insert(opened(1), ORIGIN), Write::Replace(opened(2)), Write::Replace(opened(3))];
        assert_eq!(shown(writes), ["insert Some(3)"]);
    }

    #[test]
    fn what_came_and_went_is_not_written_and_may_come_again() {
        let gone = || Write::Remove(opened(1));
        assert!(shown(vec![Write::Insert(opened(1), ORIGIN), gone()]).is_empty());
        let again = vec![gone(), Write::Insert(opened(1), ORIGIN), gone(), Write::Insert(opened(2), ORIGIN)];
        assert_eq!(shown(again), ["remove", "insert Some(2)"]);
    }

    #[test]
    fn what_the_database_has_is_changed_step_by_step() {
        let writes = vec![Write::Replace(opened(1)), Write::Replace(opened(2)), Write::Remove(opened(1))];
        assert_eq!(shown(writes), ["replace Some(1)", "replace Some(2)", "remove"]);
    }
}
