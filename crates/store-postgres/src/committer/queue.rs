//! The bounded queue in front of the committers, and its division into groups.
//!
//! Promises: exactly one committer takes a set, also if a `take` is cancelled. No
//! set is left behind twice. A group waits for more sets for at most [`MORE_WITHIN`].

use super::answer::{Answer, Answered, WakeBatch, answer};
use super::ids::{Ids, InProgressId};
use counterfoil_core::types::limits::{COMMIT_QUEUE_MAX, SETS_PER_GROUP_MAX};
use counterfoil_store::codec::touched;
use counterfoil_store::{Change, ChangeSet, CommitError, CommitReceipt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::{Instant, timeout_at};

/// From this number of sets on, insertions and changes form separate groups. Insertions and changes
/// are different statements. A combined statement costs nearly as much as two, so only small groups
/// are mixed.
const SEPARATE_FROM: usize = 8;
/// A group smaller than 1/4 of the sets in progress waits for them: their committers will answer
/// soon, and the answered callers send new sets.
const SMALL_PART: usize = 4;
/// The limit of that wait, because the other committer may be blocked.
const MORE_WITHIN: Duration = Duration::from_millis(3);

/// A queued set, with the data that its caller prepared.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) set: ChangeSet,
    /// The encoded keys of the set's rows.
    pub(super) touched: Vec<u8>,
    id: InProgressId,
    answer: Answer<Result<CommitReceipt, CommitError>>,
}

impl Job {
    fn new(set: ChangeSet, id: InProgressId) -> (Job, Answered<Result<CommitReceipt, CommitError>>) {
        let (answer, answered) = answer();
        let touched = touched::encode(set.changes().iter().map(Change::key));
        (Job { set, touched, id, answer }, answered)
    }

    /// Answers the caller. The batch wakes the caller's task.
    pub(super) fn answer(self, result: Result<CommitReceipt, CommitError>, wakes: &mut WakeBatch) {
        let Job { id, answer, .. } = self;
        if let Ok(receipt) = result {
            id.committed(receipt);
        }
        // The id must be free before the caller is woken: the caller may send the set again at
        // once.
        drop(id);
        answer.give(result, wakes);
    }

    /// Whether the set changes existing rows.
    fn changes_rows(&self) -> bool {
        self.set.changes().iter().any(|change| !matches!(change, Change::Insert(_)))
    }
}

/// The sending end of the queue.
#[derive(Debug)]
pub(crate) struct Queue {
    jobs: mpsc::Sender<Job>,
    ids: Arc<Ids>,
}

/// The receiving end of the queue, shared by the committers.
#[derive(Debug)]
pub(crate) struct Waiting {
    pending: Mutex<Pending>,
    /// The number of sets that committers are working on.
    in_progress: AtomicUsize,
    /// Signalled when a committer has finished a group.
    done: Notify,
}

/// The queued sets.
#[derive(Debug)]
struct Pending {
    coming: mpsc::Receiver<Job>,
    /// The first sets of the queue, at most as many as fit in a group.
    next: VecDeque<Job>,
    /// Whether the previous group left the oldest sets behind.
    left_behind: bool,
}

/// Counts a group as in progress until dropped.
#[derive(Debug)]
pub(super) struct InProgressGroup<'w> {
    waiting: &'w Waiting,
    sets: usize,
}

impl Drop for InProgressGroup<'_> {
    fn drop(&mut self) {
        self.waiting.in_progress.fetch_sub(self.sets, Ordering::AcqRel);
        self.waiting.done.notify_one();
    }
}

impl Queue {
    pub(crate) fn new(ids: Arc<Ids>) -> (Queue, Arc<Waiting>) {
        let (jobs, coming) = mpsc::channel(COMMIT_QUEUE_MAX);
        let pending = Mutex::new(Pending { coming, next: VecDeque::new(), left_behind: false });
        (
            Queue { jobs, ids },
            Arc::new(Waiting { pending, in_progress: AtomicUsize::new(0), done: Notify::new() }),
        )
    }

    /// Queues a set and waits for its answer. Dropping the future does not cancel the set.
    pub(crate) async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let id = set.id();
        // The same set is in progress, so its outcome is not known yet.
        let Some(in_progress) = self.ids.take(id) else { return Err(CommitError::Conflict) };
        let (job, answered) = Job::new(set, in_progress);
        match self.jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(CommitError::Throttled),
            Err(TrySendError::Closed(_)) => {
                return Err(CommitError::Unavailable("the store's committers have ended".to_owned()));
            }
        }
        // A missing answer means that a committer died while working on the set, which may be
        // written.
        answered.await.unwrap_or(Err(CommitError::InDoubt(id)))
    }
}

impl Waiting {
    /// A group of at least one set, or `None` once the store is closed. Tasks that are ready run
    /// first: callers that a group has just answered send new sets at once, which would otherwise
    /// spread over many small groups. Beyond that, the group waits only while it is small compared
    /// to the sets in progress.
    pub(super) async fn take(&self) -> Option<(Vec<Job>, InProgressGroup<'_>)> {
        let mut pending = self.pending.lock().await;
        if pending.next.is_empty() {
            let first = pending.coming.recv().await?;
            pending.next.push_back(first);
        }
        pending.fill().await;
        let latest = Instant::now() + MORE_WITHIN;
        while !self.is_large_enough(&pending)
            && timeout_at(latest, pending.wait_for_more(&self.done)).await.is_ok()
        {
            pending.fill().await;
        }
        let group = pending.next_group();
        self.in_progress.fetch_add(group.len(), Ordering::AcqRel);
        let in_progress = InProgressGroup { waiting: self, sets: group.len() };
        Some((group, in_progress))
    }

