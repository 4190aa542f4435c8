//! The fence decorator: work on a payment runs between taking its gateway fence and giving it back.

use crate::engine::Inner;
use crate::world::World;
use counterfoil_core::outbox::Payment;
use counterfoil_gateway::Gateway;
use counterfoil_gateway::fence::{HeldByAnother, Pass, Token};
use counterfoil_store::Store;
use std::convert::Infallible;
use std::fmt;
use std::future::{Future, pending};
use std::time::Duration;

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Runs `work` on a payment inside the fence. `work` does not run if another holder is inside.
    ///
    /// An engine without a shared fence runs `work` at once.
    pub(crate) async fn fenced<T>(
        &self,
        payment: Payment,
        work: impl Future<Output = T>,
    ) -> Result<T, HeldByAnother> {
        let name = fmt::from_fn(|f| f.write_str(payment.reference(&self.references).as_str()));
        let pass = self.fences.enter(name, Token::new(self.world.chance())).await?;
        Ok(during(&self.world, pass, work).await)
    }
}

/// Runs `work` while renewing `pass`, then gives the fence back. `work` never waits for a renewal.
///
/// The result waits until the fence is given back, so that its receiver can continue with the
/// payment at once.
async fn during<T>(world: &impl World, mut pass: Pass, work: impl Future<Output = T>) -> T {
    let result = tokio::select! {
        biased;
        result = work => result,
        never = renew(world, &mut pass) => match never {},
    };
    pass.leave().await;
    result
}

/// Renews the hold until there is none left to renew, then waits forever.
async fn renew(world: &impl World, pass: &mut Pass) -> Infallible {
    while let Some(wait) = pass.renewal() {
        world.sleep(Duration::from_millis(wait.ms())).await;
        if !pass.renew().await {
            tracing::warn!(
                "another holder took the gateway fence of a running payment; the claim's fencing token decides whose result counts"
            );
        }
    }
    pending().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::TokioWorld;
    use counterfoil_core::types::time::Span;
    use counterfoil_gateway::fence::{Fence, FenceFuture, Fences, Token};
    use std::future::ready;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Admits every holder. Renewals succeed, or never return once it is deaf.
    #[derive(Default)]
    struct Scripted {
        is_deaf: AtomicBool,
        renewals: AtomicUsize,
        is_released: AtomicBool,
    }

    impl Fence for Scripted {
        fn take<'a>(&'a self, _: &'a str, _: Token, _: Span) -> FenceFuture<'a> {
            Box::pin(ready(Ok(true)))
        }

        fn renew<'a>(&'a self, _: &'a str, _: Token, _: Span) -> FenceFuture<'a> {
            self.renewals.fetch_add(1, Ordering::SeqCst);
            if self.is_deaf.load(Ordering::SeqCst) {
                return Box::pin(pending());
            }
            Box::pin(ready(Ok(true)))
        }

        fn release<'a>(&'a self, _: &'a str, _: Token) -> FenceFuture<'a> {
            self.is_released.store(true, Ordering::SeqCst);
            Box::pin(ready(Ok(true)))
        }
    }

    async fn enter(fence: &Arc<Scripted>) -> Pass {
        let fences = Fences::new(Arc::clone(fence) as Arc<dyn Fence>, Span::from_ms(300), |_| {});
        fences.enter("ch_1", Token::new(1)).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_hold_is_renewed_each_third_of_its_time_and_then_released() {
        let fence = Arc::new(Scripted::default());
        let pass = enter(&fence).await;
        let world = TokioWorld::new();
        let result = during(&world, pass, async {
            world.sleep(Duration::from_millis(950)).await;
            assert!(!fence.is_released.load(Ordering::SeqCst), "released too soon");
            "done"
        });
        assert_eq!(result.await, "done");
        assert_eq!(fence.renewals.load(Ordering::SeqCst), 9);
        assert!(fence.is_released.load(Ordering::SeqCst));
    }

    #[tokio::test(start_paused = true)]
    async fn the_work_does_not_wait_for_a_renewal() {
        let fence = Arc::new(Scripted::default());
        fence.is_deaf.store(true, Ordering::SeqCst);
        let pass = enter(&fence).await;
        let world = TokioWorld::new();
        during(&world, pass, world.sleep(Duration::from_millis(950))).await;
        assert_eq!(world.elapsed(), Duration::from_millis(950));
        assert_eq!(fence.renewals.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_fence_the_work_just_runs() {
        let pass = Fences::none().enter("ch_1", Token::new(1)).await.unwrap();
        let world = TokioWorld::new();
        assert_eq!(during(&world, pass, async { 7 }).await, 7);
    }
}
