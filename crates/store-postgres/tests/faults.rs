//! Faults: cut connections, cancelled statements, killed servers. The store fails closed with an
//! error, and no confirmed commit is lost.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::payments::charge::Charge;
use counterfoil_store::conformance::fixtures::{TENANT, charge, charge_id, claim, opening, set, slot};
use counterfoil_store::{CommitError, Position, RowKey, Store};
use counterfoil_testkit::postgres::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use support::load::{Load, compared, no_set_is_there_twice};
use support::proxy::Cut;
use support::{
    Held, TERMINATE, database, eventually, held_for_a_standby, open, own_server, proxied, raw, resolved,
    waiting_backend,
};
use tokio::task::JoinSet;

#[tokio::test]
async fn a_connection_lost_before_any_write_is_not_noticed() {
    let database = database().await;
    let (proxy, url) = proxied(&database).await;
    let store = open(&url).await;
    for number in 1..=5 {
        proxy.cut_next(Cut::AtBegin);
        // A slot is read before it is written.
        store.commit(opening(i64::from(number)).insert(slot(number))).await.unwrap();
    }
    assert_eq!(proxy.cuts(), 5);
    // Connections are terminated while idle. The next read and commit open new ones.
    raw(&database.url()).await.batch_execute(TERMINATE).await.unwrap();
    let keys = vec![RowKey::Charge(TENANT, charge_id(1)), RowKey::Outbox(TENANT, charge_id(1).into())];
    assert!(store.read(keys).await.unwrap().iter().all(Option::is_some));
    store.commit(opening(9)).await.unwrap();
}

#[tokio::test]
async fn a_commit_whose_connection_is_lost_is_in_doubt_and_then_resolved() {
    let database = database().await;
    let (proxy, url) = proxied(&database).await;
    let store = open(&url).await;
    // Nothing must be read first, so everything up to the COMMIT is sent at once.
    proxy.cut_next(Cut::AtBegin);
    let id = opening(1).id();
    assert_eq!(store.commit(opening(1)).await, Err(CommitError::InDoubt(id)));
    assert_eq!(resolved(&store, id).await, None);
    store.commit(opening(1)).await.unwrap();
}

#[tokio::test]
async fn a_server_that_panics_while_it_commits_leaves_the_commit_in_doubt() {
    let database = database().await;
    let (proxy, url) = proxied(&database).await;
    let store = open(&url).await;
    store.commit(opening(1)).await.unwrap();
    proxy.cut_next(Cut::PanicAfterCommit);
    let id = opening(2).id();
    assert_eq!(store.commit(opening(2)).await, Err(CommitError::InDoubt(id)));
    assert!(resolved(&store, id).await.is_some());
}

/// Statements pipelined behind a failed `BEGIN` would commit one by one.
#[tokio::test]
async fn a_failed_begin_writes_nothing() {
    let database = database().await;
    let (proxy, url) = proxied(&database).await;
    let store = open(&url).await;
    store.commit(opening(1)).await.unwrap();
    // Several statements that use remembered rows are sent without reading first.
    let renewed = set(2).replace(Claim { revision: 2, ..claim(1) }, 1);
    proxy.cut_next(Cut::RefuseBegin);
    let answer = store.commit(renewed.clone()).await;
    assert!(matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("57014")), "{answer:?}");
    assert_eq!(proxy.cuts(), 1);
    let there = store.read(vec![RowKey::Claim(TENANT, claim(1).id)]).await.unwrap();
    assert_eq!(there, [Some(claim(1).into())]);
    assert_eq!(store.committed(renewed.id()).await, Ok(None));
    store.commit(renewed).await.unwrap();
}

