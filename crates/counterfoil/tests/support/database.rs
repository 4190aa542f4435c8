//! Databases for tests: empty ones, the server makes its tables itself.

use counterfoil_testkit::postgres::{Database, connect, shared};
use tokio::runtime::Runtime;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// An empty database on the server that tests share.
pub fn empty() -> Database {
    empty_at(&shared().unwrap())
}

/// An empty database on the server at `address`.
pub fn empty_at(address: &str) -> Database {
    runtime().block_on(Database::copy_of(address, "counterfoil_empty", async |_| Ok(()))).unwrap()
}

/// Runs SQL, as an operator would.
pub fn execute(url: &str, sql: &str) {
    runtime().block_on(async { connect(url).await.unwrap().batch_execute(sql).await.unwrap() });
}
