//! PostgreSQL for tests: a server for a test, or one shared by all tests of a run.
//!
//! `cargo xtask test` starts one server and names it in [`VARIABLE`]. Without the variable, a test
//! process starts a server and stops it at its end. Each test has its own database, copied from a
//! template.

mod binaries;
mod database;
mod server;

pub use binaries::{Binaries, find};
pub use database::{Database, connect};
pub use server::Server;

use crate::failure::Result;
use std::sync::OnceLock;

/// Names the shared server: `postgres://USER@HOST:PORT`, without a database.
pub const VARIABLE: &str = "COUNTERFOIL_TEST_POSTGRES";

/// The address of the shared server: from the environment, or of this process's server.
pub fn shared() -> Result<String> {
    static OWN: OnceLock<Result<Server>> = OnceLock::new();
    if let Ok(named) = std::env::var(VARIABLE) {
        return Ok(named);
    }
    match OWN.get_or_init(|| Server::start(&[])) {
        Ok(server) => Ok(server.address()),
        Err(failure) => Err(failure.clone()),
    }
}
