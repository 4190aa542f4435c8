//! The store on PostgreSQL 15 or newer: several processes, one database.
//!
//! It promises what the port asks for, with the server's own durability: a commit is answered after the server has
//! confirmed it, and one whose confirmation was lost is in doubt until its id tells. It keeps rows in typed tables with
//! constraints that hold against raw SQL too. It decides nothing: whether a set may commit is the judge's word, given
//! under row locks. The tables and what each is for are drawn in `docs/storage/postgres.md`.

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
pub use store::PostgresStore;

/// The statements whose plans matter, by name, for a test that looks at them.
#[doc(hidden)]
pub fn statements() -> Vec<(String, String)> {
    store::statements()
}
