//! The bounded queue in front of the committers.

use crate::tables::commits;
use counterfoil_core::types::limits::{COMMIT_QUEUE_MAX, SETS_PER_GROUP_MAX};
use counterfoil_store::{ChangeSet, CommitError, Receipt};
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, mpsc, oneshot};

/// A set that waits, with what can be prepared by its caller.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) set: ChangeSet,
    pub(super) touched: String,
    answer: oneshot::Sender<Result<Receipt, CommitError>>,
}

impl Job {
    pub(super) fn answer(self, result: Result<Receipt, CommitError>) {
        // Nobody may wait any more: the caller went away, the commit stands.
        let _ = self.answer.send(result);
    }
}

/// The way to the committers.
#[derive(Debug)]
pub(crate) struct Queue(mpsc::Sender<Job>);

/// Where the committers take their groups from.
#[derive(Debug)]
pub(crate) struct Waiting(Mutex<mpsc::Receiver<Job>>);

impl Queue {
    pub(crate) fn new() -> (Queue, Arc<Waiting>) {
        let (jobs, waiting) = mpsc::channel(COMMIT_QUEUE_MAX);
        (Queue(jobs), Arc::new(Waiting(Mutex::new(waiting))))
    }

    /// Hands a set over and waits for its answer. The set is committed or refused even if nobody waits any more.
    pub(crate) async fn commit(&self, set: ChangeSet) -> Result<Receipt, CommitError> {
        let id = set.id();
        let (answer, answered) = oneshot::channel();
        let job = Job { touched: commits::touched(set.changes()), set, answer };
        match self.0.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(CommitError::Throttled),
            Err(TrySendError::Closed(_)) => {
                return Err(CommitError::Unavailable("the store's committers have ended".to_owned()));
            }
        }
        // No answer means that a committer died with the set in its hands: it may have been written.
        answered.await.unwrap_or(Err(CommitError::InDoubt(id)))
    }
}

impl Waiting {
    /// Every set that waits, at least one; nothing once the store is closed. More is never waited for: the group
    /// before this one was the waiting time. But who is ready to run may run first: those that a group has just
    /// answered come back at once and would else be split over many small groups, each with a group's costs.
    pub(super) async fn take(&self) -> Option<Vec<Job>> {
        let mut waiting = self.0.lock().await;
        let mut group = Vec::with_capacity(waiting.len());
        group.push(waiting.recv().await?);
        tokio::task::yield_now().await;
        while group.len() < SETS_PER_GROUP_MAX
            && let Ok(job) = waiting.try_recv()
        {
            group.push(job);
        }
        Some(group)
    }

    /// Whether the store is closed and nothing waits.
    pub(super) async fn is_over(&self) -> bool {
        let waiting = self.0.lock().await;
        waiting.is_closed() && waiting.is_empty()
    }
}
