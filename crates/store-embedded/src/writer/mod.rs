//! The writer: one thread that decides about every change set.
//!
//! It takes all sets that wait as one group, judges them in order against a cached image of the
//! rows, appends the admitted ones to the write-ahead log with one sync, hands them to the flusher
//! and answers each set. [`Queue`] is the bounded way in; [`Writer`] handles one group; `ids`
//! knows which rows cannot exist yet, so that they need no look-up.
//!
//! Promises: a set is answered as committed only after its group is durable. A refused set leaves
//! its neighbours alone. Nobody waits for ever, whatever happens to the thread.

mod group;
mod ids;
mod queue;

pub(crate) use group::{Shared, Writer};
pub(crate) use queue::{Job, Queue};

use std::sync::OnceLock;

/// Whether writing may go on. After a failure, only opening the store again helps.
#[derive(Debug, Default)]
pub(crate) struct Health(OnceLock<String>);

impl Health {
    /// Why nothing is written any more; none while the store is well.
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
