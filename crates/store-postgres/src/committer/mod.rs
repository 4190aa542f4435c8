//! The committers. A committer takes queued sets as a group, reads and locks rows, lets the judge
//! decide set after set, writes the admitted sets in a single transaction, and answers all callers.
//!
//! Promises: a set is answered as committed only after the server has confirmed its group. A
//! refused set does not affect the others. The queue and all waits are bounded. All processes lock
//! and insert rows in the same order, so groups wait for each other without deadlocks.

mod answer;
mod attempt;
mod group;
mod ids;
mod lookups;
mod memory;
mod queue;
mod writes;

pub(crate) use group::Committer;
pub(crate) use ids::{Ids, Standing};
pub(crate) use memory::Memory;
pub(crate) use queue::{Job, Queue, Waiting};
