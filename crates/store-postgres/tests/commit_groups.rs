//! Commits are logged group by group: each set still has its own position, and an id is committed
//! once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::conformance::fixtures::{opening, set};
use counterfoil_store::{Change, CommitError, Committed, Position, RowKey, Store};
use counterfoil_store_postgres::{Options, PostgresStore};
use std::sync::Arc;
use support::{database, fresh, open, raw};
use tokio_postgres::Client;

async fn feed(store: &PostgresStore, after: u64, limit: usize) -> Vec<Committed> {
    store.feed(Position(after), limit).await.unwrap()
}

async fn count(db: &Client, what: &str) -> i64 {
    db.query_one(&format!("SELECT {what}"), &[]).await.unwrap().get(0)
}

/// Commits sets in one group by letting them queue behind a lock on `head`.
async fn in_one_group(store: &Arc<PostgresStore>, db: &Client, numbers: std::ops::RangeInclusive<i64>) {
    db.batch_execute("BEGIN; SELECT 1 FROM head FOR UPDATE").await.unwrap();
    let send = |number: i64| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.commit(opening(number)).await })
    };
    let first = send(*numbers.start());
    let blocked =
        "count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while count(db, blocked).await == 0 {
        tokio::task::yield_now().await;
    }
    let others: Vec<_> = numbers.skip(1).map(send).collect();
    tokio::task::yield_now().await;
    db.batch_execute("COMMIT").await.unwrap();
    for sent in std::iter::once(first).chain(others) {
        sent.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_group_is_one_row_and_each_set_has_its_own_position() {
    let database = database().await;
    let options = Options { committers: 1, ..Options::default() };
    let store = Arc::new(PostgresStore::open(&database.url(), options).await.unwrap());
    let db = raw(&database.url()).await;
    in_one_group(&store, &db, 1..=40).await;
    assert!(count(&db, "count(*) FROM commit_groups").await < 20);
    assert_eq!(count(&db, "sum(cardinality(sets))::bigint FROM commit_groups").await, 40);
    let all = feed(&store, 0, 100).await;
    let positions: Vec<u64> = all.iter().map(|commit| commit.receipt.position.0).collect();
    assert_eq!(positions, (1..=40).collect::<Vec<_>>());
    for commit in &all {
        let keys: Vec<RowKey> = opening(commit.set.to_i64()).changes().iter().map(Change::key).collect();
        assert_eq!(commit.touched, keys);
    }
    // Pages may begin and end anywhere in a group.
    for (after, limit) in [(0, 1), (1, 1), (17, 5), (38, 5), (39, 1), (40, 5)] {
        let end = (after + limit).min(40);
        assert_eq!(feed(&store, after as u64, limit).await, all[after..end], "{after} {limit}");
    }
    // A second process finds every set by id.
    let other = open(&database.url()).await;
    for commit in &all {
        assert_eq!(other.committed(commit.set).await, Ok(Some(commit.receipt)));
    }
    assert_eq!(other.committed(set(41).id()).await, Ok(None));
}

#[tokio::test]
async fn a_group_larger_than_a_page_is_read_whole() {
    let (store, database) = fresh().await;
    let sent = (1..=400).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.commit(opening(number)).await })
    });
    for sent in sent.collect::<Vec<_>>() {
        sent.await.unwrap().unwrap();
    }
    let db = raw(&database.url()).await;
    assert!(count(&db, "max(pg_column_size(touched))::bigint FROM commit_groups").await > 8_192);
    assert_eq!(feed(&store, 0, 1_000).await.len(), 400);
}

#[tokio::test]
async fn the_feed_stops_at_a_gap() {
    let (store, database) = fresh().await;
    store.commit(opening(1)).await.unwrap();
    let db = raw(&database.url()).await;
    db.batch_execute("INSERT INTO commit_groups VALUES (4, 9, '{7,8}', ARRAY[''::bytea, ''::bytea])")
        .await
        .unwrap();
    let error = store.feed(Position(0), 10).await.unwrap_err();
    assert!(error.to_string().contains("no position 2"), "{error}");
    assert_eq!(feed(&store, 0, 1).await.len(), 1);
}

#[tokio::test]
async fn a_group_has_a_key_list_and_a_position_for_each_set() {
    let (store, database) = fresh().await;
    let db = raw(&database.url()).await;
    let insert = |row: &str| format!("INSERT INTO commit_groups VALUES {row}");
    let refused = db.batch_execute(&insert("(9, 1, '{1,2}', ARRAY[''::bytea])")).await.unwrap_err();
    assert_eq!(refused.as_db_error().unwrap().constraint(), Some("each_says_what_it_touched"));
    db.batch_execute(&insert("(1, 1, '{1,2}', ARRAY[''::bytea, ''::bytea])")).await.unwrap();
    let error = store.feed(Position(0), 10).await.unwrap_err();
    assert!(error.to_string().contains("commit_groups.touched is damaged"), "{error}");
}

#[tokio::test]
async fn a_set_in_progress_is_not_accepted_again() {
    let (store, database) = fresh().await;
    let db = raw(&database.url()).await;
    db.batch_execute("BEGIN; SELECT 1 FROM head FOR UPDATE").await.unwrap();
    let mut first = std::pin::pin!(store.commit(opening(1)));
    let sent =
        std::future::poll_fn(|context| std::task::Poll::Ready(first.as_mut().poll(context).is_pending()));
    assert!(sent.await);
    assert_eq!(store.commit(opening(1)).await, Err(CommitError::Conflict));
    // The question is not answered with "absent": the set may be committed the next moment.
    assert!(store.committed(opening(1).id()).await.is_err());
    db.batch_execute("COMMIT").await.unwrap();
    let receipt = first.await.unwrap();
    assert_eq!(store.committed(opening(1).id()).await, Ok(Some(receipt)));
}
