//! Commits are kept group by group: each set is told under its own position all the same, with those from before, by servers of the day
//! before too, and an id is taken once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::conformance::fixtures::{opening, set};
use counterfoil_store::{Change, CommitError, Committed, Position, RowKey, Store};
use counterfoil_store_postgres::{Options, PostgresStore, Reach, VERSION, migrate};
use std::sync::Arc;
use support::{database, fresh, open, raw};
use tokio_postgres::Client;

/// What the tables of schema 13 had instead.
const SCHEMA_13: &str = "DELETE FROM schema_steps WHERE version >= 14; DROP TABLE commit_groups";

async fn feed(store: &PostgresStore, after: u64, limit: usize) -> Vec<Committed> {
    store.feed(Position(after), limit).await.unwrap()
}

async fn count(db: &Client, what: &str) -> i64 {
    db.query_one(&format!("SELECT {what}"), &[]).await.unwrap().get(0)
}

/// Sets that go in one group, because they wait behind somebody who holds the head.
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
    // A page begins and ends anywhere in a group.
    for (after, limit) in [(0, 1), (1, 1), (17, 5), (38, 5), (39, 1), (40, 5)] {
        let end = (after + limit).min(40);
        assert_eq!(feed(&store, after as u64, limit).await, all[after..end], "{after} {limit}");
    }
    // Who did not commit it finds each by its id, too.
    let other = open(&database.url()).await;
    for commit in &all {
        assert_eq!(other.committed(commit.set).await, Ok(Some(commit.receipt)));
    }
    assert_eq!(other.committed(set(41).id()).await, Ok(None));
}

#[tokio::test]
async fn a_group_that_no_page_holds_is_read_whole() {
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
async fn tables_without_groups_are_written_as_before_and_brought_forward_under_a_server() {
    let database = database().await;
    let url = database.url();
    let db = raw(&url).await;
    db.batch_execute(SCHEMA_13).await.unwrap();
    let older = open(&url).await;
    older.commit(opening(1)).await.unwrap();
    assert_eq!(older.committed(opening(1).id()).await.unwrap().unwrap().position, Position(1));
    assert_eq!(count(&db, "count(*) FROM commits").await, 1);
    // Only who says that no older server runs takes this step.
    assert_eq!(migrate(&url, Reach::Needed).await.unwrap().left, ["groups", "kept"]);
    let migrated = migrate(&url, Reach::Newest).await.unwrap();
    assert_eq!((migrated.to, migrated.steps), (VERSION, vec!["groups", "kept"]));
    // Both kinds of rows are one feed: for who comes now, and for who was there before.
    let newer = open(&url).await;
    newer.commit(opening(2)).await.unwrap();
    older.commit(opening(3)).await.unwrap();
    newer.commit(opening(4)).await.unwrap();
    assert_eq!(count(&db, "count(*) FROM commits").await, 2);
    let told = feed(&newer, 0, 10).await;
    let sets: Vec<i64> = told.iter().map(|commit| commit.set.to_i64()).collect();
    assert_eq!(sets, [1, 2, 3, 4]);
    assert_eq!(feed(&older, 0, 10).await, told);
    assert_eq!(feed(&older, 1, 2).await, told[1..3]);
    // From then on it keeps groups, too.
    older.commit(opening(5)).await.unwrap();
    assert_eq!(count(&db, "count(*) FROM commits").await, 2);
    let third = open(&url).await;
    for commit in feed(&third, 0, 10).await {
        assert_eq!(third.committed(commit.set).await, Ok(Some(commit.receipt)));
    }
}

#[tokio::test]
async fn nobody_reads_on_behind_a_gap() {
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
async fn a_group_says_what_each_of_its_sets_touched_and_has_a_position_for_each() {
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
async fn a_set_in_hand_is_not_taken_a_second_time() {
    let (store, database) = fresh().await;
    let db = raw(&database.url()).await;
    db.batch_execute("BEGIN; SELECT 1 FROM head FOR UPDATE").await.unwrap();
    let mut first = std::pin::pin!(store.commit(opening(1)));
    let sent =
        std::future::poll_fn(|context| std::task::Poll::Ready(first.as_mut().poll(context).is_pending()));
    assert!(sent.await);
    assert_eq!(store.commit(opening(1)).await, Err(CommitError::Conflict));
    // And nobody is told that it is not there: it may be, the next moment.
    assert!(store.committed(opening(1).id()).await.is_err());
    db.batch_execute("COMMIT").await.unwrap();
    let receipt = first.await.unwrap();
    assert_eq!(store.committed(opening(1).id()).await, Ok(Some(receipt)));
}