    fn is_large_enough(&self, pending: &Pending) -> bool {
        pending.next.len().saturating_mul(SMALL_PART) >= self.in_progress.load(Ordering::Acquire)
    }

    /// Whether the store is closed and the queue empty. A locked queue means no: a committer that
    /// waits in `take` would have ended.
    pub(super) fn is_closed(&self) -> bool {
        let pending = self.pending.try_lock();
        pending.is_ok_and(|pending| {
            pending.next.is_empty() && pending.coming.is_closed() && pending.coming.is_empty()
        })
    }
}

impl Pending {
    async fn fill(&mut self) {
        // The first yield wakes the answered callers, the second lets them run.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        while self.next.len() < SETS_PER_GROUP_MAX
            && let Ok(job) = self.coming.try_recv()
        {
            self.next.push_back(job);
        }
    }

    /// Waits for another set or for a committer to finish.
    async fn wait_for_more(&mut self, done: &Notify) {
        tokio::select! {
            Some(job) = self.coming.recv() => self.next.push_back(job),
            () = done.notified() => {}
        }
    }

    /// All queued sets, or only the more frequent kind if both kinds are numerous and no set was
    /// left behind by the previous group.
    fn next_group(&mut self) -> Vec<Job> {
        let changing = self.next.iter().filter(|job| job.changes_rows()).count();
        let adding = self.next.len().saturating_sub(changing);
        if self.left_behind || changing.max(adding) < SEPARATE_FROM || changing.min(adding) == 0 {
            self.left_behind = false;
            return self.next.drain(..).collect();
        }
        let wanted = changing > adding;
        let (group, left): (VecDeque<Job>, VecDeque<Job>) =
            self.next.drain(..).partition(|job| job.changes_rows() == wanted);
        self.next = left;
        self.left_behind = true;
        group.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_store::conformance::fixtures::{claim, opening, set};
    use std::future::poll_fn;
    use std::task::Poll;

    fn changing(number: i64) -> ChangeSet {
        set(1_000 + number).replace(claim(number), 1)
    }

    fn send(queue: &Queue, set: ChangeSet) {
        let in_progress = queue.ids.take(set.id()).unwrap();
        queue.jobs.try_send(Job::new(set, in_progress).0).unwrap();
    }

    fn queued(adding: i64, changed: i64) -> (Queue, Arc<Waiting>) {
        let (queue, waiting) = Queue::new(Arc::default());
        for set in (0..adding).map(opening).chain((0..changed).map(changing)) {
            send(&queue, set);
        }
        (queue, waiting)
    }

    fn kinds(group: &[Job]) -> (usize, usize) {
        let changing = group.iter().filter(|job| job.changes_rows()).count();
        (group.len() - changing, changing)
    }

    #[tokio::test]
    async fn few_sets_share_a_group_regardless_of_kind() {
        let (_queue, waiting) = queued(7, 7);
        assert_eq!(kinds(&waiting.take().await.unwrap().0), (7, 7));
    }

    #[tokio::test]
    async fn many_sets_of_a_kind_form_a_group_and_the_others_join_the_next() {
        let (queue, waiting) = queued(8, 9);
        let (group, in_progress) = waiting.take().await.unwrap();
        assert_eq!(kinds(&group), (0, 9));
        drop(in_progress);
        for number in 200..230 {
            send(&queue, changing(number));
        }
        assert_eq!(kinds(&waiting.take().await.unwrap().0), (8, 30));
    }

    #[tokio::test]
    async fn a_single_set_waits_for_the_sets_in_progress() {
        let (queue, waiting) = queued(9, 0);
        let (group, in_progress) = waiting.take().await.unwrap();
        assert_eq!(group.len(), 9);
        send(&queue, changing(1));
        let next = async {
            let (group, _in_progress) = waiting.take().await.unwrap();
            kinds(&group)
        };
        let answered = async {
            for number in 2..4 {
                send(&queue, changing(number));
            }
            drop(in_progress);
        };
        let (kinds, ()) = tokio::join!(next, answered);
        assert_eq!(kinds, (0, 3));
    }

    #[tokio::test]
    async fn a_blocked_committer_is_not_waited_for() {
        let (queue, waiting) = queued(9, 0);
        let _held_up = waiting.take().await.unwrap();
        send(&queue, changing(1));
        assert_eq!(waiting.take().await.unwrap().0.len(), 1);
    }

    #[tokio::test]
    async fn is_closed_does_not_wait_for_a_pending_take() {
        let (queue, waiting) = queued(0, 0);
        let mut taking = Box::pin(waiting.take());
        let asked = poll_fn(|context| {
            assert!(taking.as_mut().poll(context).is_pending());
            Poll::Ready(waiting.is_closed())
        });
        assert!(!asked.await);
        drop(queue);
        assert!(taking.await.is_none());
        assert!(waiting.is_closed());
    }

    #[tokio::test]
    async fn a_cancelled_take_loses_nothing() {
        let (queue, waiting) = queued(9, 0);
        let held_up = waiting.take().await.unwrap();
        send(&queue, changing(1));
        let mut taking = Box::pin(waiting.take());
        // Poll until the set has left the channel.
        while queue.jobs.capacity() < COMMIT_QUEUE_MAX {
            let once = poll_fn(|context| Poll::Ready(taking.as_mut().poll(context).is_pending()));
            assert!(once.await);
        }
        drop((taking, held_up));
        assert_eq!(waiting.take().await.unwrap().0.len(), 1);
    }
}
