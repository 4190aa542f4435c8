//! Commits in doubt: the caller gets no result, and the set's id resolves the doubt later.

use super::ask::{balance, commit, refused, row, touched};
use super::fixtures::ledger::{FLOOR, account_id, moving, opened, posted};
use super::fixtures::{TENANT, charge_id, claim, opening, set};
use crate::change::{Change, ChangeSet};
use crate::memory::{MemoryFault, MemoryStore};
use crate::port::{CommitError, RefusalReason, Store};
use crate::row::RowKey;
use counterfoil_core::ledger::balance::Balance;
use std::sync::Arc;

/// A store whose next commit can be made to end in doubt.
pub trait Doubtful {
    /// Makes the next commit return [`CommitError::InDoubt`]. `applied` says whether the set is
    /// written.
    fn doubt_next(&self, applied: bool);
}

impl Doubtful for MemoryStore {
    fn doubt_next(&self, applied: bool) {
        self.fail_next(&[if applied { MemoryFault::DoubtAfter } else { MemoryFault::DoubtBefore }]);
    }
}

async fn doubted<S: Store + Doubtful>(store: &Arc<S>, set: ChangeSet, applied: bool) {
    store.doubt_next(applied);
    let id = set.id();
    assert_eq!(store.commit(set).await, Err(CommitError::InDoubt(id)));
}

pub async fn a_doubtful_commit_that_happened_is_known_by_its_set<S: Store + Doubtful>(store: &Arc<S>) {
    doubted(store, opening(1), true).await;
    let receipt = store.committed(opening(1).id()).await;
    assert!(matches!(receipt, Ok(Some(_))), "{receipt:?}");
    assert_eq!(row(&**store, RowKey::Claim(TENANT, claim(1).id)).await, Some(claim(1).into()));
    // Only the first commit was in doubt.
    commit(&**store, opening(2)).await;
}

pub async fn a_doubtful_commit_that_did_not_happen_may_be_tried_again<S: Store + Doubtful>(store: &Arc<S>) {
    doubted(store, opening(1), false).await;
    assert_eq!(store.committed(opening(1).id()).await, Ok(None));
    assert_eq!(row(&**store, RowKey::Claim(TENANT, claim(1).id)).await, None);
    assert_eq!(row(&**store, RowKey::Charge(TENANT, charge_id(1))).await, None);
    // A retry offers the same set under the same id.
    let receipt = commit(&**store, opening(1)).await;
    assert_eq!(store.committed(opening(1).id()).await, Ok(Some(receipt)));
}

pub async fn a_repeated_doubtful_commit_finds_its_own_row<S: Store + Doubtful>(store: &Arc<S>) {
    doubted(store, opening(1), true).await;
    let receipt = store.committed(opening(1).id()).await;
    let found = refused(&**store, opening(1), RefusalReason::Present).await;
    assert_eq!(found, Some(claim(1).into()));
    assert_eq!(store.committed(opening(1).id()).await, receipt, "a refusal must not move the receipt");
}

pub async fn a_doubtful_commit_is_in_the_feed_once_or_never<S: Store + Doubtful>(store: &Arc<S>) {
    doubted(store, opening(1), true).await;
    doubted(store, opening(2), false).await;
    refused(&**store, opening(1), RefusalReason::Present).await;
    let last = set(3).insert(claim(3));
    commit(&**store, last).await;
    let first: Vec<RowKey> = opening(1).changes().iter().map(Change::key).collect();
    assert_eq!(touched(&**store).await, [first, vec![RowKey::Claim(TENANT, claim(3).id)]]);
}

pub async fn a_doubtful_move_happens_once_or_never<S: Store + Doubtful>(store: &Arc<S>) {
    let credit = |number| set(number).insert(claim(number)).shift(moving(1, FLOOR, posted(5)));
    let there = |posted, revision| Some(Balance { posted, revision, ..opened(1, Some(0), None) });
    doubted(store, credit(1), true).await;
    assert_eq!(refused(&**store, credit(1), RefusalReason::Present).await, Some(claim(1).into()));
    assert_eq!(balance(&**store, account_id(1)).await, there(5, 1));
    doubted(store, credit(2), false).await;
    assert_eq!(balance(&**store, account_id(1)).await, there(5, 1));
    commit(&**store, credit(2)).await;
    assert_eq!(balance(&**store, account_id(1)).await, there(10, 2));
}
