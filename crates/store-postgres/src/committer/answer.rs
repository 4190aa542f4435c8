//! One-shot answers that wake all callers of a group together.
//!
//! Tokio wakes a second thread for a task woken from a running task. Waking the thirty callers of a
//! group separately wakes the thread thirty times for single tasks; on a busy machine the thread
//! even takes the core of the waker. Yielded tasks, in contrast, are woken together when a thread
//! runs out of work, with at most one thread wake-up. So the wakers are passed to the runtime as a
//! yielding task.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The sending half of an answer. Dropping it unanswered ends the receiver's wait.
#[derive(Debug)]
pub(super) struct Answer<T>(Arc<Slot<T>>);

/// The receiving half of an answer.
#[derive(Debug)]
pub(super) struct Answered<T>(Arc<Slot<T>>);

#[derive(Debug)]
struct Slot<T>(Mutex<State<T>>);

#[derive(Debug)]
enum State<T> {
    Open(Option<Waker>),
    Given(T),
    /// There is no answer, or it has been taken.
    Over,
}

/// The wakers of answered callers. Dropping the batch wakes them.
#[derive(Debug, Default)]
pub(super) struct WakeBatch(Vec<Waker>);

pub(super) fn answer<T>() -> (Answer<T>, Answered<T>) {
    let slot = Arc::new(Slot(Mutex::new(State::Open(None))));
    (Answer(Arc::clone(&slot)), Answered(slot))
}

impl<T> Answer<T> {
    /// Stores the answer and adds the receiver's waker, if any, to the batch.
    pub(super) fn give(self, answer: T, wakes: &mut WakeBatch) {
        wakes.0.extend(self.0.end(State::Given(answer)));
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if let Some(waker) = self.0.end(State::Over) {
            waker.wake();
        }
    }
}

impl<T> Slot<T> {
    /// Ends the wait, unless it has ended, and returns the waker.
    fn end(&self, end: State<T>) -> Option<Waker> {
        let mut state = self.state();
        match &mut *state {
            State::Open(waker) => {
                let waker = waker.take();
                *state = end;
                waker
            }
            State::Given(_) | State::Over => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Future for Answered<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.state();
        match std::mem::replace(&mut *state, State::Over) {
            State::Open(waiting) => {
                let same = waiting.filter(|waker| waker.will_wake(context.waker()));
                *state = State::Open(Some(same.unwrap_or_else(|| context.waker().clone())));
                Poll::Pending
            }
            State::Given(answer) => Poll::Ready(Some(answer)),
            State::Over => Poll::Ready(None),
        }
    }
}

impl Drop for WakeBatch {
    fn drop(&mut self) {
        // A single waker gains nothing from batching and would be delayed.
        if self.0.len() <= 1 {
            self.0.drain(..).for_each(Waker::wake);
            return;
        }
        let combined = Arc::new(CombinedWaker(Mutex::new(std::mem::take(&mut self.0))));
        let waker = Waker::from(Arc::clone(&combined));
        // A pending yield wakes its task later. A yield outside of a runtime is ready at once.
        if pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&waker)).is_ready() {
            waker.wake();
        }
    }
}

/// Several wakers behind one.
struct CombinedWaker(Mutex<Vec<Waker>>);

impl Wake for CombinedWaker {
    fn wake(self: Arc<CombinedWaker>) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn early_and_late_receivers_get_their_own_answers() {
        for waiting in 1..=3 {
            let (answers, waits): (Vec<_>, Vec<_>) = (0..waiting).map(|_| answer()).unzip();
            let waits: Vec<_> = waits.into_iter().map(tokio::spawn).collect();
            let (last, comes_later) = answer();
            tokio::task::yield_now().await;
            let mut wakes = WakeBatch::default();
            for (number, answer) in answers.into_iter().enumerate() {
                answer.give(number, &mut wakes);
            }
            last.give(99, &mut wakes);
            assert_eq!(wakes.0.len(), waiting);
            drop(wakes);
            for (number, waits) in waits.into_iter().enumerate() {
                assert_eq!(waits.await.unwrap(), Some(number));
            }
            assert_eq!(comes_later.await, Some(99));
        }
    }

    #[tokio::test]
    async fn several_receivers_are_woken_together_later_and_one_at_once() {
        for (waiting, at_once) in [(1, 1), (3, 0)] {
            let woken = Arc::new(Counted::default());
            let waker = Waker::from(Arc::clone(&woken));
            let (answers, mut waits): (Vec<_>, Vec<_>) = (0..waiting).map(|_| answer()).unzip();
            for waits in &mut waits {
                assert!(Pin::new(waits).poll(&mut Context::from_waker(&waker)).is_pending());
            }
            let mut wakes = WakeBatch::default();
            for answer in answers {
                answer.give(1, &mut wakes);
            }
            drop(wakes);
            assert_eq!(woken.0.load(Ordering::SeqCst), at_once);
            tokio::task::yield_now().await;
            assert_eq!(woken.0.load(Ordering::SeqCst), waiting);
        }
    }

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Counted>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn a_dropped_answer_ends_the_wait() {
        let (answer, answered) = answer::<u8>();
        let waits = tokio::spawn(answered);
        tokio::task::yield_now().await;
        drop(answer);
        assert_eq!(waits.await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_answer_without_a_receiver_is_dropped() {
        let (answer, answered) = answer();
        let waits = tokio::spawn(answered);
        tokio::task::yield_now().await;
        waits.abort();
        assert!(waits.await.is_err());
        answer.give(1, &mut WakeBatch::default());
    }

    /// Outside of a runtime there is no later, so the batch wakes its callers at once.
    #[test]
    fn receivers_are_woken_at_once_outside_of_a_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (answers, waits): (Vec<_>, Vec<_>) = (0..2).map(|_| answer()).unzip();
        let waits: Vec<_> = waits.into_iter().map(|waits| runtime.spawn(waits)).collect();
        runtime.block_on(tokio::task::yield_now());
        let mut wakes = WakeBatch::default();
        for answer in answers {
            answer.give(1, &mut wakes);
        }
        assert_eq!(wakes.0.len(), 2);
        drop(wakes);
        for waits in waits {
            assert_eq!(runtime.block_on(waits).unwrap(), Some(1));
        }
    }
}
