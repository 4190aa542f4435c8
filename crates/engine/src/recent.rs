//! What this process has committed lately, by position: the projection goes on over it without asking the store. Positions
//! that are missing here are somebody else's, or were not told to this process; those are read from the feed.

use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::Time;
use counterfoil_store::{Change, ChangeSet, CommitReceipt, Row};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Commits that are remembered until the projection has come to them: some 10 MiB.
const REMEMBERED_MAX: usize = 65_536;

/// An account, and whose it is.
pub(crate) type Owned = (TenantId, AccountId);

/// An account for each entry that a set adds.
pub(crate) type Posted = Box<[Owned]>;

/// How many entries accounts have gained. In order: the same commits make the projection do the same.
pub(crate) type Gained = BTreeMap<Owned, u64>;

/// The commits of this process that the projection has not come to yet.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<BTreeMap<Position, (Time, Posted)>>);

/// Commits of this process with none of another's between them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// The last of them.
    pub(crate) last: Option<CommitReceipt>,
    pub(crate) gained: Gained,
    /// How many of them stand behind another's.
    pub(crate) behind: usize,
}

/// What a set posts if it is committed.
pub(crate) fn posted(set: &ChangeSet) -> Posted {
    let inserted = set.changes().iter().filter_map(|change| match change {
        Change::Insert(row) => Some(&**row),
        Change::Replace { .. } | Change::Remove { .. } | Change::Move(_) => None,
    });
    inserted.flat_map(entries).collect()
}

/// An account for each entry that comes with a row.
pub(crate) fn entries(row: &Row) -> impl Iterator<Item = Owned> {
    let transaction = if let Row::Transaction(transaction) = row { Some(transaction) } else { None };
    transaction.into_iter().flat_map(|transaction| {
        transaction.legs.as_slice().iter().map(|leg| (transaction.tenant, leg.account))
    })
}

/// Counts them.
pub(crate) fn count(entries: impl IntoIterator<Item = Owned>, gained: &mut Gained) {
    for owned in entries {
        let entries = gained.entry(owned).or_default();
        *entries = entries.saturating_add(1);
    }
}

impl Recent {
    /// A set was committed.
    pub(crate) fn note(&self, receipt: CommitReceipt, posted: Posted) {
        let mut known = self.known();
        if known.len() < REMEMBERED_MAX {
            known.insert(receipt.position, (receipt.at, posted));
        }
    }

    /// What was posted at a position, if it was by this process; once.
    pub(crate) fn take(&self, position: Position) -> Option<Posted> {
        self.known().remove(&position).map(|(_, posted)| posted)
    }

    /// The commits right behind a position, up to the first that is not known here; once. What was noted too late, and lies
    /// before it, is forgotten.
    pub(crate) fn run(&self, after: Position) -> Run {
        let mut known = self.known();
        let mut run = Run::default();
        let mut at = after;
        while let Some(next) = known.first_entry() {
            if *next.key() > following(at) {
                break;
            }
            let (position, (time, posted)) = next.remove_entry();
            if position > after {
                count(posted, &mut run.gained);
                run.last = Some(CommitReceipt { position, at: time });
                at = position;
            }
        }
        run.behind = known.len();
        run
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Position, (Time, Posted)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn following(position: Position) -> Position {
    Position(position.0.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_store::conformance::fixtures::ledger::{account_id, transfer};
    use counterfoil_store::conformance::fixtures::{TENANT, charge, set};

    fn receipt(position: u64) -> CommitReceipt {
        CommitReceipt { position: Position(position), at: Time::from_ms(1_000) }
    }

    /// Notes a transfer from account 2 to account 3 at each of these positions.
    fn noted(positions: &[u64]) -> Recent {
        let recent = Recent::default();
        for position in positions {
            recent.note(receipt(*position), posted(&set(1).insert(transfer(1, 2, 3, 4))));
        }
        recent
    }

    fn gained(entries: u64) -> Gained {
        [2, 3].map(|account| ((TENANT, account_id(account)), entries)).into()
    }

    #[test]
    fn a_set_posts_an_account_for_each_leg() {
        assert_eq!(posted(&set(1).insert(charge(1))).len(), 0);
        let two = posted(&set(1).insert(charge(1)).insert(transfer(1, 2, 3, 4)));
        let mut counted = Gained::new();
        count(two, &mut counted);
        assert_eq!(counted, gained(1));
    }

    #[test]
    fn a_run_ends_where_somebody_else_committed() {
        let recent = noted(&[5, 6, 8]);
        let run = recent.run(Position(4));
        assert_eq!(run, Run { last: Some(receipt(6)), gained: gained(2), behind: 1 });
        assert_eq!(recent.run(Position(6)), Run { behind: 1, ..Run::default() });
        let behind = recent.run(Position(7));
        assert_eq!(behind, Run { last: Some(receipt(8)), gained: gained(1), behind: 0 });
        assert_eq!(recent.run(Position(7)), Run::default(), "counted twice it would be two");
    }

    #[test]
    fn what_the_projection_has_passed_is_not_counted_again() {
        let recent = noted(&[3, 4, 5]);
        assert_eq!(recent.run(Position(4)), Run { last: Some(receipt(5)), gained: gained(1), behind: 0 });
        let late = noted(&[3, 9]);
        assert_eq!(late.run(Position(4)), Run { behind: 1, ..Run::default() });
        assert_eq!(late.take(Position(3)), None);
        assert_eq!(late.take(Position(9)).map(|posted| posted.len()), Some(2));
        assert_eq!(late.take(Position(9)), None);
    }

    #[test]
    fn no_more_is_remembered_than_was_allowed() {
        let many = u64::try_from(REMEMBERED_MAX).unwrap_or(u64::MAX);
        let recent = Recent::default();
        for position in 1..=many + 1 {
            recent.note(receipt(position), Posted::default());
        }
        assert_eq!(recent.run(Position::START).last, Some(receipt(many)));
        assert_eq!(recent.run(Position(many)), Run::default(), "the feed is asked for it");
    }
}