/// One connection resolves all doubts, because a restarted server has few connections to spare.
#[tokio::test]
async fn hundreds_of_sets_in_doubt_are_resolved_by_few_connections() {
    let database = database().await;
    let (proxy, url) = proxied(&database).await;
    let store = Arc::new(open(&url).await);
    store.commit(opening(1)).await.unwrap();
    let (mut doubtful, mut first) = (Vec::new(), 2);
    while doubtful.len() < 100 {
        proxy.cut_next(Cut::AfterCommit);
        let mut all = JoinSet::new();
        for number in first..first + 200 {
            let store = Arc::clone(&store);
            all.spawn(async move { (number, store.commit(opening(number)).await) });
        }
        let answers = all.join_all().await.into_iter().filter(|(_, answer)| answer.is_err());
        doubtful.extend(answers.map(|(number, _)| opening(number).id()));
        first += 200;
    }
    let before = proxy.connections();
    let mut asking = JoinSet::new();
    for id in doubtful {
        let store = Arc::clone(&store);
        asking.spawn(async move { resolved(&store, id).await });
    }
    assert!(asking.join_all().await.iter().all(Option::is_some));
    // Eight readers, two committers, and a few barriers for all sets.
    let opened = proxy.connections() - before;
    assert!(opened <= 20, "{opened} connections");
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
    // The state after the promotion of a standby that lagged.
    let db = raw(&database.url()).await;
    let lost = "ALTER TABLE head DISABLE TRIGGER only_forward; UPDATE head SET position = 2";
    db.batch_execute(lost).await.unwrap();
    db.batch_execute(TERMINATE).await.unwrap();
    let answer = store.commit(opening(4)).await;
    assert!(
        matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("lost commits")),
        "{answer:?}"
    );
    let unreadable = async || {
        let read = store.read(vec![RowKey::Charge(TENANT, charge_id(1))]).await;
        read.is_err_and(|error| error.to_string().contains("lost commits"))
    };
    assert!(unreadable().await);
    // The old primary is back, without the commits of the other server.
    db.batch_execute("UPDATE head SET position = 3").await.unwrap();
    open(&database.url()).await.commit(opening(5)).await.unwrap();
    let answer = store.commit(opening(6)).await;
    assert!(matches!(answer, Err(CommitError::Unavailable(_))), "{answer:?}");
    assert!(unreadable().await);
}

#[tokio::test]
async fn a_server_with_other_commits_is_not_trusted() {
    let database = database().await;
    let store = open(&database.url()).await;
    store.commit(opening(1)).await.unwrap();
    let db = raw(&database.url()).await;
    // A server with the same history is trusted.
    db.batch_execute(TERMINATE).await.unwrap();
    eventually(&store, 2).await;
    // A process without knowledge of the last commit made a different commit at the same position.
    let rewritten = "ALTER TABLE commit_groups DISABLE TRIGGER append_only; \
        UPDATE commit_groups SET sets = ARRAY[77] WHERE position = 2; UPDATE head SET position = 9";
    db.batch_execute(rewritten).await.unwrap();
    db.batch_execute(TERMINATE).await.unwrap();
    let answer = store.commit(opening(3)).await;
    assert!(
        matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("another one")),
        "{answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nothing_it_confirmed() {
    let (mut server, database) = own_server(&[]).await;
    let store = Arc::new(open(&database.url()).await);
    let next = Arc::new(AtomicI64::new(1));
    for round in 0..3 {
        let load = Load::start(&store, &next);
        load.until(200 + round * 37).await;
        server.kill().unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let answers = load.stop().await;
        server.restart().unwrap();
        eventually(&store, next.fetch_add(1, Ordering::SeqCst)).await;
        let (confirmed, doubtful) = compared(&store, answers).await;
        assert!(confirmed >= 100, "{confirmed} confirmed, {doubtful} in doubt");
    }
    no_set_is_there_twice(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_only_the_primary_has_is_in_doubt_until_the_standby_has_it() {
    let (primary, database) = own_server(&[]).await;
    let store = Arc::new(open(&database.url()).await);
    store.commit(opening(1)).await.unwrap();
    let db = raw(&database.url()).await;
    db.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'follower'").await.unwrap();
    db.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let Held { number, pid, committing } = held_for_a_standby(&store, &db).await;
    // An operator cancels the wait, and the server reports a commit with a warning.
    db.execute("SELECT pg_cancel_backend($1)", &[&pid]).await.unwrap();
    let id = opening(number).id();
    assert_eq!(committing.await.unwrap(), Err(CommitError::InDoubt(id)));
    // The commit is visible, but the store does not confirm it yet.
    let rows = db.query("SELECT 1 FROM commit_groups WHERE $1 = ANY (sets)", &[&id.to_i64()]).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert!(store.committed(id).await.is_err());
    let _standby = Server::standby_of(&primary, "follower").unwrap();
    assert!(resolved(&store, id).await.is_some());
    eventually(&store, number + 1).await;
}
