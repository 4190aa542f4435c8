//! The bounded queue in front of the writer, and the thread behind it.

use super::group::Writer;
use crate::error::OpenError;
use counterfoil_core::types::limits::{COMMIT_QUEUE_MAX, SETS_PER_GROUP_MAX};
use counterfoil_store::codec::touched;
use counterfoil_store::{Change, ChangeSet, CommitError, CommitReceipt};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use tokio::sync::oneshot;

/// Changes after which a group takes no further set: some 50 ms of writing, which those behind it wait for. Only bulk
/// sets get there.
const CHANGES_PER_GROUP_MAX: usize = 4_096;

/// A set that waits, with what can be prepared on its caller's thread.
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
        let thread = Builder::new().name("store-writer".to_owned()).spawn(move || serve(writer, &waiting))?;
        Ok(Queue { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Hands a set over and waits for its answer. The set is committed or refused even if nobody waits any more.
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
        // No answer means the writer died with the set in its hands: it may have been written.
        answered.await.unwrap_or(Err(CommitError::InDoubt(id)))
    }

    /// Lets the writer finish what waits.
    pub(crate) fn stop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has told everyone who waited for it.
            let _ = thread.join();
        }
    }
}

fn ended() -> CommitError {
    CommitError::Unavailable("the store's writer has ended; restart to recover".to_owned())
}

fn serve(mut writer: Writer, waiting: &Receiver<Job>) {
    let _told_at_the_end = writer.ending();
    let mut group = Vec::with_capacity(SETS_PER_GROUP_MAX);
    while let Ok(first) = waiting.recv() {
        gather(first, waiting, &mut group);
        writer.commit(&mut group);
    }
}

/// What waits is taken, and more is never waited for: the group before this one was the waiting time.
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
