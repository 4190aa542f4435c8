//! Shared helpers: a database for each test, a store on it, and plain clients.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod load;
pub mod proxy;

use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::SetId;
use counterfoil_store::conformance::fixtures::opening;
use counterfoil_store::{CommitError, CommitReceipt, Store};
use counterfoil_store_postgres::{Options, PostgresStore, Reach, migrate};
use counterfoil_testkit::postgres::{Database, Server, connect, shared};
use proxy::Proxy;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// A migrated database on the server at `address`. The template's name depends on the text of the
/// schema, because a server may stay up between edits of the schema.
pub async fn database_at(address: &str) -> Database {
    let steps: [&[u8]; 3] = [
        include_bytes!("../../src/schema/tables.sql"),
        include_bytes!("../../src/schema/rules.sql"),
        include_bytes!("../../src/schema/roles.sql"),
    ];
    let state = Digest::of("test-template", &steps).hex();
    let make =
        async |url: String| migrate(&url, Reach::Newest).await.map(|_| ()).map_err(|error| error.to_string());
    Database::copy_of(address, &format!("counterfoil_{}", &state[..16]), make).await.unwrap()
}

/// A migrated database on the shared server.
pub async fn database() -> Database {
    database_at(&shared().unwrap()).await
}

/// A database without tables.
pub async fn empty() -> Database {
    Database::copy_of(&shared().unwrap(), "counterfoil_empty", async |_| Ok(())).await.unwrap()
}

pub async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, Options::default()).await.unwrap()
}

/// A store on a fresh database.
pub async fn fresh() -> (Arc<PostgresStore>, Database) {
    let database = database().await;
    (Arc::new(open(&database.url()).await), database)
}

/// A plain client with the store's schema in its search path.
pub async fn raw(url: &str) -> Client {
    let client = connect(url).await.unwrap();
    client.batch_execute("SET search_path = counterfoil").await.unwrap();
    client
}

/// A private server for a test, to be killed or configured, with a migrated database.
pub async fn own_server(settings: &[(&str, &str)]) -> (Server, Database) {
    let server = Server::start(settings).unwrap();
    let database = database_at(&server.address()).await;
    (server, database)
}

/// A proxy in front of the server of a database, and the URL through it.
pub async fn proxied(database: &Database) -> (Proxy, String) {
    let url = database.url();
    let port = url.rsplit_once(':').unwrap().1.split_once('/').unwrap().0.parse().unwrap();
    let proxy = Proxy::to(port).await;
    let through = proxy.through(&url, port);
    (proxy, through)
}

/// Terminates all connections of stores to the current database.
pub const TERMINATE: &str = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
    WHERE datname = current_database() AND application_name = 'counterfoil'";

/// Commits a set and retries while the store is unavailable. Resolves doubts.
pub async fn eventually(store: &PostgresStore, number: i64) -> CommitReceipt {
    for _ in 0..300 {
        match store.commit(opening(number)).await {
            Ok(receipt) => return receipt,
            Err(CommitError::Unavailable(_) | CommitError::Conflict) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            // The set may have been sent on a connection whose end was not noticed yet.
            Err(CommitError::InDoubt(id)) => {
                if let Some(receipt) = resolved(store, id).await {
                    return receipt;
                }
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("the store does not recover");
}

pub async fn resolved(store: &PostgresStore, id: SetId) -> Option<CommitReceipt> {
    for _ in 0..60 {
        if let Ok(receipt) = store.committed(id).await {
            return receipt;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{id:?} stays in doubt");
}

/// The server process that waits for an event at the moment, if any.
pub async fn waits(db: &Client, event: &str) -> Option<i32> {
    let sql = format!(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
         AND (wait_event_type = '{event}' OR wait_event = '{event}') LIMIT 1"
    );
    db.query_opt(&sql, &[]).await.unwrap().map(|row| row.get(0))
}

/// Polls until a server process waits for an event.
pub async fn waiting_backend(db: &Client, event: &str) -> i32 {
    for _ in 0..500 {
        if let Some(pid) = waits(db, event).await {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no process waits for {event}");
}

/// A commit that waits for a standby, with its server process.
pub struct Held {
    pub number: i64,
    pub pid: i32,
    pub committing: JoinHandle<Result<CommitReceipt, CommitError>>,
}

/// Commits sets until one waits for the missing standby. The server starts to wait once its
/// checkpointer has read the setting.
pub async fn held_for_a_standby(store: &Arc<PostgresStore>, db: &Client) -> Held {
    for number in 2..3_000 {
        let store = Arc::clone(store);
        let committing = tokio::spawn(async move { store.commit(opening(number)).await });
        while !committing.is_finished() {
            if let Some(pid) = waits(db, "SyncRep").await {
                return Held { number, pid, committing };
            }
        }
        committing.await.unwrap().unwrap();
    }
    panic!("no commit waits for the standby");
}
