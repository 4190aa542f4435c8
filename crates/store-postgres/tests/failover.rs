//! Failover: the URL names two servers, the second replaces the first, and no confirmed commit is
//! lost.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::conformance::fixtures::{TENANT, charge_id, opening};
use counterfoil_store::{CommitError, RowKey, Store};
use counterfoil_store_postgres::{OpenError, Options, PostgresStore};
use counterfoil_testkit::postgres::{Database, Server, connect};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use support::load::{Load, compared, no_set_is_there_twice};
use support::{TERMINATE, eventually, open, own_server, raw};
use tokio::net::TcpListener;

/// The URL with a second host.
fn and(url: &str, port: u16) -> String {
    let (hosts, database) = url.rsplit_once('/').unwrap();
    format!("{hosts},127.0.0.1:{port}/{database}")
}

/// A primary with a synchronous standby.
async fn pair() -> (Server, Server, Database) {
    let (primary, database) = own_server(&[]).await;
    let standby = Server::standby_of(&primary, "follower").unwrap();
    let db = raw(&database.url()).await;
    db.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'follower'").await.unwrap();
    db.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let is_waited_for = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    for _ in 0..1_000 {
        if db.query_one(is_waited_for, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            return (primary, standby, database);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the standby does not follow");
}

async fn promote(standby: &Server, database: &Database) {
    let url = format!("{}/{}", standby.address(), database.name());
    let promoted = connect(&url).await.unwrap().query_one("SELECT pg_promote(true, 60)", &[]).await;
    assert!(promoted.unwrap().get::<_, bool>(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_takes_over_with_all_confirmed_commits() {
    let (mut primary, standby, database) = pair().await;
    let store = Arc::new(open(&and(&database.url(), standby.port())).await);
    let next = Arc::new(AtomicI64::new(1));
    let load = Load::start(&store, &next);
    load.until(300).await;
    primary.kill().unwrap();
    promote(&standby, &database).await;
    // The store continues on the promoted server under the same load.
    eventually(&store, 1_000_000).await;
    let before = next.load(Ordering::SeqCst);
    load.until(before + 200).await;
    let (confirmed, doubtful) = compared(&store, load.stop().await).await;
    assert!(confirmed >= 300, "{confirmed} confirmed, {doubtful} in doubt");
    no_set_is_there_twice(&store).await;
}

/// The old primary was started again. It accepts writes but lacks the latest commits.
#[tokio::test]
async fn a_host_without_confirmed_commits_is_skipped_while_another_has_them() {
    let (mut primary, standby, database) = pair().await;
    let store = open(&and(&database.url(), standby.port())).await;
    store.commit(opening(1)).await.unwrap();
    primary.kill().unwrap();
    promote(&standby, &database).await;
    eventually(&store, 2).await;
    primary.restart().unwrap();
    let (old, new) = (database.url(), format!("{}/{}", standby.address(), database.name()));
    let alone = "ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()";
    for sql in alone.split("; ") {
        raw(&old).await.batch_execute(sql).await.unwrap();
    }
    // The order of hosts does not matter.
    for number in 3..=4 {
        raw(&new).await.batch_execute(TERMINATE).await.unwrap();
        eventually(&store, number).await;
    }
    // With only the old primary left, the store refuses it for the rest of its life.
    let mut standby = standby;
    standby.kill().unwrap();
    let (mut number, mut why) = (100, None);
    while why.is_none() {
        number += 1;
        assert!(number < 200, "the old one is served by");
        match store.commit(opening(number)).await {
            Err(CommitError::Unavailable(said)) => why = Some(said),
            // The store may not have noticed the end of the connection yet.
            Err(CommitError::InDoubt(_)) => {}
            answer => panic!("{answer:?}"),
        }
    }
    assert!(why.as_ref().is_some_and(|why| why.contains("lost commits")), "{why:?}");
    standby.restart().unwrap();
    eventually(&store, 10).await;
    assert!(store.read(vec![RowKey::Charge(TENANT, charge_id(4))]).await.unwrap()[0].is_some());
}

#[tokio::test]
async fn a_silent_or_read_only_host_is_skipped() {
    let (primary, standby, database) = pair().await;
    // A listener that accepts connections and stays silent, like a frozen machine.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = silent.local_addr().map(|address| (address.port(), silent)).unwrap();
    for first in [silent.0, standby.port()] {
        let url =
            and(&format!("postgres://counterfoil@127.0.0.1:{first}/{}", database.name()), primary.port());
        let store = open(&url).await;
        store.commit(opening(i64::from(first))).await.unwrap();
    }
    // Without a usable host the error is that of the first host.
    let url = and(&format!("{}/{}", standby.address(), database.name()), standby.port());
    let refused = PostgresStore::open(&url, Options::default()).await.map(|_| ()).unwrap_err();
    assert_eq!(refused, OpenError::Standby);
}
