//! Helpers that call a store and fail the case on an answer that the port does not allow there.

use super::fixtures::TENANT;
use crate::change::ChangeSet;
use crate::port::{
    CommitError, CommitReceipt, CommitRefusal, Due, EntryPage, Folded, Position, RefusalReason, Scan, Store,
    Upto,
};
use crate::row::{Row, RowKey};
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::time::Time;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Conflicts in a row after which a case counts the store as stuck.
const CONFLICTS_MAX: usize = 1_000;

/// Commits a set and retries conflicts, as the port asks. Every other error except a refusal fails
/// the case.
pub(super) async fn try_commit<S: Store>(
    store: &S,
    set: ChangeSet,
) -> Result<CommitReceipt, Box<CommitRefusal>> {
    for _ in 0..CONFLICTS_MAX {
        match store.commit(set.clone()).await {
            Ok(receipt) => return Ok(receipt),
            Err(CommitError::Refused(refusal)) => return Err(refusal),
            Err(CommitError::Conflict) => tokio::task::yield_now().await,
            Err(error @ (CommitError::InDoubt(_) | CommitError::Unavailable(_) | CommitError::Throttled)) => {
                panic!("a healthy store answered {error:?} to {set:?}")
            }
        }
    }
    panic!("a conflict that {CONFLICTS_MAX} tries did not resolve: {set:?}")
}

/// Commits a set that must succeed.
pub(super) async fn commit<S: Store>(store: &S, set: ChangeSet) -> CommitReceipt {
    match try_commit(store, set.clone()).await {
        Ok(receipt) => receipt,
        Err(refusal) => panic!("{refusal:?} for {set:?}"),
    }
}

/// Commits a set that must be refused for `reason` at its first change, and returns the row found.
pub(super) async fn refused<S: Store>(store: &S, set: ChangeSet, reason: RefusalReason) -> Option<Row> {
    let refusal = refusal(store, set.clone()).await;
    assert_eq!((refusal.change, refusal.reason), (0, reason), "{set:?}");
    refusal.found
}

/// Commits a set that must be refused.
pub(super) async fn refusal<S: Store>(store: &S, set: ChangeSet) -> CommitRefusal {
    match try_commit(store, set.clone()).await {
        Ok(receipt) => panic!("committed as {receipt:?}, though it must be refused: {set:?}"),
        Err(refusal) => *refusal,
    }
}

/// Commits all sets concurrently. The results keep the order of the sets.
pub(super) async fn together<S: Store>(
    store: &Arc<S>,
    sets: Vec<ChangeSet>,
) -> Vec<Result<CommitReceipt, Box<CommitRefusal>>> {
    let mut running = JoinSet::new();
    for (index, set) in sets.into_iter().enumerate() {
        let store = Arc::clone(store);
        running.spawn(async move { (index, try_commit(&*store, set).await) });
    }
    let mut answers = running.join_all().await;
    answers.sort_unstable_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Commits all sets concurrently; all must succeed.
pub(super) async fn fill<S: Store>(store: &Arc<S>, sets: Vec<ChangeSet>) {
    for answer in together(store, sets).await {
        answer.expect("sets that do not touch each other all commit");
    }
}

pub(super) async fn row<S: Store>(store: &S, key: RowKey) -> Option<Row> {
    let mut rows = rows(store, vec![key]).await;
    assert_eq!(rows.len(), 1, "one answer for one key");
    rows.pop().flatten()
}

pub(super) async fn rows<S: Store>(store: &S, keys: Vec<RowKey>) -> Vec<Option<Row>> {
    store.read(keys).await.expect("a healthy store reads")
}

pub(super) async fn scan<S: Store>(store: &S, scan: Scan) -> Vec<Row> {
    store.scan(scan).await.expect("a healthy store scans")
}

/// The keys of the due rows.
pub(super) async fn due<S: Store>(store: &S, due: Due, now: Time, limit: usize) -> Vec<RowKey> {
    let rows = store.due(due, now, limit).await.expect("a healthy store reports due rows");
    rows.iter().map(Row::key).collect()
}

/// The first shard of an account's balance, if it exists.
pub(super) async fn balance<S: Store>(store: &S, account: AccountId) -> Option<Balance> {
    match row(store, RowKey::Balance(TENANT, account, 0)).await {
        None => None,
        Some(Row::Balance(balance)) => Some(balance),
        Some(other) => panic!("{other:?} is no balance"),
    }
}

pub(super) async fn entries<S: Store>(
    store: &S,
    account: AccountId,
    page: EntryPage,
    limit: usize,
) -> Vec<AccountEntry> {
    store.entries(TENANT, account, page, limit).await.expect("a healthy store reads its journal")
}

/// The sum of an account's entries.
pub(super) async fn fold<S: Store>(store: &S, account: AccountId, after: u64, upto: Upto) -> Folded {
    store.fold(TENANT, account, Position(after), upto).await.expect("a healthy store adds its journal up")
}

/// The touched keys per committed set, in commit order.
pub(super) async fn touched<S: Store>(store: &S) -> Vec<Vec<RowKey>> {
    let feed = store.feed(Position(0), SCAN_MAX).await.expect("a healthy store feeds");
    feed.into_iter().map(|entry| entry.touched).collect()
}
