//! The storage port. Every change of state is an atomic [`ChangeSet`], preconditions included. A
//! store commits the whole set, or reports the precondition that failed and the row it found.
//!
//! The port has no `begin` and no closure over a transaction, because the weakest backend supports
//! neither. One pure function, [`judge::judge`], decides whether a set may commit; a store only
//! supplies the rows.

#![deny(clippy::disallowed_methods)]

pub mod change;
pub mod codec;
pub mod conformance;
pub mod judge;
pub mod memory;
pub mod port;
pub mod row;

pub use change::{Change, ChangeSet, Move};
pub use port::{
    CommitError, CommitReceipt, CommitRefusal, Committed, Due, EntryPage, Folded, Position, ReadError,
    RefusalReason, STUCK_AFTER, Scan, Store, Tally, Upto,
};
pub use row::{ClaimMap, KeyMap, KeySet, Row, RowKey};
