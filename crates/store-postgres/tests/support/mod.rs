//! What the tests share: a database of their own, a store on it, and plain clients beside it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod proxy;

use counterfoil_core::types::digest::Digest;
use counterfoil_store_postgres::{Options, PostgresStore, Reach, migrate};
use counterfoil_testkit::postgres::{Database, Server, connect, shared};
use std::sync::Arc;
use tokio_postgres::Client;

/// A migrated database on the server at `address`. A template is of one state of the steps: while they are being
/// written, a server that stays up has several.
pub async fn database_at(address: &str) -> Database {
    let steps: [&[u8]; 14] = [
        include_bytes!("../../src/schema/1_tables.sql"),
        include_bytes!("../../src/schema/2_rules.sql"),
        include_bytes!("../../src/schema/3_walls.sql"),
        include_bytes!("../../src/schema/4_operations.sql"),
        include_bytes!("../../src/schema/5_captured.sql"),
        include_bytes!("../../src/schema/6_payouts.sql"),
        include_bytes!("../../src/schema/7_balanced.sql"),
        include_bytes!("../../src/schema/8_lighter.sql"),
        include_bytes!("../../src/schema/9_owners.sql"),
        include_bytes!("../../src/schema/10_by_tenant.sql"),
        include_bytes!("../../src/schema/11_tenants_lead.sql"),
        include_bytes!("../../src/schema/12_shorter_rules.sql"),
        include_bytes!("../../src/schema/13_look_ahead.sql"),
        include_bytes!("../../src/schema/14_groups.sql"),
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

pub async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, Options::default()).await.unwrap()
}

/// A fresh store.
pub async fn fresh() -> (Arc<PostgresStore>, Database) {
    let database = database().await;
    (Arc::new(open(&database.url()).await), database)
}

/// A plain client in the store's schema, as an operator would have one.
pub async fn raw(url: &str) -> Client {
    let client = connect(url).await.unwrap();
    client.batch_execute("SET search_path = counterfoil").await.unwrap();
    client
}

/// A server of this test's own, to be killed or set up differently, with a migrated database.
pub async fn own_server(settings: &[(&str, &str)]) -> (Server, Database) {
    let server = Server::start(settings).unwrap();
    let database = database_at(&server.address()).await;
    (server, database)
}
