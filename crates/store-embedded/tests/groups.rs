//! Groups: a refused set leaves its neighbours alone, a full queue throttles, and every failure has
//! its own answer.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::types::id::{ChargeId, SetId, TenantId};
use counterfoil_core::types::limits::COMMIT_QUEUE_MAX;
use counterfoil_store::conformance::fixtures::ledger::{FLOOR, account_id, moving, posted, transfer};
use counterfoil_store::conformance::fixtures::{TENANT, set};
use counterfoil_store::{
    ChangeSet, CommitError, EntryPage, Position, RefusalReason, Row, RowKey, Store, Upto,
};
use counterfoil_store_embedded::{EmbeddedStore, Fault, FaultHook, FaultPoint, Options};
use std::sync::{Arc, Mutex};
use support::rows::work;
use support::{
    Commit, charge_is_there, claim_of, enqueue, gate, one_charge, open, open_with_fault, unavailable,
};

/// A hook that injects the given faults at `point`, one after the other.
fn faults<const N: usize>(point: FaultPoint, faults: [Option<Fault>; N]) -> FaultHook {
    let left = Mutex::new(faults.into_iter());
    Arc::new(move |at| if at == point { left.lock().unwrap().next().flatten() } else { None })
}

#[tokio::test]
async fn one_group_has_one_order_and_every_set_its_own_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (gate, hook) = gate();
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&sizes);
    let options = Options {
        fault: Some(hook),
        observe: Some(Arc::new(move |sets, _| told.lock().unwrap().push(sets))),
        ..Options::default()
    };
    let store = EmbeddedStore::open(dir.path(), options).unwrap();
    let now = store.now();
    let (first, second) = (work(1, now), work(2, now));
    let mut twin = first.clone();
    twin.charge.id = second.charge.id;
    let mut commits: Vec<Commit> = vec![Box::pin(store.commit(one_charge(&store, 100)))];
    enqueue(&mut commits).await;
    gate.reached.recv().unwrap();
    // These sets wait while the writer is at its first group, so they form the second group.
    commits.push(Box::pin(store.commit(first.opening(1))));
    commits.push(Box::pin(store.commit(twin.opening(2))));
    commits.push(Box::pin(store.commit(first.settling(3, now, bytes::Bytes::from_static(b"{}")))));
    commits.push(Box::pin(store.commit(one_charge(&store, 101))));
    let pending = enqueue(&mut commits[1..]).await;
    assert!(pending.iter().all(std::task::Poll::is_pending));
    gate.go_on.send(()).unwrap();

    let mut answers = Vec::new();
    for commit in commits {
        answers.push(commit.await);
    }
    let positions: Vec<Option<Position>> =
        answers.iter().map(|answer| answer.as_ref().ok().map(|receipt| receipt.position)).collect();
    assert_eq!(positions, [Some(Position(1)), Some(Position(2)), None, Some(Position(3)), Some(Position(4))]);
    let Err(CommitError::Refused(refusal)) = &answers[2] else { panic!("{answers:?}") };
    assert_eq!((refusal.change, refusal.reason), (0, RefusalReason::Present));
    assert_eq!(refusal.found, Some(first.claim.clone().into()));
    assert_eq!(*sizes.lock().unwrap(), [1, 3]);
}

#[tokio::test]
async fn a_set_the_tables_refuse_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (gate, hook) = gate();
    let store = open_with_fault(dir.path(), hook);
    let now = store.now();
    let (first, second) = (work(1, now), work(2, now));
    // Two keys with the same charge: no correct caller does this, and the judge does not see it.
    let mut impostor = second.claim.clone();
    impostor.subject = first.claim.subject;
    let mut commits: Vec<Commit> = vec![Box::pin(store.commit(one_charge(&store, 100)))];
    enqueue(&mut commits).await;
    gate.reached.recv().unwrap();
    commits.push(Box::pin(store.commit(first.opening(1))));
    commits.push(Box::pin(store.commit(ChangeSet::new(SetId::from_i64(2)).insert(impostor))));
    commits.push(Box::pin(store.commit(second.opening(3))));
    enqueue(&mut commits[1..]).await;
    gate.go_on.send(()).unwrap();
    let mut answers = Vec::new();
    for commit in commits {
        answers.push(commit.await);
    }
    assert!(unavailable(answers.remove(2)).contains("refused the set"));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(claim_of(&store, second.claim.id).await, Some(second.claim));
}

