//! How a fence is used: enter, work while renewing, leave.
//!
//! Only one answer stops a caller: another holder has the name. Every failure lets it through and is counted, at most
//! once for each pass.

use super::{Fence, FenceFailure, Token};
use counterfoil_core::types::time::Span;
use std::fmt;
use std::sync::Arc;

/// A hold is renewed when this part of it has passed, so that two renewals may fail before it ends.
const RENEWALS_PER_TTL: u64 = 3;

/// The fences of all payments, or none.
#[derive(Clone)]
pub struct Fences(Option<Arc<Policy>>);

struct Policy {
    fence: Arc<dyn Fence>,
    ttl: Span,
    bypassed: Box<dyn Fn(&FenceFailure) + Send + Sync>,
}

/// Another process, or another request of this one, is at work on the payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldByAnother;

/// The right to work on a payment, as far as the fence knows. One that is dropped without [`Pass::leave`] ends with its
/// time.
#[must_use = "the fence stays closed until the pass is given back or its time is over"]
pub struct Pass(Option<Entered>);

struct Entered {
    policy: Arc<Policy>,
    name: String,
    token: Token,
    hold: Hold,
    is_counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// The token had the name when the server was last heard.
    Ours,
    /// The server was asked and not heard: the token may have the name.
    Perhaps,
    /// The token does not have the name.
    Not,
}

impl Fences {
    /// No fence: everybody enters, and nothing is counted.
    pub const fn none() -> Fences {
        Fences(None)
    }

    /// Through `fence`, each hold for `ttl` unless renewed. `bypassed` is told of every pass that goes on without the
    /// fence.
    pub fn new(
        fence: Arc<dyn Fence>,
        ttl: Span,
        bypassed: impl Fn(&FenceFailure) + Send + Sync + 'static,
    ) -> Fences {
        Fences(Some(Arc::new(Policy { fence, ttl, bypassed: Box::new(bypassed) })))
    }

    /// Enters, unless another holder works on the payment. `token` must be fresh for each attempt. The payment's name is
    /// made only if somebody asks for it.
    pub async fn enter(&self, payment: impl fmt::Display, token: Token) -> Result<Pass, HeldByAnother> {
        let Some(policy) = &self.0 else { return Ok(Pass(None)) };
        let mut entered = Entered {
            policy: Arc::clone(policy),
            name: payment.to_string(),
            token,
            hold: Hold::Not,
            is_counted: false,
        };
        if entered.take().await { Ok(Pass(Some(entered))) } else { Err(HeldByAnother) }
    }
}

impl Pass {
    /// How often to call [`Pass::renew`]; nothing if there is nothing to renew.
    pub fn renewal(&self) -> Option<Span> {
        let entered = self.0.as_ref().filter(|entered| entered.hold == Hold::Ours)?;
        Some(entered.policy.ttl.part(1, RENEWALS_PER_TTL).max(Span::from_ms(1)))
    }

    /// Lengthens the hold; one that was lost is taken again if nobody else has. No: another holder has it now. The work
    /// goes on all the same, for it may have reached the provider; the claim's own fence decides whose result counts.
    pub async fn renew(&mut self) -> bool {
        match &mut self.0 {
            Some(entered) if entered.hold == Hold::Ours => entered.renew().await,
            Some(_) | None => true,
        }
    }

    /// Gives the fence back, so that the next operation on the payment need not wait for the hold to end.
    pub async fn leave(self) {
        if let Some(entered) = self.0
            && entered.hold != Hold::Not
        {
            // A fence that cannot be given back ends by itself.
            let _ = entered.policy.fence.release(&entered.name, entered.token).await;
        }
    }
}

impl Entered {
    /// Whether the caller may go on.
    async fn take(&mut self) -> bool {
        match self.policy.fence.take(&self.name, self.token, self.policy.ttl).await {
            Ok(true) => self.hold = Hold::Ours,
            Ok(false) => {
                self.hold = Hold::Not;
                return false;
            }
            Err(failure) => self.bypass(&failure),
        }
        true
    }

    async fn renew(&mut self) -> bool {
        match self.policy.fence.renew(&self.name, self.token, self.policy.ttl).await {
            Ok(true) => true,
            Ok(false) => self.take().await,
            // The hold may last until the next renewal is heard.
            Err(failure) => {
                self.count(&failure);
                true
            }
        }
    }

    fn bypass(&mut self, failure: &FenceFailure) {
        self.hold = match failure {
            FenceFailure::Unheard(_) => Hold::Perhaps,
            FenceFailure::Resting | FenceFailure::Unreachable(_) | FenceFailure::Refused(_) => Hold::Not,
        };
        self.count(failure);
    }

    fn count(&mut self, failure: &FenceFailure) {
        if !self.is_counted {
            self.is_counted = true;
            (self.policy.bypassed)(failure);
        }
    }
}

impl fmt::Debug for Fences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fences").field(&self.0.is_some()).finish()
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pass").field(&self.0.as_ref().map(|entered| entered.hold)).finish()
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
    const TOKEN: Token = Token::new(7);

    /// Answers as it was told to, and remembers what it was asked.
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
        fn take<'a>(&'a self, name: &'a str, token: Token, ttl: Span) -> FenceFuture<'a> {
            assert_eq!((name, token, ttl), ("ch_1", TOKEN, TTL));
            self.answer("take")
        }

        fn renew<'a>(&'a self, name: &'a str, token: Token, ttl: Span) -> FenceFuture<'a> {
            assert_eq!((name, token, ttl), ("ch_1", TOKEN, TTL));
            self.answer("renew")
        }

        fn release<'a>(&'a self, name: &'a str, token: Token) -> FenceFuture<'a> {
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
    async fn who_finds_another_holder_does_not_enter() {
        let scene = scene([Ok(false)]);
        assert_eq!(scene.fences.enter("ch_1", TOKEN).await.unwrap_err(), HeldByAnother);
        scene.check(&["take"], 0);
    }

    #[tokio::test]
    async fn a_fence_that_cannot_be_asked_stops_nobody_and_is_counted() {
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
    async fn what_was_not_heard_is_given_back_all_the_same() {
        let scene = scene([Err(unheard()), Ok(false)]);
        scene.fences.enter("ch_1", TOKEN).await.unwrap().leave().await;
        scene.check(&["take", "release"], 1);
    }

    #[tokio::test]
    async fn failures_of_renewal_are_counted_once_and_end_nothing() {
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
    async fn a_hold_lost_to_another_is_neither_renewed_nor_given_back() {
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
