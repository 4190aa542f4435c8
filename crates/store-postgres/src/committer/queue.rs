//! The bounded queue in front of the committers, and how it is parted into groups.
//!
//! Promises: a set is taken by one committer once, also if one stops taking half-way; nobody is left behind twice, and nobody is waited
//! for longer than [`PATIENCE`].

use super::answer::{Answer, Answered, WakeBatch, answer};
use super::ids::{Ids, InProgressId};
use counterfoil_core::types::limits::{COMMIT_QUEUE_MAX, SETS_PER_GROUP_MAX};
use counterfoil_store::codec::touched;
use counterfoil_store::{Change, ChangeSet, CommitError, Receipt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::{Instant, timeout_at};

/// From so many sets of one kind on, a group is of that kind only. What adds rows and what changes some are different
/// statements; one that does both costs nearly as much as two, so it only pays for few.
const APART: usize = 8;
/// A group is worth its costs if it is at least this part of what other committers have in hand. A smaller one waits for
/// those: they are about to answer, and who is answered comes back.
const WORTH: usize = 4;
/// But not for long: they may be held up.
const PATIENCE: Duration = Duration::from_millis(3);

/// A set that waits, with what can be prepared by its caller.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) set: ChangeSet,
    /// What it touches, to store.
    pub(super) touched: Vec<u8>,
    id: InProgressId,
    answer: Answer<Result<Receipt, CommitError>>,
}

impl Job {
    fn new(set: ChangeSet, id: InProgressId) -> (Job, Answered<Result<Receipt, CommitError>>) {
        let (answer, answered) = answer();
        let touched = touched::encode(set.changes().iter().map(Change::key));
        (Job { set, touched, id, answer }, answered)
    }

    /// Answers; who waits is woken with the others.
    pub(super) fn answer(self, result: Result<Receipt, CommitError>, wakes: &mut WakeBatch) {
        let Job { id, answer, .. } = self;
        if let Ok(receipt) = result {
            id.committed(receipt);
        }
        // Who is told asks at once.
        drop(id);
        // Nobody may wait any more: the caller went away, the commit stands.
        answer.give(result, wakes);
    }

    /// Whether it is about rows that are there, and not only about new ones.
    fn changes_rows(&self) -> bool {
        self.set.changes().iter().any(|change| !matches!(change, Change::Insert(_)))
    }
}

/// The way to the committers.
#[derive(Debug)]
pub(crate) struct Queue {
    jobs: mpsc::Sender<Job>,
    ids: Arc<Ids>,
}

/// Where the committers take their groups from.
#[derive(Debug)]
pub(crate) struct Waiting {
    pending: Mutex<Pending>,
    /// How many sets committers have in hand.
    in_hand: AtomicUsize,
    /// One of them is done with its group.
    done: Notify,
}

/// Sets that wait.
#[derive(Debug)]
struct Pending {
    coming: mpsc::Receiver<Job>,
    /// Those at its head, at most as many as a group takes.
    next: VecDeque<Job>,
    /// Whether the group before left those at its very head behind.
    left_behind: bool,
}

/// A group, in the hands of who took it until this is dropped.
#[derive(Debug)]
pub(super) struct Taken<'w> {
    waiting: &'w Waiting,
    sets: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.waiting.in_hand.fetch_sub(self.sets, Ordering::AcqRel);
        self.waiting.done.notify_one();
    }
}

impl Queue {
    pub(crate) fn new(ids: Arc<Ids>) -> (Queue, Arc<Waiting>) {
        let (jobs, coming) = mpsc::channel(COMMIT_QUEUE_MAX);
        let pending = Mutex::new(Pending { coming, next: VecDeque::new(), left_behind: false });
        (
            Queue { jobs, ids },
            Arc::new(Waiting { pending, in_hand: AtomicUsize::new(0), done: Notify::new() }),
        )
    }

