//! The tasks that write: each takes every set that waits, locks and reads the rows they name, lets the judge decide
//! set after set, writes those that hold in one transaction, and then answers each.
//!
//! Promises: a set is answered as committed only after the server has confirmed its group; one set's refusal leaves its
//! neighbours alone; the queue is bounded; nobody waits for ever. Rows are locked and inserted in one order by all
//! processes, so groups wait for each other but never in a circle.

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
