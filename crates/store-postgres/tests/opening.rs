//! Opening a store: refusals with their messages, and the first migration.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::Store;
use counterfoil_store::conformance::fixtures::opening;
use counterfoil_store_postgres::{Migrated, OpenError, Options, PostgresStore, Reach, VERSION, migrate};
use counterfoil_testkit::postgres::{Server, connect, shared};
use support::{database, empty, open, own_server};

async fn error(url: &str) -> OpenError {
    PostgresStore::open(url, Options::default()).await.map(|_| ()).unwrap_err()
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let refused = error(&format!("postgres://u@127.0.0.1:{port}/d")).await;
    assert!(matches!(refused, OpenError::Unreachable(_)), "{refused}");
    assert!(refused.to_string().contains("check that it runs"), "{refused}");
}

#[tokio::test]
async fn a_database_or_login_that_is_not_there_is_named() {
    let address = shared().unwrap();
    let refused = error(&format!("{address}/there_is_no_such_database")).await;
    assert!(matches!(refused, OpenError::NoDatabase(_)), "{refused}");
    let refused = error(&format!("{}/postgres", address.replace("counterfoil@", "nobody_we_know@"))).await;
    assert!(matches!(refused, OpenError::Login(_)), "{refused}");
}

#[tokio::test]
async fn a_database_without_tables_is_migrated_once() {
    let database = empty().await;
    assert_eq!(error(&database.url()).await, OpenError::NotMigrated);
    let url = database.url();
    let (one, other) = tokio::join!(migrate(&url, Reach::Needed), migrate(&url, Reach::Needed));
    let (one, other) = (one.unwrap(), other.unwrap());
    let nothing = Migrated { from: VERSION, to: VERSION, steps: Vec::new(), left: Vec::new() };
    let all = Migrated { from: 0, to: VERSION, steps: vec!["schema"], left: Vec::new() };
    assert!([(&all, &nothing), (&nothing, &all)].contains(&(&one, &other)), "{one:?} {other:?}");
    assert_eq!(migrate(&url, Reach::Needed).await.unwrap(), nothing);
    // `psql` finds the tables, because the database contains no others.
    let plain = connect(&url).await.unwrap();
    plain.query_one("SELECT count(*) FROM journal_entries", &[]).await.unwrap();
    open(&url).await.commit(opening(1)).await.unwrap();
}

#[tokio::test]
async fn a_migration_without_steps_does_not_disturb_commits() {
    let database = database().await;
    let (store, url) = (open(&database.url()).await, database.url());
    for number in 1..=20 {
        let (committed, migrated) = tokio::join!(store.commit(opening(number)), migrate(&url, Reach::Needed));
        committed.unwrap();
        assert_eq!(migrated.unwrap().to, VERSION);
    }
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_refused() {
    let database = database().await;
    let db = connect(&database.url()).await.unwrap();
    let read_only = format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name());
    db.batch_execute(&read_only).await.unwrap();
    assert_eq!(error(&database.url()).await, OpenError::ReadOnly);
}

#[tokio::test]
async fn a_standby_is_refused() {
    let (primary, database) = own_server(&[]).await;
    let standby = Server::standby_of(&primary, "follower").unwrap();
    let url = database.url().replace(&primary.port().to_string(), &standby.port().to_string());
    assert_eq!(error(&url).await, OpenError::Standby);
    open(&database.url()).await.commit(opening(1)).await.unwrap();
}

#[tokio::test]
async fn a_server_that_may_lose_commits_is_refused() {
    let server = Server::start(&[("fsync", "off")]).unwrap();
    assert_eq!(error(&format!("{}/postgres", server.address())).await, OpenError::Unsafe("fsync"));
}

#[tokio::test]
async fn a_server_without_room_says_so() {
    let (_server, database) =
        own_server(&[("max_connections", "6"), ("superuser_reserved_connections", "0")]).await;
    let mut guests = Vec::new();
    while let Ok(guest) = connect(&database.url()).await {
        guests.push(guest);
    }
    assert_eq!(error(&database.url()).await, OpenError::Crowded);
    guests.clear();
}

#[tokio::test]
async fn the_secret_belongs_to_the_database_and_is_shared_by_its_processes() {
    let (one, other) = (database().await, empty().await);
    migrate(&other.url(), Reach::Needed).await.unwrap();
    let (first, second) = (open(&one.url()).await, open(&one.url()).await);
    assert_eq!(first.secret().reveal(), second.secret().reveal());
    assert_ne!(first.secret().reveal(), open(&other.url()).await.secret().reveal());
    assert!(!first.is_exclusive());
}
