//! The reference store against the conformance suite, and its promises beyond the suite.

use counterfoil_core::types::time::Time;
use counterfoil_store::conformance::fixtures::ledger::account_id;
use counterfoil_store::conformance::fixtures::{NOW, TENANT, at, claim, claim_id, opening};
use counterfoil_store::memory::{MemoryFault, MemoryStore};
use counterfoil_store::{CommitError, Due, EntryPage, Position, RowKey, Scan, Store, Upto};
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A store whose clock advances one millisecond with every read.
fn fresh() -> Ready<(Arc<MemoryStore>, ())> {
    let ms = AtomicI64::new(NOW.ms());
    let clock = move || Time::from_ms(ms.fetch_add(1, Ordering::SeqCst));
    ready((Arc::new(MemoryStore::new(Arc::new(clock))), ()))
}

counterfoil_store::conformance_suite!(fresh);
counterfoil_store::conformance_in_doubt!(fresh);

#[test]
fn a_clock_set_back_does_not_move_the_store() {
    let wall = Arc::new(AtomicI64::new(at(500).ms()));
    let clock = Arc::clone(&wall);
    let store = MemoryStore::new(Arc::new(move || Time::from_ms(clock.load(Ordering::SeqCst))));
    assert_eq!(store.now(), at(500));
    wall.store(at(100).ms(), Ordering::SeqCst);
    assert_eq!(store.now(), at(500));
    wall.store(at(501).ms(), Ordering::SeqCst);
    assert_eq!(store.now(), at(501));
}

#[tokio::test]
async fn faults_occur_in_the_order_they_were_queued() {
    let (store, ()) = fresh().await;
    store.fail_next(&[
        MemoryFault::Pass,
        MemoryFault::Conflict,
        MemoryFault::Throttle,
        MemoryFault::DoubtBefore,
    ]);
    assert!(store.commit(opening(1)).await.is_ok());
    assert_eq!(store.commit(opening(2)).await, Err(CommitError::Conflict));
    assert_eq!(store.commit(opening(2)).await, Err(CommitError::Throttled));
    let id = opening(2).id();
    assert_eq!(store.commit(opening(2)).await, Err(CommitError::InDoubt(id)));
    assert_eq!(store.feed(Position(0), 10).await.unwrap().len(), 1, "only the first was written");
    assert!(store.commit(opening(2)).await.is_ok());
}

#[tokio::test]
async fn an_unavailable_store_answers_nothing_and_loses_nothing() {
    let (store, ()) = fresh().await;
    store.commit(opening(1)).await.unwrap();
    store.set_down(true);
    assert!(matches!(store.commit(opening(2)).await, Err(CommitError::Unavailable(_))));
    assert!(store.read(Vec::new()).await.is_err());
    assert!(store.scan(Scan::Tenants).await.is_err());
    assert!(store.due(Due::Outbox, Time::MAX, 1).await.is_err());
    assert!(store.feed(Position(0), 1).await.is_err());
    assert!(store.committed(opening(1).id()).await.is_err());
    assert!(store.tally(at(0)).await.is_err());
    assert!(store.entries(TENANT, account_id(1), EntryPage::Before(None), 1).await.is_err());
    assert!(store.fold(TENANT, account_id(1), Position::START, Upto::Now).await.is_err());
    store.set_down(false);
    assert_eq!(store.read(vec![RowKey::Claim(TENANT, claim_id(1))]).await.unwrap(), [Some(claim(1).into())]);
    assert!(store.commit(opening(2)).await.is_ok());
}
