//! Server settings that change while the store is open: a commit is safe, or the store does not
//! confirm it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::conformance::fixtures::opening;
use counterfoil_store::{CommitError, Store};
use counterfoil_store_postgres::PostgresStore;
use std::sync::Arc;
use support::{eventually, held_for_a_standby, open, own_server, raw, resolved};
use tokio_postgres::Client;

/// Changes settings with ALTER SYSTEM and reloads the configuration.
async fn reloaded(db: &Client, settings: &[&str]) {
    for setting in settings {
        db.batch_execute(&format!("ALTER SYSTEM {setting}")).await.unwrap();
    }
    db.batch_execute("SELECT pg_reload_conf()").await.unwrap();
}

/// Commits until an answer is an error: the server's processes read changed settings one by one.
async fn refused(store: &PostgresStore, first: i64) -> (i64, CommitError) {
    for number in first..first + 10_000 {
        if let Err(error) = store.commit(opening(number)).await {
            return (number, error);
        }
    }
    panic!("all commits were confirmed");
}

#[tokio::test]
async fn commits_wait_for_the_standby_regardless_of_the_servers_setting() {
    for (told, at_connect) in
        [("SET synchronous_commit = 'off'", false), ("SET synchronous_commit = 'local'", true)]
    {
        let (_server, database) = own_server(&[]).await;
        let db = raw(&database.url()).await;
        if at_connect {
            reloaded(&db, &[told]).await;
        }
        let store = Arc::new(open(&database.url()).await);
        store.commit(opening(1)).await.unwrap();
        reloaded(&db, &[told, "SET synchronous_standby_names = 'nobody'"]).await;
        let held = held_for_a_standby(&store, &db).await;
        reloaded(&db, &["RESET synchronous_standby_names"]).await;
        held.committing.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn no_commit_is_confirmed_while_the_server_does_not_sync() {
    for name in ["fsync", "full_page_writes"] {
        let (_server, database) = own_server(&[]).await;
        let store = open(&database.url()).await;
        let db = raw(&database.url()).await;
        reloaded(&db, &[&format!("SET {name} = off")]).await;
        let (doubtful, error) = refused(&store, 1).await;
        let id = opening(doubtful).id();
        assert_eq!(error, CommitError::InDoubt(id), "{name}");
        // The doubt cannot be resolved while the commit may still be lost.
        assert!(store.committed(id).await.is_err());
        // The second connection notices as well. New connections are then refused.
        let (mut number, mut why) = (doubtful, None);
        while why.is_none() {
            number += 1;
            assert!(number < doubtful + 100, "{name}: it is connected to again and again");
            match store.commit(opening(number)).await {
                Err(CommitError::Unavailable(said)) => why = Some(said),
                Ok(_) | Err(CommitError::InDoubt(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(why.is_some_and(|why| why.contains(name)));
        reloaded(&db, &[&format!("RESET {name}")]).await;
        eventually(&store, number + 1).await;
        assert!(resolved(&store, id).await.is_some());
    }
}

#[tokio::test]
async fn a_server_that_turns_read_only_is_unavailable_until_it_turns_back() {
    let (_server, database) = own_server(&[]).await;
    let store = open(&database.url()).await;
    let db = raw(&database.url()).await;
    // The setting also applies to open connections.
    reloaded(&db, &["SET default_transaction_read_only = on"]).await;
    let (number, error) = refused(&store, 1).await;
    assert!(matches!(error, CommitError::Unavailable(_)), "{error:?}");
    db.batch_execute("SET default_transaction_read_only = off").await.unwrap();
    reloaded(&db, &["RESET default_transaction_read_only"]).await;
    eventually(&store, number + 1).await;
    assert_eq!(store.committed(opening(number).id()).await, Ok(None));
}
