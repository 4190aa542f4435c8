//! The use of a fence: enter, renew while working, leave.
//!
//! Only one answer stops a caller: another holder has the name. Every failure lets the caller
//! through and is counted once per pass.

use super::{Fence, FenceFailure, FenceToken};
use counterfoil_core::types::time::Span;
use std::fmt;
use std::sync::Arc;

/// Renewals happen after a third of the TTL, so two of them may fail before the hold ends.
const RENEWALS_PER_TTL: u64 = 3;

/// The fences of all payments; without a fence server everybody enters.
#[derive(Clone)]
pub struct Fences(Option<Arc<FenceSettings>>);

struct FenceSettings {
    fence: Arc<dyn Fence>,
    ttl: Span,
    on_bypass: Box<dyn Fn(&FenceFailure) + Send + Sync>,
}

/// Another process or request works on the payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldByAnother;

/// The right to work on a payment, as far as the fence knows. A pass dropped without
/// [`FencePass::leave`] ends with its TTL.
#[must_use = "the payment stays fenced until the pass is released or its TTL ends"]
pub struct FencePass(Option<HeldPass>);

struct HeldPass {
    settings: Arc<FenceSettings>,
    name: String,
    token: FenceToken,
    hold: Hold,
    is_counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// The last answer said that the token holds the name.
    Ours,
    /// An answer was lost: the token may hold the name.
    Unknown,
    /// The token does not hold the name.
    NotHeld,
}

impl Fences {
    /// No fence: everybody enters, and nothing is counted.
    pub const fn none() -> Fences {
        Fences(None)
    }

    /// Uses `fence` with a hold of `ttl` between renewals. `on_bypass` is called for every pass
    /// that goes on without the fence.
    pub fn new(
        fence: Arc<dyn Fence>,
        ttl: Span,
        on_bypass: impl Fn(&FenceFailure) + Send + Sync + 'static,
    ) -> Fences {
        Fences(Some(Arc::new(FenceSettings { fence, ttl, on_bypass: Box::new(on_bypass) })))
    }

    /// Enters unless another holder works on the payment. `token` must be fresh for each attempt.
    /// The payment's name is only formatted if there is a fence.
    pub async fn enter(
        &self,
        payment: impl fmt::Display,
        token: FenceToken,
    ) -> Result<FencePass, HeldByAnother> {
        let Some(settings) = &self.0 else { return Ok(FencePass(None)) };
        let mut held = HeldPass {
            settings: Arc::clone(settings),
            name: payment.to_string(),
            token,
            hold: Hold::NotHeld,
            is_counted: false,
        };
        if held.take().await { Ok(FencePass(Some(held))) } else { Err(HeldByAnother) }
    }
}

impl FencePass {
    /// The interval for [`FencePass::renew`]; `None` if there is nothing to renew.
    pub fn renewal(&self) -> Option<Span> {
        let held = self.0.as_ref().filter(|held| held.hold == Hold::Ours)?;
        Some(held.settings.ttl.part(1, RENEWALS_PER_TTL).max(Span::from_ms(1)))
    }

    /// Renews the hold, or takes it again after a loss. False if another holder has it now. Work
    /// goes on regardless, as it may have reached the provider; the claim's fencing token decides
    /// which result counts.
    pub async fn renew(&mut self) -> bool {
        match &mut self.0 {
            Some(held) if held.hold == Hold::Ours => held.renew().await,
            Some(_) | None => true,
        }
    }

    /// Releases the fence, so that the next operation on the payment need not wait for the TTL.
    pub async fn leave(self) {
        if let Some(held) = self.0
            && held.hold != Hold::NotHeld
        {
            // A fence that cannot be released expires.
            let _ = held.settings.fence.release(&held.name, held.token).await;
        }
    }
}

impl HeldPass {
    /// Returns whether the caller may go on.
    async fn take(&mut self) -> bool {
        match self.settings.fence.take(&self.name, self.token, self.settings.ttl).await {
            Ok(true) => self.hold = Hold::Ours,
            Ok(false) => {
                self.hold = Hold::NotHeld;
                return false;
            }
            Err(failure) => self.bypass(&failure),
        }
        true
    }

    async fn renew(&mut self) -> bool {
        match self.settings.fence.renew(&self.name, self.token, self.settings.ttl).await {
            Ok(true) => true,
            Ok(false) => self.take().await,
            // The hold may last until the next successful renewal.
            Err(failure) => {
                self.count(&failure);
                true
            }
        }
    }

    fn bypass(&mut self, failure: &FenceFailure) {
        self.hold = match failure {
            FenceFailure::Unheard(_) => Hold::Unknown,
            FenceFailure::Resting | FenceFailure::Unreachable(_) | FenceFailure::Refused(_) => Hold::NotHeld,
        };
        self.count(failure);
    }

    fn count(&mut self, failure: &FenceFailure) {
        if !self.is_counted {
            self.is_counted = true;
            (self.settings.on_bypass)(failure);
        }
    }
}

impl fmt::Debug for Fences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fences").field(&self.0.is_some()).finish()
    }
}

