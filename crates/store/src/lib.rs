//! The storage port: every change of state is one atomic [`ChangeSet`] with its preconditions inside, and a store
//! either commits all of it or says which precondition failed and what it found there.
//!
//! There is no `begin` and no closure over a transaction, because the weakest backend has neither. Whether a set
//! may commit is decided by one pure function, [`judge::judge`]; the stores only bring the rows.

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
    RefusalReason, Scan, Store, Tally, Upto,
};
pub use row::{ClaimMap, KeyMap, KeySet, Row, RowKey, UNTOLD, adopted};
