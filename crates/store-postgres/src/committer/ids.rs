//! Ids of the sets that this process has in hand or has just committed: the store takes one only once.
//!
//! Sets have minted ids, which only the process knows that minted them, and it sends a set again within moments or not at all. So what
//! is remembered here is what an index over all ids ever committed would tell, without an entry in it for each set.

use counterfoil_core::types::id::SetId;
use counterfoil_store::CommitReceipt;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ids of one generation; there are two. Seconds of the most that a process commits.
const IDS_MAX: usize = 65_536;

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct Ids(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    in_hand: HashSet<SetId>,
    young: HashMap<SetId, CommitReceipt>,
    old: HashMap<SetId, CommitReceipt>,
}

/// What became of a set so far, if anything is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It waits, or a committer is at it.
    InHand,
    Committed(CommitReceipt),
}

/// An id in hand, until this is dropped.
#[derive(Debug)]
pub(crate) struct InHand {
    ids: Arc<Ids>,
    id: SetId,
}

impl Ids {
    /// Takes the id in hand, unless it is. Whether its set is committed is asked when nothing in the set itself speaks against it.
    pub(super) fn take(self: &Arc<Ids>, id: SetId) -> Option<InHand> {
        self.known().in_hand.insert(id).then(|| InHand { ids: Arc::clone(self), id })
    }

    pub(crate) fn standing(&self, id: SetId) -> Option<Standing> {
        self.known().standing(id)
    }

    /// The set is known to be committed.
    pub(crate) fn committed(&self, id: SetId, receipt: CommitReceipt) {
        let mut known = self.known();
        let Known { young, old, .. } = &mut *known;
        if young.len() >= IDS_MAX {
            // Emptied, not given back: nobody waits while it grows again.
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
            None => self.in_hand.contains(&id).then_some(Standing::InHand),
        }
    }
}

impl InHand {
    /// Its set is committed.
    pub(super) fn committed(&self, receipt: CommitReceipt) {
        self.ids.committed(self.id, receipt);
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.ids.known().in_hand.remove(&self.id);
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
    fn an_id_in_hand_is_not_taken_again_until_it_is_let_go() {
        let ids = Arc::new(Ids::default());
        let in_hand = ids.take(ID).unwrap();
        assert!(ids.take(ID).is_none());
        assert_eq!(ids.standing(ID), Some(Standing::InHand));
        drop(in_hand);
        assert_eq!(ids.standing(ID), None);
        assert!(ids.take(ID).is_some());
    }

    #[test]
    fn a_committed_set_is_known_for_as_long_as_it_may_come_again() {
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
        assert_eq!(ids.standing(ID), Some(Standing::InHand), "memory has a bound");
    }
}