impl fmt::Debug for FencePass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pass").field(&self.0.as_ref().map(|held| held.hold)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::FenceFuture;
    use super::*;
    use std::collections::VecDeque;
    use std::future::ready;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const TTL: Span = Span::from_ms(900);
    const TOKEN: FenceToken = FenceToken::new(7);

    /// A fence with prepared answers that records its calls.
    #[derive(Default)]
    struct Scripted {
        answers: Mutex<VecDeque<Result<bool, FenceFailure>>>,
        asked: Mutex<Vec<&'static str>>,
    }

    impl Scripted {
        fn answer(&self, what: &'static str) -> FenceFuture<'_> {
            self.asked.lock().unwrap().push(what);
            Box::pin(ready(self.answers.lock().unwrap().pop_front().expect("an answer is left")))
        }
    }

    impl Fence for Scripted {
        fn take<'a>(&'a self, name: &'a str, token: FenceToken, ttl: Span) -> FenceFuture<'a> {
            assert_eq!((name, token, ttl), ("ch_1", TOKEN, TTL));
            self.answer("take")
        }

        fn renew<'a>(&'a self, name: &'a str, token: FenceToken, ttl: Span) -> FenceFuture<'a> {
            assert_eq!((name, token, ttl), ("ch_1", TOKEN, TTL));
            self.answer("renew")
        }

        fn release<'a>(&'a self, name: &'a str, token: FenceToken) -> FenceFuture<'a> {
            assert_eq!((name, token), ("ch_1", TOKEN));
            self.answer("release")
        }
    }

    struct Scene {
        fence: Arc<Scripted>,
        bypasses: Arc<AtomicUsize>,
        fences: Fences,
    }

    fn scene(answers: impl IntoIterator<Item = Result<bool, FenceFailure>>) -> Scene {
        let fence = Arc::new(Scripted::default());
        fence.answers.lock().unwrap().extend(answers);
        let bypasses = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&bypasses);
        let count = move |_: &FenceFailure| {
            counter.fetch_add(1, Ordering::SeqCst);
        };
        Scene { fences: Fences::new(Arc::clone(&fence) as Arc<dyn Fence>, TTL, count), fence, bypasses }
    }

    impl Scene {
        fn check(&self, asked: &[&str], bypasses: usize) {
            assert_eq!(*self.fence.asked.lock().unwrap(), asked);
            assert_eq!(self.bypasses.load(Ordering::SeqCst), bypasses);
            assert!(self.fence.answers.lock().unwrap().is_empty(), "not everything was asked");
        }
    }

    fn unheard() -> FenceFailure {
        FenceFailure::Unheard("250 ms".to_owned())
    }

    #[tokio::test]
    async fn another_holder_keeps_a_caller_out() {
        let scene = scene([Ok(false)]);
        assert_eq!(scene.fences.enter("ch_1", TOKEN).await.unwrap_err(), HeldByAnother);
        scene.check(&["take"], 0);
    }

    #[tokio::test]
    async fn an_unreachable_fence_stops_nobody_and_is_counted() {
        let refused = FenceFailure::Refused("READONLY".to_owned());
        for failure in [FenceFailure::Resting, FenceFailure::Unreachable("refused".to_owned()), refused] {
            let scene = scene([Err(failure)]);
            let mut pass = scene.fences.enter("ch_1", TOKEN).await.unwrap();
            assert_eq!(pass.renewal(), None);
            assert!(pass.renew().await);
            pass.leave().await;
            scene.check(&["take"], 1);
        }
    }

    #[tokio::test]
    async fn a_hold_without_an_answer_is_released_as_well() {
        let scene = scene([Err(unheard()), Ok(false)]);
        scene.fences.enter("ch_1", TOKEN).await.unwrap().leave().await;
        scene.check(&["take", "release"], 1);
    }

    #[tokio::test]
    async fn failed_renewals_are_counted_once_and_end_no_work() {
        let scene = scene([Ok(true), Err(unheard()), Err(FenceFailure::Resting), Ok(true), Ok(true)]);
        let mut pass = scene.fences.enter("ch_1", TOKEN).await.unwrap();
        for _ in 0..3 {
            assert!(pass.renew().await);
            assert_eq!(pass.renewal(), Some(Span::from_ms(300)));
        }
        pass.leave().await;
        scene.check(&["take", "renew", "renew", "renew", "release"], 1);
    }

    #[tokio::test]
    async fn a_lost_hold_is_taken_again_if_it_is_free() {
        let scene = scene([Ok(true), Ok(false), Ok(true), Ok(true)]);
        let mut pass = scene.fences.enter("ch_1", TOKEN).await.unwrap();
        assert!(pass.renew().await);
        pass.leave().await;
        scene.check(&["take", "renew", "take", "release"], 0);
    }

    #[tokio::test]
    async fn a_hold_lost_to_another_is_neither_renewed_nor_released() {
        let scene = scene([Ok(true), Ok(false), Ok(false)]);
        let mut pass = scene.fences.enter("ch_1", TOKEN).await.unwrap();
        assert!(!pass.renew().await);
        assert_eq!(pass.renewal(), None);
        pass.leave().await;
        scene.check(&["take", "renew", "take"], 0);
    }

    #[tokio::test]
    async fn without_a_fence_everybody_enters() {
        let mut pass = Fences::none().enter("ch_1", TOKEN).await.unwrap();
        assert_eq!(pass.renewal(), None);
        assert!(pass.renew().await);
        pass.leave().await;
    }
}
