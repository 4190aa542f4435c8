//! Power loss under the embedded store.
//!
//! A layer below SQLite ([`vfs`]) records what the real store asks of its disk. From a [`recording`](record) the
//! directory can be built as a power cut at any point may leave it ([`disk`], [`cut`]): what was synced is there, of
//! the rest any part may be. Each such image is opened by the real store on the ordinary disk and held against what
//! was acknowledged before the cut ([`check`]).

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
