//! Groups that are durable in the write-ahead log and not yet in SQLite, in two forms.
//!
//! * [`Memtable`]: the newest version of each row by its key, for readers and for the writer. It
//!   is shared under the flusher's inbox lock.
//! * [`FlushBatch`]: the writes in order, folded so that a row which changes several times before
//!   a flush is written once, or never. Only the flusher's thread owns it.
//!
//! Both receive every [`DurableGroup`] exactly once and drop its rows after the flush.

mod batch;
mod rows;

pub(crate) use batch::{DurableGroup, FlushBatch, GroupTotals};
pub(crate) use rows::{Memtable, RowVersion};
