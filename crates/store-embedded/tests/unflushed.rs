//! Unflushed commits: the writer knows them, however long a flush takes, and even if the flusher
//! dies.

#![allow(clippy::unwrap_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::conformance::fixtures::ledger::{FLOOR, moving, posted};
use counterfoil_store::conformance::fixtures::set;
use counterfoil_store::{ChangeSet, CommitError, RefusalReason, Row, Store};
use counterfoil_store_embedded::{FaultHook, FaultPoint};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use support::rows::work;
use support::{charge_is_there, one_charge, open, open_with_fault, unavailable};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unflushed_rows_are_known_however_long_the_flush_takes() {
    let dir = tempfile::tempdir().unwrap();
    let (go_on, wait) = channel::<()>();
    let held = Mutex::new(wait);
    let hook: FaultHook = Arc::new(move |point| {
        if point == FaultPoint::Flush {
            let _ = held.lock().unwrap().recv();
        }
        None
    });
    let store = open_with_fault(dir.path(), hook);
    // Dropped before the store, also if the test fails: closing waits for the flusher.
    let go_on = go_on;
    let (first, mut impostor, mut twin) = (work(1, store.now()), work(2, store.now()), work(3, store.now()));
    impostor.claim.subject = first.claim.subject;
    twin.claim.id = first.claim.id;
    twin.claim.tenant = first.claim.tenant;
    store.commit(first.opening(1)).await.unwrap();
    // Three times as many changes as the writer caches.
    for number in 0..520 {
        let moves =
            (0..99).fold(set(1_000 + number), |set, at| set.shift(moving(100 + at, FLOOR, posted(1))));
        store.commit(moves).await.unwrap();
    }
    let made_before = set(5_000).insert(impostor.claim);
    assert!(unavailable(store.commit(made_before).await).contains("another key has made the same"));
    let Err(CommitError::Refused(refusal)) = store.commit(set(5_002).insert(twin.claim)).await else {
        panic!("the key has a record");
    };
    assert_eq!(refusal.found, Some(Row::Claim(first.claim.clone())));
    assert!(matches!(store.commit(first.opening(5_001)).await, Err(CommitError::Refused(_))));
    drop(go_on);
    assert!(charge_is_there(&store, 1).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unflushed_balances_survive_a_trim_of_the_image() {
    let dir = tempfile::tempdir().unwrap();
    let (go_on, wait) = channel::<()>();
    let (held, holds) = (Mutex::new(wait), Arc::new(AtomicBool::new(false)));
    let asked = Arc::clone(&holds);
    let hook: FaultHook = Arc::new(move |point| {
        if point == FaultPoint::Flush && asked.load(Ordering::Relaxed) {
            let _ = held.lock().unwrap().recv();
        }
        None
    });
    let store = open_with_fault(dir.path(), hook);
    let go_on = go_on;
    let fund = |number: i64, first: i64| {
        let moves = (first..first + 99).map(|account| moving(account, FLOOR, posted(1)));
        store.commit(moves.fold(set(1_000 + number), ChangeSet::shift))
    };
    // More balances than survive a trim.
    for number in 0..340 {
        fund(number, 10_000 + number * 99).await.unwrap();
    }
    store.tally(store.now()).await.unwrap();
    holds.store(true, Ordering::Relaxed);
    // The same few accounts again and again, until the image is trimmed.
    for number in 340..540 {
        fund(number, 1_000).await.unwrap();
    }
    store.commit(set(1).shift(moving(1_000, FLOOR, posted(-200)))).await.unwrap();
    let again = store.commit(set(2).shift(moving(1_000, FLOOR, posted(-1)))).await;
    assert!(
        matches!(&again, Err(CommitError::Refused(refusal)) if refusal.reason == RefusalReason::Insufficient)
    );
    drop(go_on);
    store.tally(store.now()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flusher_that_dies_loses_nothing_and_leaves_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let hook: FaultHook = Arc::new(|point| {
        assert!(point != FaultPoint::Flush, "the flusher dies, as this test wants");
        None
    });
    let store = open_with_fault(dir.path(), hook);
    store.commit(one_charge(&store, 1)).await.unwrap();
    for _ in 0..2 {
        let error = store.tally(store.now()).await.unwrap_err();
        assert!(error.0.contains("restart to recover"), "{error:?}");
        assert!(unavailable(store.commit(one_charge(&store, 2)).await).contains("restart to recover"));
    }
    drop(store);
    let store = open(dir.path());
    assert!(charge_is_there(&store, 1).await && !charge_is_there(&store, 2).await);
}
