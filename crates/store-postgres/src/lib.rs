//! The store on PostgreSQL 15 or newer: several processes, one database.
//!
//! The store fulfils the port's promises with the durability of the server: a commit is answered
//! after the server has confirmed it. If the confirmation is lost, the commit is in doubt, and its
//! id resolves the doubt. Rows are kept in typed tables with constraints that also hold against raw
//! SQL. The judge alone decides whether a set may commit. `docs/storage/postgres.md` describes the
//! tables.

mod barrier;
mod clock;
mod committer;
mod error;
mod history;
mod open;
mod options;
mod readers;
mod schema;
mod session;
mod shared;
mod store;
mod tables;
mod wake;

pub use error::OpenError;
pub use options::{Observe, Options};
pub use schema::{Migrated, NEEDED, Reach, VERSION, migrate};
#[doc(hidden)]
pub use schema::{MigrationStep, Schema};
pub use store::PostgresStore;

/// All statements by name, for a test of their plans.
#[doc(hidden)]
pub fn statements() -> Vec<(String, String)> {
    store::statements()
}
