//! Rows of one read are one snapshot, flushed or not.

#![allow(clippy::unwrap_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::conformance::fixtures::ledger::{FLOOR, account_id, moving, posted};
use counterfoil_store::conformance::fixtures::{TENANT, set};
use counterfoil_store::{Position, Row, RowKey, Store};
use counterfoil_store_embedded::EmbeddedStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::open;

const ACCOUNTS: i64 = 12;
const ROUNDS: i64 = 300;

/// The balances of all accounts, in one read.
async fn amounts(store: &EmbeddedStore) -> Vec<i64> {
    let keys = (1..=ACCOUNTS).map(|number| RowKey::Balance(TENANT, account_id(number), 0)).collect();
    let amount = |row: Option<Row>| match row {
        Some(Row::Balance(balance)) => balance.posted,
        _ => 0,
    };
    store.read(keys).await.unwrap().into_iter().map(amount).collect()
}

/// Reads until `ends` is set, and flushes in between if wanted. Returns the reads that were no
/// snapshot.
async fn reads(store: Arc<EmbeddedStore>, ends: Arc<AtomicBool>, flushes: bool) -> Vec<Vec<i64>> {
    let mut torn = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        let seen = amounts(&store).await;
        let (first, last) = (seen.first().copied().unwrap(), seen.last().copied().unwrap());
        if !seen.is_sorted_by(|before, after| before >= after) || first - last > 1 {
            torn.push(seen);
        }
        if flushes {
            store.feed(Position(0), 1).await.unwrap();
        }
        tokio::task::yield_now().await;
    }
    torn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn one_read_never_sees_rows_in_another_order_than_they_changed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    let ends = Arc::new(AtomicBool::new(false));
    let readers =
        [true, false].map(|flushes| tokio::spawn(reads(Arc::clone(&store), Arc::clone(&ends), flushes)));
    for round in 0..ROUNDS {
        for number in 1..=ACCOUNTS {
            let motion = moving(number, FLOOR, posted(1));
            store.commit(set(round * ACCOUNTS + number).shift(motion)).await.unwrap();
        }
    }
    ends.store(true, Ordering::Relaxed);
    for reader in readers {
        let torn = reader.await.unwrap();
        assert!(torn.is_empty(), "{} torn, first {:?}", torn.len(), torn.first());
    }
    assert_eq!(amounts(&store).await, vec![ROUNDS; 12]);
}
