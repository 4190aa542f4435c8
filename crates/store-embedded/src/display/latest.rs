//! The rows that the database does not show yet, as they are.

use crate::tables::Write;
use counterfoil_store::{KeyMap, Row, RowKey};
use std::sync::Arc;

/// What became last of every row that a hidden group changed: readers find it here, so that nobody waits for the database.
#[derive(Debug, Default)]
pub(crate) struct Latest {
    rows: KeyMap<(u64, Now)>,
}

/// How a row is that the database may show as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    There(Arc<Row>),
    Gone,
}

impl Now {
    pub(crate) fn into_row(self) -> Option<Row> {
        match self {
            Now::There(row) => Some(Arc::unwrap_or_clone(row)),
            Now::Gone => None,
        }
    }
}

impl Latest {
    /// Takes the writes of a group whose last position this is.
    pub(super) fn lay(&mut self, writes: &[Write], position: u64) {
        for write in writes {
            let (key, now) = match write {
                Write::Insert(row, _) | Write::Replace(row) | Write::Reuse(row) => {
                    (row.key(), Now::There(Arc::clone(row)))
                }
                Write::Remove(key) => (key.clone(), Now::Gone),
                Write::Commit(..) => continue,
            };
            self.rows.insert(key, (position, now));
        }
    }

    /// The database shows everything up to there. What is forgotten is given back, to be dropped where nobody waits for it.
    pub(super) fn forget(&mut self, shown: u64) -> Vec<Now> {
        let forgotten = self.rows.extract_if(|_, (position, _)| *position <= shown);
        forgotten.map(|(_, (_, now))| now).collect()
    }

    /// How many rows are hidden.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the row has a change that the database may not show.
    pub(crate) fn hides(&self, key: &RowKey) -> bool {
        self.rows.contains_key(key)
    }

    /// How the row is, where the database may be behind.
    pub(super) fn find(&self, key: &RowKey) -> Option<Now> {
        self.rows.get(key).map(|(_, now)| now.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::conformance::fixtures::ledger::account;
    use counterfoil_store::{Position, Receipt};

    fn opened(id: i64, shards: u16) -> Arc<Row> {
        let mut account = account(id);
        account.shards = shards;
        Arc::new(account.into())
    }

    fn insert(id: i64) -> Write {
        Write::Insert(opened(id, 1), Receipt { position: Position(1), at: Time::EPOCH })
    }

    #[test]
    fn what_was_written_last_is_found_and_what_was_never_changed_is_not() {
        let (one, two, three) = (opened(1, 1).key(), opened(2, 1).key(), opened(3, 1).key());
        let mut latest = Latest::default();
        latest.lay(&[insert(1), insert(2)], 4);
        latest.lay(&[Write::Replace(opened(1, 2)), Write::Remove(two.clone())], 5);
        assert_eq!(latest.find(&one), Some(Now::There(opened(1, 2))));
        assert_eq!(latest.find(&two), Some(Now::Gone), "it is known to be gone");
        assert_eq!(latest.find(&three), None);
    }

    #[test]
    fn a_row_is_forgotten_when_its_last_change_is_shown_and_not_before() {
        let (one, two) = (opened(1, 1).key(), opened(2, 1).key());
        let mut latest = Latest::default();
        latest.lay(&[insert(1), insert(2)], 4);
        latest.lay(&[Write::Replace(opened(1, 2))], 5);
        latest.forget(3);
        assert!(latest.hides(&one) && latest.hides(&two));
        latest.forget(4);
        assert!(latest.hides(&one) && !latest.hides(&two));
        latest.forget(5);
        assert!(!latest.hides(&one));
    }
}
