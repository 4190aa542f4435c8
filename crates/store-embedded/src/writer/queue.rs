//! The bounded queue in front of the writer, and the writer's thread.

use super::group::Writer;
use crate::error::OpenError;
use counterfoil_core::types::limits::{COMMIT_QUEUE_MAX, SETS_PER_GROUP_MAX};
use counterfoil_store::codec::touched;
use counterfoil_store::{Change, ChangeSet, CommitError, CommitReceipt};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use tokio::sync::oneshot;

/// A group takes no further set after this many changes: some 50 ms of writing, for which the next
/// group waits. Only bulk sets get there.
const CHANGES_PER_GROUP_MAX: usize = 4_096;

/// A waiting set, with everything that can be prepared on its caller's thread.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) set: ChangeSet,
    pub(super) touched: Vec<u8>,
    pub(super) answer: oneshot::Sender<Result<CommitReceipt, CommitError>>,
}

/// The way to the writer.
#[derive(Debug)]
pub(crate) struct Queue {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Queue {
    /// Starts the writer's thread.
    pub(crate) fn start(writer: Writer) -> Result<Queue, OpenError> {
        let (jobs, waiting) = sync_channel(COMMIT_QUEUE_MAX);
        let thread = Builder::new().name("store-writer".to_owned()).spawn(move || run(writer, &waiting))?;
        Ok(Queue { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Enqueues a set and waits for its answer. The set is committed or refused even if the caller
    /// stops waiting.
    pub(crate) async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let id = set.id();
        let (answer, answered) = oneshot::channel();
        let job = Job { touched: touched::encode(set.changes().iter().map(Change::key)), set, answer };
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        match jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(CommitError::Throttled),
            Err(TrySendError::Disconnected(_)) => return Err(ended()),
        }
        // The writer died over the set, which may have been written.
        answered.await.unwrap_or(Err(CommitError::InDoubt(id)))
    }

    /// Lets the writer finish the waiting sets and ends its thread.
    pub(crate) fn stop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the writer drops the waiters, which answers them.
            let _ = thread.join();
        }
    }
}

fn ended() -> CommitError {
    CommitError::Unavailable("the store's writer has ended; restart to recover".to_owned())
}

fn run(mut writer: Writer, waiting: &Receiver<Job>) {
    let _closes_the_flusher = writer.close_guard();
    let mut group = Vec::with_capacity(SETS_PER_GROUP_MAX);
    while let Ok(first) = waiting.recv() {
        gather(first, waiting, &mut group);
        writer.commit(&mut group);
    }
}

/// Takes the waiting sets. Sets gather while the previous group is committed, so waiting for more
/// would only add latency.
fn gather(first: Job, waiting: &Receiver<Job>, group: &mut Vec<Job>) {
    let mut changes = first.set.changes().len();
    group.push(first);
    while group.len() < SETS_PER_GROUP_MAX
        && changes < CHANGES_PER_GROUP_MAX
        && let Ok(job) = waiting.try_recv()
    {
        changes = changes.saturating_add(job.set.changes().len());
        group.push(job);
    }
}
