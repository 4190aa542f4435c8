//! Opening a store: what is refused, in which words, and how a database is brought forward.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::Store;
use counterfoil_store::conformance::fixtures::opening;
use counterfoil_store_postgres::{
    Migrated, NEEDED, OpenError, Options, PostgresStore, Reach, VERSION, migrate,
};
use counterfoil_testkit::postgres::{Database, Server, connect, shared};
use support::{database, open, own_server, raw};

async fn error(url: &str) -> OpenError {
    PostgresStore::open(url, Options::default()).await.map(|_| ()).unwrap_err()
}

/// A database without tables.
async fn empty() -> Database {
    Database::copy_of(&shared().unwrap(), "counterfoil_empty", async |_| Ok(())).await.unwrap()
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
async fn a_database_without_tables_is_brought_forward_once() {
    let database = empty().await;
    assert_eq!(error(&database.url()).await, OpenError::NotMigrated);
    let url = database.url();
    let (one, other) = tokio::join!(migrate(&url, Reach::Needed), migrate(&url, Reach::Needed));
    let (one, other) = (one.unwrap(), other.unwrap());
    let nothing = Migrated { from: VERSION, to: VERSION, steps: Vec::new(), left: Vec::new() };
    let all = Migrated {
        from: 0,
        to: VERSION,
        steps: vec![
            "tables",
            "rules",
            "walls",
            "operations",
            "captured",
            "payouts",
            "balanced",
            "lighter",
            "owners",
            "by tenant",
            "tenants lead",
            "shorter rules",
            "look ahead",
            "groups",
            "kept",
        ],
        left: Vec::new(),
    };
    assert!([(&all, &nothing), (&nothing, &all)].contains(&(&one, &other)), "{one:?} {other:?}");
    assert_eq!(migrate(&url, Reach::Needed).await.unwrap(), nothing);
    // Whoever looks with psql sees the tables: the database holds nothing else.
    let plain = connect(&url).await.unwrap();
    plain.query_one("SELECT count(*) FROM journal_entries", &[]).await.unwrap();
    open(&url).await.commit(opening(1)).await.unwrap();
}

#[tokio::test]
async fn an_older_newer_or_foreign_schema_is_told_apart() {
    let database = database().await;
    let db = raw(&database.url()).await;
    // A newer release added to the tables: this one goes on.
    let newer = |serves: u32| {
        format!(
            "INSERT INTO schema_steps (version, name, serves, digest) VALUES ({0}, 'next', {serves}, 'x') \
             ON CONFLICT (version) DO UPDATE SET serves = {serves}",
            VERSION + 1
        )
    };
    db.batch_execute(&newer(VERSION)).await.unwrap();
    let store = open(&database.url()).await;
    store.commit(opening(1)).await.unwrap();
    assert_eq!(migrate(&database.url(), Reach::Needed).await.unwrap().steps, Vec::<&str>::new());
    // It took something away that this one needs.
    db.batch_execute(&newer(VERSION + 1)).await.unwrap();
    assert_eq!(error(&database.url()).await, OpenError::Ahead { found: VERSION + 1, known: VERSION });
    db.batch_execute(&format!("DELETE FROM schema_steps WHERE version >= {NEEDED}")).await.unwrap();
    assert_eq!(error(&database.url()).await, OpenError::Behind { found: NEEDED - 1, known: NEEDED });
    db.batch_execute("UPDATE schema_steps SET digest = 'edited' WHERE version = 1").await.unwrap();
    assert_eq!(error(&database.url()).await, OpenError::Foreign(1));
    assert_eq!(migrate(&database.url(), Reach::Needed).await, Err(OpenError::Foreign(1)));
}

#[tokio::test]
async fn a_migration_that_finds_nothing_to_do_disturbs_nobody() {
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
async fn the_secret_is_the_databases_own_and_every_process_has_it() {
    let (one, other) = (database().await, empty().await);
    migrate(&other.url(), Reach::Needed).await.unwrap();
    let (first, second) = (open(&one.url()).await, open(&one.url()).await);
    assert_eq!(first.secret().reveal(), second.secret().reveal());
    assert_ne!(first.secret().reveal(), open(&other.url()).await.secret().reveal());
    assert!(!first.is_exclusive());
}
