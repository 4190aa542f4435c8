//! This process's recent commits by position, which spares the projection reads from the
//! store.
//!
//! A missing position belongs to another process, or to a commit whose success was never reported.
//! The projection reads such commits from the feed.

use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::Time;
use counterfoil_store::{Change, ChangeSet, CommitReceipt, Row};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Commits kept until the projection reaches them: about 10 MiB.
const KEPT_MAX: usize = 65_536;

pub(crate) type Owned = (TenantId, AccountId);

/// The account of each entry that a set adds.
pub(crate) type Posted = Box<[Owned]>;

/// New entries per account. Sorted, so that the same commits give the same projection steps.
pub(crate) type Gained = BTreeMap<Owned, u64>;

/// Commits of this process that the projection has not reached yet.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<BTreeMap<Position, (Time, Posted)>>);

/// Consecutive commits of this process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) last: Option<CommitReceipt>,
    pub(crate) gained: Gained,
    /// Commits of this process behind the next gap.
    pub(crate) behind: usize,
}

/// The accounts of the entries that a set adds.
pub(crate) fn posted(set: &ChangeSet) -> Posted {
    let inserted = set.changes().iter().filter_map(|change| match change {
        Change::Insert(row) => Some(&**row),
        Change::Replace { .. } | Change::Remove { .. } | Change::Move(_) => None,
    });
    inserted.flat_map(entries).collect()
}

/// The accounts of the entries in a row.
pub(crate) fn entries(row: &Row) -> impl Iterator<Item = Owned> {
    let transaction = if let Row::Transaction(transaction) = row { Some(transaction) } else { None };
    transaction.into_iter().flat_map(|transaction| {
        transaction.legs.as_slice().iter().map(|leg| (transaction.tenant, leg.account))
    })
}

/// Adds entries to the counts.
pub(crate) fn count(entries: impl IntoIterator<Item = Owned>, gained: &mut Gained) {
    for owned in entries {
        let entries = gained.entry(owned).or_default();
        *entries = entries.saturating_add(1);
    }
}

impl Recent {
    pub(crate) fn note(&self, receipt: CommitReceipt, posted: Posted) {
        let mut known = self.known();
        if known.len() < KEPT_MAX {
            known.insert(receipt.position, (receipt.at, posted));
        }
    }

    /// Removes and returns the entries of a position, if this process committed it.
    pub(crate) fn take(&self, position: Position) -> Option<Posted> {
        self.known().remove(&position).map(|(_, posted)| posted)
    }

    /// Removes and returns the commits directly after a position, up to the first unknown one.
    /// Commits noted too late, at or before the position, are dropped.
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

    /// A transfer from account 2 to account 3 at each position.
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
    fn a_run_ends_before_a_commit_of_another_process() {
        let recent = noted(&[5, 6, 8]);
        let run = recent.run(Position(4));
        assert_eq!(run, Run { last: Some(receipt(6)), gained: gained(2), behind: 1 });
        assert_eq!(recent.run(Position(6)), Run { behind: 1, ..Run::default() });
        let behind = recent.run(Position(7));
        assert_eq!(behind, Run { last: Some(receipt(8)), gained: gained(1), behind: 0 });
        assert_eq!(recent.run(Position(7)), Run::default(), "a commit is returned once");
    }

    #[test]
    fn commits_before_the_projections_position_are_dropped() {
        let recent = noted(&[3, 4, 5]);
        assert_eq!(recent.run(Position(4)), Run { last: Some(receipt(5)), gained: gained(1), behind: 0 });
        let late = noted(&[3, 9]);
        assert_eq!(late.run(Position(4)), Run { behind: 1, ..Run::default() });
        assert_eq!(late.take(Position(3)), None);
        assert_eq!(late.take(Position(9)).map(|posted| posted.len()), Some(2));
        assert_eq!(late.take(Position(9)), None);
    }

    #[test]
    fn the_number_of_kept_commits_is_bounded() {
        let many = u64::try_from(KEPT_MAX).unwrap_or(u64::MAX);
        let recent = Recent::default();
        for position in 1..=many + 1 {
            recent.note(receipt(position), Posted::default());
        }
        assert_eq!(recent.run(Position::START).last, Some(receipt(many)));
        assert_eq!(recent.run(Position(many)), Run::default(), "the feed has it");
    }
}
