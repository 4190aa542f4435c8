//! Work that outlives the waiting request.
//!
//! The waiting request polls the work itself, which saves a task and two wake-ups per request. If
//! the client hangs up, the rest of the work becomes a background task.

use crate::world::World;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Running work. Resolves to the result, or to `None` if it panicked.
pub(crate) struct DetachOnDrop<'w, W: World, T: Send + 'static> {
    /// `None` after the end and during a poll, so that work that panicked is never polled again.
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    world: &'w W,
}

impl<'w, W: World, T: Send> DetachOnDrop<'w, W, T> {
    pub(crate) fn new(world: &'w W, work: impl Future<Output = T> + Send + 'static) -> Self {
        DetachOnDrop { work: Some(Box::pin(work)), world }
    }
}

impl<W: World, T: Send> Future for DetachOnDrop<'_, W, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(mut work) = self.work.take() else { return Poll::Ready(None) };
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Ready(end)) => Poll::Ready(Some(end)),
            Ok(Poll::Pending) => {
                self.work = Some(work);
                Poll::Pending
            }
            Err(_) => Poll::Ready(None),
        }
    }
}

impl<W: World, T: Send> Drop for DetachOnDrop<'_, W, T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.world.spawn(async move { drop(work.await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::TokioWorld;
    use std::task::Waker;
    use tokio::sync::oneshot;

    fn polled<T: Send>(detach: &mut DetachOnDrop<'_, TokioWorld, T>) -> Poll<Option<T>> {
        Pin::new(detach).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn abandoned_work_continues_in_the_background() {
        let (world, (go, on), (sender, receiver)) =
            (TokioWorld::new(), oneshot::channel(), oneshot::channel());
        let mut detach = DetachOnDrop::new(&world, async move {
            on.await.unwrap();
            sender.send(7).unwrap();
        });
        assert!(polled(&mut detach).is_pending());
        drop(detach);
        go.send(()).unwrap();
        assert_eq!(receiver.await, Ok(7));
    }

    #[tokio::test]
    async fn finished_work_is_not_polled_again() {
        let world = TokioWorld::new();
        let mut detach = DetachOnDrop::new(&world, async { 7 });
        assert_eq!(polled(&mut detach), Poll::Ready(Some(7)));
        assert_eq!(polled(&mut detach), Poll::Ready(None));
    }

    #[tokio::test]
    async fn a_panic_ends_the_work_and_not_its_waiter() {
        let (world, (held, lost)) = (TokioWorld::new(), oneshot::channel::<()>());
        let mut detach = DetachOnDrop::new(&world, async move {
            let _held = held;
            panic!("provoked by this test");
        });
        assert_eq!(polled(&mut detach), Poll::Ready(None));
        assert!(lost.await.is_err(), "its captured values are dropped");
    }

    /// A client's future may be dropped after the runtime has ended. A panic there would end the
    /// process.
    #[test]
    fn dropping_it_without_a_runtime_ends_the_work() {
        let (world, (held, mut lost)) = (TokioWorld::new(), oneshot::channel::<()>());
        drop(DetachOnDrop::new(&world, async move { drop(held) }));
        assert!(lost.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
    }
}
