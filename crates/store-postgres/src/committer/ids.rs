//! Ids of the sets that this process is committing or has recently committed. The store commits an
//! id only once.
//!
//! Set ids are minted: only the minting process knows an id, and it sends a set again within
//! moments or never. This memory therefore stands in for an index over all ids ever committed,
//! without the cost of an index entry per set.

use counterfoil_core::types::id::SetId;
use counterfoil_store::CommitReceipt;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The capacity of one of the two generations: some seconds of commits at full load.
const IDS_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Ids(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    in_progress: HashSet<SetId>,
    young: HashMap<SetId, CommitReceipt>,
    old: HashMap<SetId, CommitReceipt>,
}

/// The known state of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The set is queued or being committed.
    InProgress,
    Committed(CommitReceipt),
}

/// Marks an id as in progress until dropped.
#[derive(Debug)]
pub(crate) struct InProgressId {
    ids: Arc<Ids>,
    id: SetId,
}

impl Ids {
    /// Marks an id as in progress, or returns `None` if it already is. The committer checks later
    /// whether the set is committed, after the judge has admitted it.
    pub(super) fn take(self: &Arc<Ids>, id: SetId) -> Option<InProgressId> {
        self.known().in_progress.insert(id).then(|| InProgressId { ids: Arc::clone(self), id })
    }

    pub(crate) fn standing(&self, id: SetId) -> Option<Standing> {
        self.known().standing(id)
    }

    /// Records a committed set.
    pub(crate) fn committed(&self, id: SetId, receipt: CommitReceipt) {
        let mut known = self.known();
        let Known { young, old, .. } = &mut *known;
        if young.len() >= IDS_MAX {
            // `clear` keeps the allocation, so later inserts do not pay for growth.
            std::mem::swap(young, old);
            young.clear();
        }
        young.insert(id, receipt);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn standing(&self, id: SetId) -> Option<Standing> {
        let committed = self.young.get(&id).or_else(|| self.old.get(&id));
        match committed {
            Some(receipt) => Some(Standing::Committed(*receipt)),
            None => self.in_progress.contains(&id).then_some(Standing::InProgress),
        }
    }
}

impl InProgressId {
    /// Records that the set is committed.
    pub(super) fn committed(&self, receipt: CommitReceipt) {
        self.ids.committed(self.id, receipt);
    }
}

impl Drop for InProgressId {
    fn drop(&mut self) {
        self.ids.known().in_progress.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::Position;

    const ID: SetId = SetId::from_i64(7);

    fn receipt(position: u64) -> CommitReceipt {
        CommitReceipt { position: Position(position), at: Time::from_ms(1) }
    }

    #[test]
    fn an_id_in_progress_is_refused_until_it_is_dropped() {
        let ids = Arc::new(Ids::default());
        let in_progress = ids.take(ID).unwrap();
        assert!(ids.take(ID).is_none());
        assert_eq!(ids.standing(ID), Some(Standing::InProgress));
        drop(in_progress);
        assert_eq!(ids.standing(ID), None);
        assert!(ids.take(ID).is_some());
    }

    #[test]
    fn a_committed_id_is_remembered_for_a_bounded_number_of_commits() {
        let ids = Arc::new(Ids::default());
        ids.take(ID).unwrap().committed(receipt(1));
        let others = |first: i64| {
            for number in (first..).take(IDS_MAX) {
                ids.committed(SetId::from_i64(number), receipt(2));
            }
        };
        others(1_000_000);
        let _again = ids.take(ID).unwrap();
        assert_eq!(ids.standing(ID), Some(Standing::Committed(receipt(1))));
        others(2_000_000);
        assert_eq!(ids.standing(ID), Some(Standing::InProgress), "memory has a bound");
    }
}
