//! Groups: a set that breaks a rule of the tables or waits for a lock does not affect the answers
//! of the others.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, FailureCode, PaymentFailure, Wallet};
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::mask::Masked;
use counterfoil_store::conformance::fixtures::ledger::{BOTH, moving, opened, posted};
use counterfoil_store::conformance::fixtures::{
    TENANT, at, audit, charge, charge_id, claim, opening, outbox, set, settled,
};
use counterfoil_store::{ChangeSet, CommitError, CommitReceipt, Row, RowKey, Store};
use counterfoil_store_postgres::{Options, PostgresStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{database, fresh, raw};
use tokio::task::JoinSet;

/// Commits all sets concurrently and returns the answers in their order.
async fn together(
    store: &Arc<PostgresStore>,
    sets: Vec<ChangeSet>,
) -> Vec<Result<CommitReceipt, CommitError>> {
    let mut running = JoinSet::new();
    for (index, set) in sets.into_iter().enumerate() {
        let store = Arc::clone(store);
        running.spawn(async move { (index, store.commit(set).await) });
    }
    let mut answers = running.join_all().await;
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// A charge that the tables cannot hold: text has no U+0000, and numbers have 63 bits.
fn impossible(number: i64) -> Charge {
    let mut broken = charge(number);
    if number % 2 == 0 {
        Arc::make_mut(&mut broken.order).description = Some(Masked::new("a\0b".to_owned()));
    } else {
        broken.revision = u64::MAX;
    }
    broken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_no_table_can_hold_leaves_its_neighbours_alone() {
    let (store, _database) = fresh().await;
    let is_broken = |number: i64| number % 10 >= 8;
    let asked = |number: i64| {
        if is_broken(number) { set(number).insert(impossible(number)) } else { opening(number) }
    };
    for (number, mut answer) in (1..).zip(together(&store, (1..=60).map(asked).collect()).await) {
        // On a busy machine a lock on `head` may outlast the lock timeout. Retrying gets an answer.
        for _ in 0..10 {
            if answer != Err(CommitError::Conflict) {
                break;
            }
            answer = store.commit(asked(number)).await;
        }
        match answer {
            Ok(_) => assert!(!is_broken(number), "{number}"),
            Err(CommitError::Unavailable(why)) => {
                assert!(is_broken(number) && why.contains("defect"), "{why}");
            }
            Err(error) => panic!("{number}: {error:?}"),
        }
    }
    assert_eq!(store.feed(counterfoil_store::Position(0), 100).await.unwrap().len(), 48);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_delays_only_sets_that_need_it() {
    let (store, database) = fresh().await;
    store.commit(set(1).insert(charge(1))).await.unwrap();
    let db = raw(&database.url()).await;
    db.batch_execute("BEGIN; SELECT 1 FROM charges WHERE id = 1 FOR UPDATE").await.unwrap();
    let mut sets: Vec<ChangeSet> = (2..=30).map(opening).collect();
    sets.push(set(99).replace(Charge { revision: 2, ..charge(1) }, 1));
    let mut answers = together(&store, sets).await;
    assert_eq!(answers.pop().unwrap(), Err(CommitError::Conflict));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    db.batch_execute("ROLLBACK").await.unwrap();
    store.commit(set(99).replace(Charge { revision: 2, ..charge(1) }, 1)).await.unwrap();
}

#[tokio::test]
async fn a_set_that_is_committed_already_is_found_by_its_id() {
    let (store, _database) = fresh().await;
    store.commit(set(1).insert(opened(1, Some(0), None))).await.unwrap();
    let shift = set(2).shift(moving(1, BOTH, posted(5)));
    let receipt = store.commit(shift.clone()).await.unwrap();
    // The preconditions of the set would admit a second commit. Only the id prevents it.
    assert_eq!(store.commit(shift.clone()).await, Err(CommitError::InDoubt(shift.id())));
    assert_eq!(store.committed(shift.id()).await, Ok(Some(receipt)));
    let balance =
        store.read(vec![RowKey::Balance(TENANT, moving(1, BOTH, posted(5)).account, 0)]).await.unwrap();
    let Some(counterfoil_store::Row::Balance(balance)) = balance[0].clone() else { panic!("{balance:?}") };
    assert_eq!(balance.posted, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_sets_are_committed_together() {
    let database = database().await;
    let (groups, sets) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, carried) = (Arc::clone(&groups), Arc::clone(&sets));
    let observe = move |admitted, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        carried.fetch_add(admitted, Ordering::SeqCst);
    };
    let options = Options { committers: 1, observe: Some(Arc::new(observe)), ..Options::default() };
    let store = Arc::new(PostgresStore::open(&database.url(), options).await.unwrap());
    let db = raw(&database.url()).await;
    // While `head` is locked, the first group waits and the other sets gather behind it.
    db.batch_execute("BEGIN; SELECT 1 FROM head FOR UPDATE").await.unwrap();
    let all = tokio::spawn({
        let store = Arc::clone(&store);
        async move { together(&store, (1..=100).map(opening).collect()).await }
    });
    let blocked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while db.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    db.batch_execute("COMMIT").await.unwrap();
    assert!(all.await.unwrap().iter().all(Result::is_ok));
    assert_eq!(sets.load(Ordering::SeqCst), 100);
    assert!(groups.load(Ordering::SeqCst) < 50, "{groups:?} groups for a hundred sets");
    let there = store
        .read((1..=100).map(|number| RowKey::Charge(TENANT, charge_id(number))).collect())
        .await
        .unwrap();
    assert!(there.iter().all(Option::is_some));
}

/// A claim and a charge as opened. Every fifth charge has optional columns set.
fn begun(number: i64) -> (Claim, Charge) {
    let mut opened = charge(number);
    if number % 5 == 0 {
        Arc::make_mut(&mut opened.order).wallet =
            Some(Wallet { account: AccountId::from_i64(3), amount: 100 });
        opened.provider_reference = Some("pi_5".to_owned());
    }
    (claim(number), opened)
}

/// The same rows as settled. Every seventh charge fails.
fn ended(number: i64) -> (Claim, Charge) {
    let (claim, opened) = begun(number);
    let done = Claim { revision: 2, state: ClaimState::Completed(settled(b"{}", at(9))), ..claim };
    let failure = (number % 7 == 0).then(|| PaymentFailure {
        code: FailureCode::CardDeclined,
        decline_code: Some("lost_card".to_owned()),
    });
    let status = if failure.is_some() { ChargeStatus::Failed } else { ChargeStatus::Succeeded };
    (done, Charge { status, failure, revision: 2, ..opened })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_whole_with_and_without_optional_columns() {
    let (store, _database) = fresh().await;
    let rows = async || {
        let keys = (1..=40).flat_map(|number| {
            let (claim, charge) = begun(number);
            [RowKey::Claim(TENANT, claim.id), RowKey::Charge(TENANT, charge.id)]
        });
        store.read(keys.collect()).await.unwrap()
    };
    let expected = |of: fn(i64) -> (Claim, Charge)| -> Vec<Option<Row>> {
        let both = (1..=40).map(of).flat_map(|(claim, charge)| [Row::from(claim), Row::from(charge)]);
        both.map(Some).collect()
    };
    let opening = |number: i64| {
        let (claim, charge) = begun(number);
        set(number).insert(claim).insert(charge).insert(outbox(number)).insert(audit(number, 0))
    };
    // A single set first, then many at once: some groups have values in all columns, others have
    // not.
    assert!(together(&store, vec![opening(1)]).await.iter().all(Result::is_ok));
    assert!(together(&store, (2..=40).map(opening).collect()).await.iter().all(Result::is_ok));
    assert_eq!(rows().await, expected(begun));
    let settling = |number: i64| {
        let (done, charged) = ended(number);
        let work = RowKey::Outbox(TENANT, charged.id.into());
        set(number + 100).replace(done, 1).replace(charged, 1).remove(work, 1).insert(audit(number, 1))
    };
    assert!(together(&store, vec![settling(1)]).await.iter().all(Result::is_ok));
    assert!(together(&store, (2..=40).map(settling).collect()).await.iter().all(Result::is_ok));
    assert_eq!(rows().await, expected(ended));
}

#[tokio::test]
async fn a_closed_store_has_committed_all_accepted_sets() {
    let (store, database) = fresh().await;
    let waiting = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.commit(opening(1)).await })
    };
    let receipt = waiting.await.unwrap().unwrap();
    Arc::into_inner(store).unwrap().close().await;
    let again = support::open(&database.url()).await;
    assert_eq!(again.committed(opening(1).id()).await, Ok(Some(receipt)));
    assert!(again.now() >= receipt.at);
}
