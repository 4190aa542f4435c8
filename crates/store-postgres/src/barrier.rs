//! Barrier commits. A commit whose wait for a standby was cancelled is visible before it is safe. A
//! later commit is confirmed only after it, so a confirmed barrier makes visible commits safe.
//!
//! Promises: a barrier serves all callers from before its beginning, so hundreds of sets in doubt
//! cost a returning server few commits.

use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

/// Numbers barriers from 1.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    turn: Mutex<()>,
    begun: AtomicU64,
    done: AtomicU64,
}

impl Barrier {
    /// Waits for a barrier begun after this call, or makes the barrier.
    pub(crate) async fn pass<E>(&self, make: impl AsyncFnOnce() -> Result<(), E>) -> Result<(), E> {
        let before = self.begun.load(Ordering::Acquire);
        let _turn = self.turn.lock().await;
        if self.done.load(Ordering::Acquire) > before {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::AcqRel).saturating_add(1);
        make().await?;
        self.done.store(number, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn a_barrier_serves_earlier_callers_and_not_later_ones() {
        let (barrier, made, go) = (Barrier::default(), AtomicU64::new(0), Notify::new());
        let make = async || {
            // The first barrier blocks until it is notified.
            if made.fetch_add(1, Ordering::SeqCst) == 0 {
                go.notified().await;
            }
            Ok::<(), ()>(())
        };
        let late = async {
            assert_eq!(made.load(Ordering::SeqCst), 1, "the first is under way");
            let (one, other, ()) =
                tokio::join!(barrier.pass(&make), barrier.pass(&make), async { go.notify_one() });
            assert_eq!((one, other), (Ok(()), Ok(())));
        };
        let (first, ()) = tokio::join!(barrier.pass(&make), late);
        assert_eq!(first, Ok(()));
        assert_eq!(made.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_failed_or_cancelled_barrier_serves_no_caller() {
        let barrier = Barrier::default();
        assert_eq!(barrier.pass(async || Err("away")).await, Err("away"));
        let given_up = barrier.pass(async || std::future::pending::<Result<(), ()>>().await);
        assert!(tokio::time::timeout(std::time::Duration::from_millis(5), given_up).await.is_err());
        let made = AtomicU64::new(0);
        barrier
            .pass(async || {
                made.fetch_add(1, Ordering::SeqCst);
                Ok::<(), ()>(())
            })
            .await
            .unwrap();
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }
}