#[tokio::test]
async fn two_claims_of_one_set_with_the_same_subject_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let (first, mut second) = (work(1, store.now()), work(2, store.now()));
    second.claim.subject = first.claim.subject;
    let twins = set(1).insert(first.claim.clone()).insert(second.claim);
    assert!(unavailable(store.commit(twins).await).contains("another key has made the same"));
    store.commit(first.opening(2)).await.unwrap();
}

#[tokio::test]
async fn an_id_of_another_tenant_is_not_assigned_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let first = work(7, store.now());
    let mut stranger = work(7, store.now()).charge;
    stranger.tenant = TenantId::from_i64(99);
    store.commit(first.opening(1)).await.unwrap();
    for (number, shows) in [(2, false), (3, true)] {
        if shows {
            assert!(charge_is_there(&store, 7).await);
        }
        let why = unavailable(store.commit(set(number).insert(stranger.clone())).await);
        assert!(why.contains("another tenant's"), "{why}");
    }
    drop(store);
    let store = open(dir.path());
    assert!(unavailable(store.commit(set(4).insert(stranger)).await).contains("another tenant's"));
    assert!(charge_is_there(&store, 7).await);
}

#[tokio::test]
async fn a_set_id_is_not_committed_twice() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.commit(one_charge(&store, 7)).await.unwrap();
    let again = set(7).insert(work(8, store.now()).charge);
    assert!(unavailable(store.commit(again.clone()).await).contains("was committed before"));
    drop(store);
    let store = open(dir.path());
    assert!(unavailable(store.commit(again).await).contains("was committed before"));
}

#[tokio::test]
async fn a_full_queue_throttles_and_nothing_that_waits_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (gate, hook) = gate();
    let store = open_with_fault(dir.path(), hook);
    let mut commits: Vec<Commit> = vec![Box::pin(store.commit(one_charge(&store, 1)))];
    enqueue(&mut commits).await;
    gate.reached.recv().unwrap();
    let fill = i64::try_from(COMMIT_QUEUE_MAX).unwrap();
    commits.extend(
        (2..=fill + 1).map(|number| -> Commit { Box::pin(store.commit(one_charge(&store, number))) }),
    );
    enqueue(&mut commits[1..]).await;
    assert_eq!(store.commit(one_charge(&store, fill + 2)).await, Err(CommitError::Throttled));
    gate.go_on.send(()).unwrap();
    for commit in commits {
        commit.await.unwrap();
    }
    assert!(charge_is_there(&store, fill + 1).await);
    assert!(!charge_is_there(&store, fill + 2).await);
}

#[tokio::test]
async fn a_full_disk_fails_the_group_and_writing_goes_on_when_there_is_space() {
    let dir = tempfile::tempdir().unwrap();
    let hook = faults(FaultPoint::Judge, [None, Some(Fault::DiskFull), Some(Fault::DiskFull)]);
    let store = open_with_fault(dir.path(), hook);
    store.commit(one_charge(&store, 1)).await.unwrap();
    for _ in 0..2 {
        let why = unavailable(store.commit(one_charge(&store, 2)).await);
        assert!(why.contains("no space left"), "{why}");
        assert!(!charge_is_there(&store, 2).await);
    }
    assert_eq!(store.commit(one_charge(&store, 2)).await.unwrap().position, Position(2));
    assert!(charge_is_there(&store, 1).await && charge_is_there(&store, 2).await);
}

#[tokio::test]
async fn an_exhausted_quota_refuses_sets_until_it_is_raised() {
    let dir = tempfile::tempdir().unwrap();
    let store =
        EmbeddedStore::open(dir.path(), Options { pages_max: Some(60), ..Options::default() }).unwrap();
    let mut stored = 0;
    let why = loop {
        match store.commit(work(stored + 1, store.now()).opening(stored + 1)).await {
            Ok(_) => stored += 1,
            refused => break unavailable(refused),
        }
    };
    assert!(why.contains("no space left") && stored > 10, "{stored}: {why}");
    let last = vec![RowKey::Charge(work(stored, store.now()).charge.tenant, ChargeId::from_i64(stored))];
    assert!(store.read(last).await.unwrap()[0].is_some(), "a durable row is found, flushed or not");
    assert!(store.tally(store.now()).await.is_err(), "an incomplete sum is an error");
    drop(store);
    let store = open(dir.path());
    assert!(charge_is_there(&store, stored).await && !charge_is_there(&store, stored + 1).await);
    store.commit(work(stored + 1, store.now()).opening(stored + 1)).await.unwrap();
    assert!(charge_is_there(&store, stored + 1).await);
}

