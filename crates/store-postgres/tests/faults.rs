//! What the world may do to a store: cut it off, cancel it, kill its server. It fails closed, says so, and nothing that
//! was confirmed is lost.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::payments::charge::Charge;
use counterfoil_core::types::id::SetId;
use counterfoil_store::conformance::fixtures::{TENANT, charge, charge_id, opening, set, slot};
use counterfoil_store::{CommitError, Position, Receipt, RowKey, Store};
use counterfoil_store_postgres::PostgresStore;
use counterfoil_testkit::postgres::Server;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use support::proxy::{Cut, Proxy};
use support::{database, open, own_server, raw};
use tokio::task::JoinSet;
use tokio_postgres::Client;

const TERMINATE: &str = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
    WHERE datname = current_database() AND application_name = 'counterfoil'";

/// Commits until the answer is neither a conflict nor a store that is away, and no doubt is left.
async fn eventually(store: &PostgresStore, number: i64) -> Receipt {
    for _ in 0..300 {
        match store.commit(opening(number)).await {
            Ok(receipt) => return receipt,
            Err(CommitError::Unavailable(_) | CommitError::Conflict) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            // It may have gone into a connection whose end was not noticed yet.
            Err(CommitError::InDoubt(id)) => {
                if let Some(receipt) = resolved(store, id).await {
                    return receipt;
                }
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("the store does not come back");
}

async fn resolved(store: &PostgresStore, id: SetId) -> Option<Receipt> {
    for _ in 0..60 {
        if let Ok(receipt) = store.committed(id).await {
            return receipt;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{id:?} stays in doubt");
}

/// The process of the store that waits for a lock or for a standby, if one does now.
async fn waits(db: &Client, event: &str) -> Option<i32> {
    let sql = format!(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
         AND (wait_event_type = '{event}' OR wait_event = '{event}') LIMIT 1"
    );
    db.query_opt(&sql, &[]).await.unwrap().map(|row| row.get(0))
}

/// The one that waits, sooner or later.
async fn waiting_backend(db: &Client, event: &str) -> i32 {
    for _ in 0..500 {
        if let Some(pid) = waits(db, event).await {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody waits for {event}");
}

#[tokio::test]
async fn a_connection_lost_before_anything_was_written_is_not_noticed() {
    let database = database().await;
    let url = database.url();
    let port = url.rsplit_once(':').unwrap().1.split_once('/').unwrap().0.parse().unwrap();
    let proxy = Proxy::to(port).await;
    let store = open(&proxy.through(&url, port)).await;
    for number in 1..=5 {
        proxy.cut_next(Cut::AtBegin);
        // A slot is looked for before anything is written.
        store.commit(opening(i64::from(number)).insert(slot(number))).await.unwrap();
    }
    assert_eq!(proxy.cuts(), 5);
    // Terminated while idle: the next read and the next commit find new connections.
    raw(&url).await.batch_execute(TERMINATE).await.unwrap();
    let keys = vec![RowKey::Charge(TENANT, charge_id(1)), RowKey::Outbox(TENANT, charge_id(1).into())];
    assert!(store.read(keys).await.unwrap().iter().all(Option::is_some));
    store.commit(opening(9)).await.unwrap();
}

#[tokio::test]
async fn a_connection_lost_with_the_commit_on_its_way_is_in_doubt_and_then_told() {
    let database = database().await;
    let url = database.url();
    let port = url.rsplit_once(':').unwrap().1.split_once('/').unwrap().0.parse().unwrap();
    let proxy = Proxy::to(port).await;
    let store = open(&proxy.through(&url, port)).await;
    // Nothing has to be looked at first, so everything up to the COMMIT is sent at once.
    proxy.cut_next(Cut::AtBegin);
    let id = opening(1).id();
    assert_eq!(store.commit(opening(1)).await, Err(CommitError::InDoubt(id)));
    assert_eq!(resolved(&store, id).await, None);
    store.commit(opening(1)).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_is_cancelled_commits_nothing() {
    let database = database().await;
    let store = Arc::new(open(&database.url()).await);
    store.commit(set(1).insert(charge(1))).await.unwrap();
    let (holder, operator) = (raw(&database.url()).await, raw(&database.url()).await);
    holder.batch_execute("BEGIN; SELECT 1 FROM charges WHERE id = 1 FOR UPDATE").await.unwrap();
    let next = set(2).replace(Charge { revision: 2, ..charge(1) }, 1);
    let committing = tokio::spawn({
        let (store, next) = (Arc::clone(&store), next.clone());
        async move { store.commit(next).await }
    });
    let pid = waiting_backend(&operator, "Lock").await;
    operator.execute("SELECT pg_cancel_backend($1)", &[&pid]).await.unwrap();
    let answer = committing.await.unwrap();
    assert!(matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("57014")), "{answer:?}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.committed(next.id()).await, Ok(None));
    store.commit(next).await.unwrap();
}

#[tokio::test]
async fn a_database_that_turns_read_only_is_unavailable_until_it_turns_back() {
    let database = database().await;
    let store = open(&database.url()).await;
    store.commit(opening(1)).await.unwrap();
    let db = raw(&database.url()).await;
    let set_to = |value: &str| {
        format!("ALTER DATABASE {} SET default_transaction_read_only = {value}", database.name())
    };
    db.batch_execute(&set_to("on")).await.unwrap();
    db.batch_execute(TERMINATE).await.unwrap();
    let answer = store.commit(opening(2)).await;
    assert!(
        matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("takes no writes")),
        "{answer:?}"
    );
    db.batch_execute(&format!("SET default_transaction_read_only = off; {}", set_to("off"))).await.unwrap();
    eventually(&store, 2).await;
    assert_eq!(store.feed(Position(0), 9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_server_that_lost_commits_is_not_trusted_again() {
    let database = database().await;
    let store = open(&database.url()).await;
    for number in 1..=3 {
        store.commit(opening(number)).await.unwrap();
    }
    // As after the promotion of a standby that lagged.
    let db = raw(&database.url()).await;
    db.batch_execute("ALTER TABLE head DISABLE TRIGGER only_forward; UPDATE head SET position = 2")
        .await
        .unwrap();
    db.batch_execute(TERMINATE).await.unwrap();
    let answer = store.commit(opening(4)).await;
    assert!(
        matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("lost commits")),
        "{answer:?}"
    );
    let read = store.read(vec![RowKey::Charge(TENANT, charge_id(1))]).await;
    assert!(read.is_err_and(|error| error.to_string().contains("lost commits")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nothing_it_confirmed() {
    let (mut server, database) = own_server(&[]).await;
    let store = Arc::new(open(&database.url()).await);
    let next = Arc::new(AtomicI64::new(1));
    for round in 0..3 {
        let stop = Arc::new(AtomicBool::new(false));
        let mut producers = JoinSet::new();
        for _ in 0..16 {
            let (store, next, stop) = (Arc::clone(&store), Arc::clone(&next), Arc::clone(&stop));
            producers.spawn(async move {
                let mut answers = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    answers.push((number, store.commit(opening(number)).await));
                    if matches!(answers.last(), Some((_, Err(_)))) {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
                answers
            });
        }
        let before = next.load(Ordering::SeqCst);
        while next.load(Ordering::SeqCst) < before + 200 + round * 37 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.kill().unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        stop.store(true, Ordering::SeqCst);
        let answers: Vec<_> = producers.join_all().await.into_iter().flatten().collect();
        server.restart().unwrap();
        eventually(&store, next.fetch_add(1, Ordering::SeqCst)).await;

        let (mut confirmed, mut doubtful) = (0, 0);
        for (number, answer) in answers {
            let id = opening(number).id();
            let there =
                store.read(vec![RowKey::Charge(TENANT, charge_id(number))]).await.unwrap()[0].is_some();
            match answer {
                Ok(receipt) => {
                    confirmed += 1;
                    assert_eq!(store.committed(id).await, Ok(Some(receipt)), "{number} was confirmed");
                    assert!(there, "{number} was confirmed");
                }
                Err(CommitError::InDoubt(_)) => {
                    doubtful += 1;
                    assert_eq!(resolved(&store, id).await.is_some(), there, "{number} is whole or not there");
                }
                Err(CommitError::Unavailable(_) | CommitError::Conflict) => {
                    assert!(!there, "{number} was said not to be written");
                    assert_eq!(store.committed(id).await, Ok(None));
                }
                Err(error) => panic!("{number}: {error:?}"),
            }
        }
        assert!(confirmed >= 100, "{confirmed} confirmed, {doubtful} in doubt");
    }
    let mut places: HashMap<SetId, Position> = HashMap::new();
    let mut last = 0;
    loop {
        let page = store.feed(Position(last), 1_000).await.unwrap();
        if page.is_empty() {
            break;
        }
        for entry in page {
            last += 1;
            assert_eq!(entry.receipt.position, Position(last));
            assert_eq!(places.insert(entry.set, entry.receipt.position), None, "a set was committed twice");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_only_the_primary_has_is_in_doubt_until_the_standby_has_it() {
    let (primary, database) = own_server(&[]).await;
    let store = Arc::new(open(&database.url()).await);
    store.commit(opening(1)).await.unwrap();
    let db = raw(&database.url()).await;
    db.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'follower'").await.unwrap();
    db.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    // The server waits for a standby that is not there, from when its checkpointer has read the setting: until then sets are committed.
    let (mut number, mut pid) = (1, None);
    let committing = loop {
        number += 1;
        assert!(number < 10_000, "nobody waits for the standby");
        let store = Arc::clone(&store);
        let committing = tokio::spawn(async move { store.commit(opening(number)).await });
        while pid.is_none() && !committing.is_finished() {
            pid = waits(&db, "SyncRep").await;
        }
        if pid.is_some() {
            break committing;
        }
        committing.await.unwrap().unwrap();
    };
    // Somebody breaks the wait off, and it answers "committed".
    db.execute("SELECT pg_cancel_backend($1)", &[&pid]).await.unwrap();
    let id = opening(number).id();
    assert_eq!(committing.await.unwrap(), Err(CommitError::InDoubt(id)));
    // It can be seen already, and still it is not said to be there.
    let rows = db.query("SELECT 1 FROM commit_groups WHERE $1 = ANY (sets)", &[&id.to_i64()]).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert!(store.committed(id).await.is_err());
    let _standby = Server::standby_of(&primary, "follower").unwrap();
    assert!(resolved(&store, id).await.is_some());
    eventually(&store, number + 1).await;
}
