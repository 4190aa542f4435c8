//! How those who wait for a group are answered: each gets its own answer, and all are woken together.
//!
//! Who is woken by a task becomes ready at once, and another thread of the runtime is called to take it over. When the thirty that wait
//! for a group are woken one after the other, that thread is called thirty times, finds one task each time and sleeps again; on a busy
//! machine it takes the very core of who calls it. What the runtime wakes by itself, when a thread has nothing else to do, it wakes
//! together and calls for help once. So the wakers are handed to it as one that yielded.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Gives one answer. Dropped without one, it answers that there is none.
#[derive(Debug)]
pub(super) struct Answer<T>(Arc<Slot<T>>);

/// Waits for the answer.
#[derive(Debug)]
pub(super) struct Answered<T>(Arc<Slot<T>>);

#[derive(Debug)]
struct Slot<T>(Mutex<State<T>>);

#[derive(Debug)]
enum State<T> {
    Open(Option<Waker>),
    Given(T),
    /// There is no answer, or it was taken.
    Over,
}

/// Those who have been answered and are to be woken; dropping it wakes them.
#[derive(Debug, Default)]
pub(super) struct Sleepers(Vec<Waker>);

pub(super) fn answer<T>() -> (Answer<T>, Answered<T>) {
    let slot = Arc::new(Slot(Mutex::new(State::Open(None))));
    (Answer(Arc::clone(&slot)), Answered(slot))
}

impl<T> Answer<T> {
    /// Answers. Who waits is woken with the others; perhaps nobody waits any more.
    pub(super) fn give(self, answer: T, sleepers: &mut Sleepers) {
        sleepers.0.extend(self.0.end(State::Given(answer)));
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
    /// Ends the waiting, if it is not over, and says who waits.
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

impl Drop for Sleepers {
    fn drop(&mut self) {
        if self.0.is_empty() {
            return;
        }
        let together = Arc::new(Together(Mutex::new(std::mem::take(&mut self.0))));
        let waker = Waker::from(Arc::clone(&together));
        // What says that it is not ready wakes later whoever asked.
        if pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&waker)).is_ready() {
            waker.wake();
        }
    }
}

/// Wakers that are one.
struct Together(Mutex<Vec<Waker>>);

impl Wake for Together {
    fn wake(self: Arc<Together>) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_and_who_comes_later_get_their_own_answers() {
        let (first, waits) = answer();
        let (second, comes_later) = answer();
        let waits = tokio::spawn(waits);
        tokio::task::yield_now().await;
        let mut sleepers = Sleepers::default();
        first.give(1, &mut sleepers);
        second.give(2, &mut sleepers);
        assert_eq!(sleepers.0.len(), 1, "one is asleep");
        assert!(!waits.is_finished());
        drop(sleepers);
        assert_eq!((waits.await.unwrap(), comes_later.await), (Some(1), Some(2)));
    }

    #[tokio::test]
    async fn who_is_never_answered_is_told_so() {
        let (answer, answered) = answer::<u8>();
        let waits = tokio::spawn(answered);
        tokio::task::yield_now().await;
        drop(answer);
        assert_eq!(waits.await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_answer_that_nobody_waits_for_any_more_is_given_all_the_same() {
        let (answer, answered) = answer();
        let waits = tokio::spawn(answered);
        tokio::task::yield_now().await;
        waits.abort();
        assert!(waits.await.is_err());
        answer.give(1, &mut Sleepers::default());
    }

    /// Also where no runtime is at hand to wake anybody later.
    #[test]
    fn who_is_answered_from_outside_is_woken_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (answer, answered) = answer();
        let waits = runtime.spawn(answered);
        runtime.block_on(tokio::task::yield_now());
        answer.give(1, &mut Sleepers::default());
        assert_eq!(runtime.block_on(waits).unwrap(), Some(1));
    }
}