#[tokio::test]
async fn a_commit_without_space_is_in_doubt_and_writing_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with_fault(dir.path(), faults(FaultPoint::Append, [Some(Fault::DiskFull)]));
    let set = SetId::from_i64(1);
    assert_eq!(store.commit(one_charge(&store, 1)).await, Err(CommitError::InDoubt(set)));
    assert_eq!(store.committed(set).await, Ok(None));
    store.commit(one_charge(&store, 1)).await.unwrap();
    assert!(store.committed(set).await.unwrap().is_some());
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_written_or_denied_until_reopened() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with_fault(dir.path(), faults(FaultPoint::Append, [None, Some(Fault::Sync)]));
    store.commit(one_charge(&store, 1)).await.unwrap();
    let set = SetId::from_i64(2);
    assert_eq!(store.commit(one_charge(&store, 2)).await, Err(CommitError::InDoubt(set)));
    for number in 2..5 {
        let why = unavailable(store.commit(one_charge(&store, number)).await);
        assert!(why.contains("restart to recover"), "{why}");
    }
    assert!(store.committed(set).await.is_err(), "only the next opening can tell");
    assert!(charge_is_there(&store, 1).await, "what was committed is still read");
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.committed(set).await, Ok(None));
    store.commit(one_charge(&store, 2)).await.unwrap();
}

