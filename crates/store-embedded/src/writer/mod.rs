//! The one thread that decides: it takes every set that waits, judges them in order, appends those that hold to the redo log
//! with one sync, and then answers each. The database gets them later, many groups together.
//!
//! Promises: a set is answered as committed only after its group is durable; one set's refusal leaves its
//! neighbours alone; the queue is bounded; nobody waits for ever, whatever happens to the thread.

mod filter;
mod group;
mod ids;
mod keys;
mod queue;

pub(crate) use group::{Shared, Writer};
pub(crate) use keys::Home;
pub(crate) use queue::{Job, Queue};

use std::sync::OnceLock;

/// Whether writing may go on. Once it may not, only opening the store again helps.
#[derive(Debug, Default)]
pub(crate) struct Health(OnceLock<String>);

impl Health {
    /// Why nothing is written any more, if so.
    pub(crate) fn ailment(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Stops all writing.
    pub(crate) fn fail(&self, reason: String) {
        tracing::error!(%reason, "the store stops writing; restart to recover");
        // The first reason is the one that counts.
        let _ = self.0.set(reason);
    }
}
