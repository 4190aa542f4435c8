//! Empty databases for tests; the server creates the tables.

use counterfoil_testkit::postgres::{Database, connect, shared};
use tokio::runtime::Runtime;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// An empty database on the shared server.
pub fn empty() -> Database {
    empty_at(&shared().unwrap())
}

/// An empty database on the server at `address`.
pub fn empty_at(address: &str) -> Database {
    runtime().block_on(Database::copy_of(address, "counterfoil_empty", async |_| Ok(()))).unwrap()
}

/// Runs SQL like an operator.
pub fn execute(url: &str, sql: &str) {
    runtime().block_on(async { connect(url).await.unwrap().batch_execute(sql).await.unwrap() });
}
