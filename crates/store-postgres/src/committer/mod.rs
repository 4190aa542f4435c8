//! The committers: tasks that take queued sets as a group, read and lock their rows, let the judge
//! decide set after set, write the admitted sets in one transaction, and answer each.
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
