//! The embedded store: one directory, one SQLite database, one writing process.
//!
//! It is a log-structured store over SQLite. A commit is durable in a write-ahead log (`log`) and
//! readable from a memtable (`memtable`) before SQLite has its rows; a flusher (`flush`) writes
//! them to typed tables (`tables`, `schema`) many groups at a time. One thread decides (`writer`),
//! with the store port's judge as the only rule, and an index of idempotency keys (`key_index`)
//! that spares it most look-ups. `docs/storage/embedded.md` describes the whole.

mod clock;
mod error;
mod flush;
mod key_index;
mod log;
mod memtable;
mod open;
mod options;
mod readers;
mod schema;
mod store;
mod tables;
mod writer;

pub use clock::{SystemTime, TimeSource};
pub use error::OpenError;
pub use log::{DiskFiles, LogFile, LogStorage};
pub use options::{Fault, FaultHook, FaultPoint, LogBounds, Observe, Options, SqliteWalBounds};
pub use schema::FORMAT;
pub use store::EmbeddedStore;