    /// Hands a set over and waits for its answer. The set is committed or refused even if nobody waits any more.
    pub(crate) async fn commit(&self, set: ChangeSet) -> Result<Receipt, CommitError> {
        let id = set.id();
        // Until it is known what becomes of it, somebody else is in the way.
        let Some(in_hand) = self.ids.take(id) else { return Err(CommitError::Conflict) };
        let (job, answered) = Job::new(set, in_hand);
        match self.jobs.try_send(job) {
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
    /// A group of sets that wait, at least one; nothing once the store is closed. Who is ready to run may run first: those
    /// that a group has just answered come back at once and would else be split over many small groups, each with a
    /// group's costs. Otherwise more is waited for only while so few wait that they had better go with those in hand.
    pub(super) async fn take(&self) -> Option<(Vec<Job>, Taken<'_>)> {
        let mut pending = self.pending.lock().await;
        if pending.next.is_empty() {
            let first = pending.coming.recv().await?;
            pending.next.push_back(first);
        }
        pending.fill().await;
        let latest = Instant::now() + PATIENCE;
        while !self.is_worth(&pending) && timeout_at(latest, pending.more(&self.done)).await.is_ok() {
            pending.fill().await;
        }
        let group = pending.group();
        self.in_hand.fetch_add(group.len(), Ordering::AcqRel);
        let taken = Taken { waiting: self, sets: group.len() };
        Some((group, taken))
    }

    fn is_worth(&self, pending: &Pending) -> bool {
        pending.next.len().saturating_mul(WORTH) >= self.in_hand.load(Ordering::Acquire)
    }

    /// Whether the store is closed and nothing waits. While another committer waits at the pending it is not: that one would have ended.
    pub(super) fn is_over(&self) -> bool {
        let pending = self.pending.try_lock();
        pending.is_ok_and(|pending| {
            pending.next.is_empty() && pending.coming.is_closed() && pending.coming.is_empty()
        })
    }
}

impl Pending {
    async fn fill(&mut self) {
        // Once for those who have been answered to be woken, once for them to run.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        while self.next.len() < SETS_PER_GROUP_MAX
            && let Ok(job) = self.coming.try_recv()
        {
            self.next.push_back(job);
        }
    }

    /// Waits for another set, or until a committer is done.
    async fn more(&mut self, done: &Notify) {
        tokio::select! {
            Some(job) = self.coming.recv() => self.next.push_back(job),
            () = done.notified() => {}
        }
    }

    /// All that wait; or those of the kind that most are of, if the others were not left behind before.
    fn group(&mut self) -> Vec<Job> {
        let changing = self.next.iter().filter(|job| job.changes_rows()).count();
        let adding = self.next.len().saturating_sub(changing);
        if self.left_behind || changing.max(adding) < APART || changing.min(adding) == 0 {
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
        let in_hand = queue.ids.take(set.id()).unwrap();
        queue.jobs.try_send(Job::new(set, in_hand).0).unwrap();
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
    async fn few_sets_go_together_whatever_they_are() {
        let (_queue, waiting) = queued(7, 7);
        assert_eq!(kinds(&waiting.take().await.unwrap().0), (7, 7));
    }

    #[tokio::test]
    async fn many_of_a_kind_go_alone_and_the_others_with_whoever_comes_next() {
        let (queue, waiting) = queued(8, 9);
        let (group, taken) = waiting.take().await.unwrap();
        assert_eq!(kinds(&group), (0, 9));
        drop(taken);
        for number in 200..230 {
            send(&queue, changing(number));
        }
        assert_eq!(kinds(&waiting.take().await.unwrap().0), (8, 30));
    }

    #[tokio::test]
    async fn a_set_alone_goes_with_those_that_a_committer_is_about_to_answer() {
        let (queue, waiting) = queued(9, 0);
        let (group, taken) = waiting.take().await.unwrap();
        assert_eq!(group.len(), 9);
        send(&queue, changing(1));
        let next = async {
            let (group, _taken) = waiting.take().await.unwrap();
            kinds(&group)
        };
        let answered = async {
            for number in 2..4 {
                send(&queue, changing(number));
            }
            drop(taken);
        };
        let (kinds, ()) = tokio::join!(next, answered);
        assert_eq!(kinds, (0, 3));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_committer_that_is_held_up() {
        let (queue, waiting) = queued(9, 0);
        let _held_up = waiting.take().await.unwrap();
        send(&queue, changing(1));
        assert_eq!(waiting.take().await.unwrap().0.len(), 1);
    }

    #[tokio::test]
    async fn who_asks_whether_it_is_over_does_not_wait_for_who_waits_for_sets() {
        let (queue, waiting) = queued(0, 0);
        let mut taking = Box::pin(waiting.take());
        let asked = poll_fn(|context| {
            assert!(taking.as_mut().poll(context).is_pending());
            Poll::Ready(waiting.is_over())
        });
        assert!(!asked.await);
        drop(queue);
        assert!(taking.await.is_none());
        assert!(waiting.is_over());
    }

    #[tokio::test]
    async fn who_stops_taking_half_way_loses_nothing() {
        let (queue, waiting) = queued(9, 0);
        let held_up = waiting.take().await.unwrap();
        send(&queue, changing(1));
        let mut taking = Box::pin(waiting.take());
        // Until it has the set out of the queue.
        while queue.jobs.capacity() < COMMIT_QUEUE_MAX {
            let once = poll_fn(|context| Poll::Ready(taking.as_mut().poll(context).is_pending()));
            assert!(once.await);
        }
        drop((taking, held_up));
        assert_eq!(waiting.take().await.unwrap().0.len(), 1);
    }
}
