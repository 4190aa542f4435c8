//! The embedded store: one directory, one SQLite database, one writing process.
//!
//! It promises what the port asks for, durably: a commit is answered after its sync. It keeps rows in typed tables
//! that any SQLite tool can read, and holds append-only history against raw SQL by triggers. It decides nothing:
//! whether a set may commit is the judge's word. The file's format is drawn in `docs/storage/embedded.md`.

mod background;
mod checkpoint;
mod clock;
mod connect;
mod display;
mod error;
mod lock;
mod open;
mod options;
mod progress;
mod readers;
mod redo;
mod renew;
mod schema;
mod store;
mod tables;
mod writer;

pub use clock::{SystemTime, TimeSource};
pub use error::OpenError;
pub use options::{Fault, FaultHook, FaultPoint, LogBounds, Observe, Options, RedoBounds};
pub use redo::{Files, Media, Tape};
pub use schema::FORMAT;
pub use store::EmbeddedStore;
