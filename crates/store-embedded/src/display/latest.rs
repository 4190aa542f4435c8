//! The rows that the database does not show yet, as they are.

use crate::tables::Write;
use counterfoil_store::{KeyMap, Row, RowKey};
use std::collections::VecDeque;
use std::sync::Arc;

/// What became last of every row that a hidden group changed: readers find it here, so that nobody waits for the database.
#[derive(Debug, Default)]
pub(crate) struct Latest {
    /// Rows that are shown and forgotten together, oldest first: nobody waits while they are picked out one by one.
    spans: VecDeque<Span>,
    /// Memory for the next one.
    spare: Rows,
}

type Rows = KeyMap<Now>;

#[derive(Debug)]
struct Span {
    rows: Rows,
    /// The position of its last set.
    last: u64,
}

/// How a row is that the database may show as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    There(Arc<Row>),
    Gone,
}

impl Now {
    pub(crate) fn into_row(self) -> Option<Row> {
        self.shared().map(Arc::unwrap_or_clone)
    }

    pub(crate) fn shared(self) -> Option<Arc<Row>> {
        match self {
            Now::There(row) => Some(row),
            Now::Gone => None,
        }
    }
}

impl Latest {
    /// Takes the writes of a group whose last position this is.
    pub(super) fn lay(&mut self, writes: &[Write], position: u64) {
        if self.spans.is_empty() {
            self.turn();
        }
        let Some(span) = self.spans.back_mut() else { return };
        for write in writes {
            let (key, now) = match write {
                Write::Insert(row, _) | Write::Replace(row) | Write::Reuse(row, ..) => {
                    (row.key(), Now::There(Arc::clone(row)))
                }
                Write::Remove(row) => (row.key(), Now::Gone),
                Write::Commit(..) => continue,
            };
            span.rows.insert(key, now);
        }
        span.last = position;
    }

    /// What comes from here on is forgotten later than what was there before.
    pub(super) fn turn(&mut self) {
        if self.spans.back().is_none_or(|span| !span.rows.is_empty()) {
            self.spans.push_back(Span { rows: std::mem::take(&mut self.spare), last: 0 });
        }
    }

    /// The database shows everything up to there. What is forgotten is given out, to be emptied where nobody waits for it.
    pub(super) fn forget(&mut self, shown: u64) -> Vec<Rows> {
        let mut forgotten = Vec::new();
        while let Some(span) = self.spans.pop_front_if(|span| span.last <= shown && !span.rows.is_empty()) {
            forgotten.push(span.rows);
        }
        forgotten
    }

    /// Takes memory back that is empty now.
    pub(super) fn reuse(&mut self, rows: Rows) {
        self.spare = rows;
    }

    /// How the row is, where the database may be behind.
    pub(super) fn find(&self, key: &RowKey) -> Option<Now> {
        self.spans.iter().rev().find_map(|span| span.rows.get(key)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Origin;
    use crate::tables::volumes::Volume;
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
        Write::Insert(opened(id, 1), Origin { receipt, volume: Volume::FIRST })
    }

    #[test]
    fn what_was_written_last_is_found_and_what_was_never_changed_is_not() {
        let (one, two, three) = (opened(1, 1).key(), opened(2, 1).key(), opened(3, 1).key());
        let mut latest = Latest::default();
        latest.lay(&[insert(1), insert(2)], 4);
        latest.lay(&[Write::Replace(opened(1, 2)), Write::Remove(opened(2, 1))], 5);
        assert_eq!(latest.find(&one), Some(Now::There(opened(1, 2))));
        assert_eq!(latest.find(&two), Some(Now::Gone), "it is known to be gone");
        assert_eq!(latest.find(&three), None);
    }

    #[test]
    fn a_row_is_forgotten_when_its_last_change_is_shown_and_not_before() {
        let (one, two) = (opened(1, 1).key(), opened(2, 1).key());
        let mut latest = Latest::default();
        latest.lay(&[insert(1), insert(2)], 4);
        latest.turn();
        latest.lay(&[Write::Replace(opened(1, 2))], 5);
        let hides = |latest: &Latest| [&one, &two].map(|key| latest.find(key).is_some());
        latest.forget(3);
        assert_eq!(hides(&latest), [true, true]);
        latest.forget(4);
        assert_eq!(hides(&latest), [true, false]);
        assert_eq!(latest.find(&one), Some(Now::There(opened(1, 2))));
        latest.forget(5);
        assert_eq!(hides(&latest), [false, false]);
    }

    #[test]
    fn rows_of_one_span_are_forgotten_with_its_last() {
        let two = opened(2, 1).key();
        let mut latest = Latest::default();
        latest.lay(&[insert(1)], 4);
        latest.lay(&[insert(2)], 5);
        assert!(latest.forget(4).is_empty());
        assert!(latest.find(&two).is_some());
        assert_eq!(latest.forget(5).len(), 1);
        assert!(latest.find(&two).is_none());
    }

    /// Turns without rows in between are none: there is one span for what comes.
    #[test]
    fn what_is_empty_stays() {
        let mut latest = Latest::default();
        (0..3).for_each(|_| latest.turn());
        assert!(latest.forget(u64::MAX).is_empty());
        latest.lay(&[insert(1)], 1);
        assert_eq!(latest.forget(1).len(), 1);
    }
}