#[tokio::test]
async fn a_writer_that_dies_leaves_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with_fault(dir.path(), Arc::new(|_| panic!("the writer dies, as this test wants")));
    let set = SetId::from_i64(1);
    assert_eq!(store.commit(one_charge(&store, 1)).await, Err(CommitError::InDoubt(set)));
    // A set is in doubt while the thread is still ending, and refused afterwards.
    let why = loop {
        match store.commit(one_charge(&store, 2)).await {
            Err(CommitError::Unavailable(why)) => break why,
            Err(CommitError::InDoubt(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    assert!(why.contains("restart to recover"), "{why}");
    drop(store);
    open(dir.path());
}

/// The posted balance of account 1 and its revision.
async fn balance(store: &EmbeddedStore) -> Option<(i64, u64)> {
    match store.read(vec![RowKey::Balance(TENANT, account_id(1), 0)]).await.unwrap().remove(0) {
        Some(Row::Balance(balance)) => Some((balance.posted, balance.revision)),
        _ => None,
    }
}

/// A set with a transfer from account 1 and the move of its balance.
fn moved(number: i64, amount: i64) -> ChangeSet {
    set(number).insert(transfer(number, 1, 2, amount.abs().max(1))).shift(moving(1, FLOOR, posted(amount)))
}

#[tokio::test]
async fn moves_of_one_group_see_each_other_and_a_refused_one_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (gate, hook) = gate();
    let store = open_with_fault(dir.path(), hook);
    let mut commits: Vec<Commit> = vec![Box::pin(store.commit(moved(100, 50)))];
    enqueue(&mut commits).await;
    gate.reached.recv().unwrap();
    // These sets wait while the writer is at its first group, so they form the second group.
    for (number, amount) in (101..).zip([-30, -30, 15, -30, 5, -11]) {
        commits.push(Box::pin(store.commit(moved(number, amount))));
    }
    enqueue(&mut commits[1..]).await;
    gate.go_on.send(()).unwrap();
    let mut found = Vec::new();
    for commit in commits {
        found.push(match commit.await {
            Ok(_) => None,
            Err(CommitError::Refused(refusal)) => {
                assert_eq!((refusal.change, refusal.reason), (1, RefusalReason::Insufficient));
                Some(refusal.found.map(|row| row.revision()))
            }
            Err(other) => panic!("{other:?}"),
        });
    }
    // 50, 20, refused at 20, 35, 5, 10, refused at 10.
    assert_eq!(found, [None, None, Some(Some(2)), None, None, None, Some(Some(5))]);
    assert_eq!(balance(&store).await, Some((10, 5)));
    let entered = store.entries(TENANT, account_id(1), EntryPage::After(Position(0)), 99).await.unwrap();
    let entered: Vec<i64> = entered.iter().map(|entry| entry.transaction.to_i64()).collect();
    assert_eq!(entered, [100, 101, 103, 104, 105]);
    drop(store);
    assert_eq!(balance(&open(dir.path())).await, Some((10, 5)), "as after the last set");
}

#[tokio::test]
async fn moves_of_a_failed_group_are_undone() {
    let dir = tempfile::tempdir().unwrap();
    let full = Some(Fault::DiskFull);
    let store = open_with_fault(dir.path(), faults(FaultPoint::Append, [None, full, full]));
    store.commit(moved(1, 50)).await.unwrap();
    for number in [2, 3] {
        let doubt = Err(CommitError::InDoubt(SetId::from_i64(number)));
        assert_eq!(store.commit(moved(number, -40)).await, doubt);
        assert_eq!(balance(&store).await, Some((50, 1)));
    }
    store.commit(moved(4, -40)).await.unwrap();
    assert_eq!(balance(&store).await, Some((10, 2)));
}

#[tokio::test]
async fn a_move_of_a_refused_set_is_undone_and_its_neighbours_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (gate, hook) = gate();
    let store = open_with_fault(dir.path(), hook);
    let mut commits: Vec<Commit> = vec![Box::pin(store.commit(moved(100, 50)))];
    enqueue(&mut commits).await;
    gate.reached.recv().unwrap();
    commits.push(Box::pin(store.commit(moved(101, 5))));
    // The transaction of another set: the judge refuses it.
    commits.push(Box::pin(
        store.commit(set(102).shift(moving(1, FLOOR, posted(7))).insert(transfer(100, 2, 1, 9))),
    ));
    commits.push(Box::pin(store.commit(moved(103, -55))));
    enqueue(&mut commits[1..]).await;
    gate.go_on.send(()).unwrap();
    let mut answers = Vec::new();
    for commit in commits {
        answers.push(commit.await);
    }
    let Err(CommitError::Refused(refusal)) = answers.remove(2) else { panic!("{answers:?}") };
    assert_eq!((refusal.change, refusal.reason), (1, RefusalReason::Present));
    assert_eq!(refusal.found, Some(transfer(100, 1, 2, 50).into()));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(balance(&store).await, Some((0, 3)));
}

#[tokio::test]
async fn bulk_sets_make_groups_of_a_bounded_size_and_hot_balances_stay_right() {
    let dir = tempfile::tempdir().unwrap();
    let (gate, hook) = gate();
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let told_of = Arc::clone(&sizes);
    let options = Options {
        fault: Some(hook),
        observe: Some(Arc::new(move |sets, _| told_of.lock().unwrap().push(sets))),
        ..Options::default()
    };
    let store = EmbeddedStore::open(dir.path(), options).unwrap();
    let bulk = |number: i64| {
        let first = number * 1_000;
        let transfers = (first + 1..first + 99).map(|id| transfer(id, 1, 2, 1));
        transfers.fold(set(first).shift(moving(1, FLOOR, posted(98))), ChangeSet::insert)
    };
    let mut commits: Vec<Commit> = vec![Box::pin(store.commit(bulk(1)))];
    enqueue(&mut commits).await;
    gate.reached.recv().unwrap();
    // More rows than the writer caches.
    commits.extend((2..=200).map(|number| -> Commit { Box::pin(store.commit(bulk(number))) }));
    enqueue(&mut commits[1..]).await;
    gate.go_on.send(()).unwrap();
    for commit in commits {
        commit.await.unwrap();
    }
    // 42 sets of 99 changes are the first to pass 4,096.
    assert_eq!(*sizes.lock().unwrap(), [1, 42, 42, 42, 42, 31]);
    assert_eq!(balance(&store).await, Some((200 * 98, 200)));
    let folded = store.fold(TENANT, account_id(1), Position(0), Upto::Now).await.unwrap();
    assert_eq!((folded.totals.debits, folded.totals.entries), (200 * 98, 200 * 98));
}
