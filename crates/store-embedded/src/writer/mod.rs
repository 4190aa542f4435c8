//! The writer: one thread that decides about every change set.
//!
//! The waiting sets form a group. The writer judges the sets in order against a cached image of the
//! rows and appends the admitted ones to the write-ahead log with one sync. Then it passes the
//! group to the flusher and answers each set. [`Queue`] is bounded; [`Writer`] handles one group;
//! `ids` spares look-ups of rows that cannot exist yet.
//!
//! Promises: the answer *committed* comes only after the group is durable. A refused set leaves
//! the other sets of the group alone. No caller waits for ever, even if the thread dies.

mod group;
mod ids;
mod outcome;
mod queue;

pub(crate) use group::{Shared, Writer};
pub(crate) use queue::{Job, Queue};

use std::sync::OnceLock;

/// Whether writing may go on. After a failure, only opening the store again helps.
#[derive(Debug, Default)]
pub(crate) struct Health(OnceLock<String>);

impl Health {
    /// The reason why writing has stopped; none while the store is well.
    pub(crate) fn ailment(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Stops all writing.
    pub(crate) fn fail(&self, reason: String) {
        tracing::error!(%reason, "the store stops writing; restart to recover");
        // The first reason is kept.
        let _ = self.0.set(reason);
    }
}
