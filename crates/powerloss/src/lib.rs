//! Power loss under the embedded store.
//!
//! A layer below SQLite ([`vfs`]) records every disk operation of the real store. From a
//! [`recording`](record), [`cut`] builds the directory as a power cut at any point may leave it:
//! all synced bytes, and any part of the others ([`disk`]). The real store opens each such image on
//! an ordinary disk, and [`check`] compares it with the answers given before the cut.

pub mod campaign;
pub mod chance;
pub mod check;
pub mod cut;
pub mod disk;
mod dump;
pub mod media;
pub mod plan;
pub mod record;
pub mod rows;
pub mod story;
pub mod vfs;
pub mod workload;
