//! Submitting a command: claim the key, or learn from the record that is there.
//!
//! The work belongs to the engine from the first commit on. The request moves it while it waits; a client that hangs up
//! cancels nothing, because what is left goes on by itself (`detach.rs`).

use crate::engine::Inner;
use crate::open::{Command, Opened};
use crate::policy::WAIT_JITTER_MS;
use crate::service::Submitted;
use crate::signal::{ClaimOutcome, Signal};
use crate::waiters::News;
use crate::world::World;
use counterfoil_core::idempotency::claim::{Claim, Meeting, Resource};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::Gateway;
use counterfoil_store::{Row, RowKey, Store};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

/// What a request that finds a record may do.
pub(crate) enum Met {
    /// Go: this is its answer.
    Answered(Submitted),
    /// Wait for whoever works on it.
    Unsettled,
    /// Claim the key anew.
    Free,
}

/// How often a twin looks where another process may hold the work.
const POLL: Duration = Duration::from_millis(50);
/// How often it looks where the store wakes it: only in case that fails.
const POLL_WOKEN: Duration = Duration::from_millis(250);
/// Longest advice to come back: a parked payment has no time of its own.
const PENDING_RETRY_MAX: Span = Span::from_ms(60_000);

/// Rounds of "the key is free" and "no, taken again" before the client is told to come back.
pub(crate) const ROUNDS_MAX: u32 = 4;

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(crate) async fn submit(self: &Arc<Self>, command: Command) -> Submitted {
        let request = *command.request();
        if let Some(submitted) = self.remembered(&request).await {
            return submitted;
        }
        if self.is_draining() {
            return Box::pin(self.only_replay(&request)).await;
        }
        let command = match command.resolve(self).await {
            Ok(command) => command,
            Err(submitted) => return Box::pin(self.unless_kept(&request, submitted)).await,
        };
        let mut found: Option<Claim> = None;
        for _ in 0..ROUNDS_MAX {
            if let Some(claim) = &found {
                match self.settled(claim, &request) {
                    Met::Answered(submitted) => return submitted,
                    Met::Unsettled => return Box::pin(self.wait(&request)).await,
                    Met::Free => {}
                }
            }
            let won = |submitted| self.told(request.tenant, ClaimOutcome::Won, submitted);
            match self.open(&command, found.as_ref()).await {
                Opened::News(News::Settled(claim)) => return won(answer(&claim, false)),
                Opened::News(News::Pending { payment, retry_after }) => {
                    return won(Submitted::Pending { payment, retry_after });
                }
                Opened::Found(claim) => found = Some(*claim),
                Opened::Doubtful(payment) => {
                    return won(Submitted::Pending { payment, retry_after: Span::from_ms(1_000) });
                }
                Opened::Gone => found = None,
                // What can be read still is: a stored answer needs no commit.
                Opened::Failed => {
                    let kept = Box::pin(self.unless_kept(&request, Submitted::StoreUnavailable)).await;
                    if kept == Submitted::StoreUnavailable {
                        self.watch.saw(Signal::FailClosed);
                    }
                    return kept;
                }
                Opened::Lost => return Box::pin(self.wait(&request)).await,
                Opened::Not(submitted) => return Box::pin(self.unless_kept(&request, submitted)).await,
            }
        }
        self.told(request.tenant, ClaimOutcome::InUse, Submitted::InUse)
    }

    /// The answer, if this process or one beside it stored it and it is still at hand.
    pub(crate) async fn remembered(&self, request: &Request) -> Option<Submitted> {
        let claim = match self.cache.find(request.claim) {
            Some(claim) => Some(claim),
            None => self.answers.find(request.claim).await.map(Arc::new),
        };
        self.watch.saw(Signal::Cache { hit: claim.is_some() });
        match self.settled(&*claim?, request) {
            Met::Answered(submitted) => Some(submitted),
            // The key is free again, or was: the store knows what it means now.
            Met::Free | Met::Unsettled => None,
        }
    }

    /// Keeps an answer this process has just committed, for itself and for those beside it. Only who committed an answer
    /// may keep it.
    pub(crate) fn remember(&self, claim: Arc<Claim>) {
        if self.answers.are_shared() {
            let (answers, shared, now) = (self.answers.clone(), Arc::clone(&claim), self.store.now());
            self.world.spawn(async move { answers.keep(&shared, now).await });
        }
        self.cache.keep(claim);
    }

    /// A server that is shutting down gives stored answers and takes nothing new.
    pub(crate) async fn only_replay(&self, request: &Request) -> Submitted {
        match self.store.read(vec![RowKey::Claim(request.tenant, request.claim)]).await.as_deref() {
            Ok([Some(Row::Claim(claim))]) => match self.settled(claim, request) {
                Met::Answered(submitted) => submitted,
                Met::Unsettled | Met::Free => Submitted::Draining,
            },
            Ok(_) => Submitted::Draining,
            Err(_) => Submitted::StoreUnavailable,
        }
    }

    /// A request that does not fit gets `otherwise`, unless its key has a record that speaks first.
    pub(crate) async fn unless_kept(self: &Arc<Self>, request: &Request, otherwise: Submitted) -> Submitted {
        match self.store.read(vec![RowKey::Claim(request.tenant, request.claim)]).await.as_deref() {
            Ok([Some(Row::Claim(claim))]) => match self.settled(claim, request) {
                Met::Answered(submitted) => submitted,
                Met::Unsettled => self.wait(request).await,
                Met::Free => otherwise,
            },
            Ok(_) => otherwise,
            Err(_) => Submitted::StoreUnavailable,
        }
    }

    /// What the record says to this request.
    pub(crate) fn settled(&self, claim: &Claim, request: &Request) -> Met {
        let (outcome, submitted) = match claim.meet(request.fingerprint, self.store.now()) {
            Meeting::Free => return Met::Free,
            Meeting::InFlight | Meeting::Pending { .. } => return Met::Unsettled,
            Meeting::Mismatch => (ClaimOutcome::Mismatch, Submitted::Mismatch),
            Meeting::Replay(settled) => {
                (ClaimOutcome::Replayed, Submitted::Answer { settled: settled.clone(), replayed: true })
            }
            Meeting::Expired { original_request_at } => {
                (ClaimOutcome::Expired, Submitted::Expired { original_request_at })
            }
        };
        Met::Answered(self.told(request.tenant, outcome, submitted))
    }

    pub(crate) fn told(&self, tenant: TenantId, outcome: ClaimOutcome, submitted: Submitted) -> Submitted {
        self.watch.saw(Signal::Claim { tenant, outcome });
        submitted
    }

    /// Waits for whoever works on the key, woken by their commit.
    pub(crate) async fn wait(self: &Arc<Self>, request: &Request) -> Submitted {
        let begun = self.world.elapsed();
        let submitted = self.wait_for_news(request).await;
        self.watch.saw(Signal::Waited(self.world.elapsed().saturating_sub(begun)));
        let outcome = match &submitted {
            Submitted::Answer { .. } => ClaimOutcome::Waited,
            Submitted::Mismatch => ClaimOutcome::Mismatch,
            Submitted::Expired { .. } => ClaimOutcome::Expired,
            Submitted::InUse
            | Submitted::Invalid(_)
            | Submitted::NotFound
            | Submitted::InProgress
            | Submitted::Pending { .. }
            | Submitted::StoreUnavailable
            | Submitted::Draining => ClaimOutcome::InUse,
        };
        self.told(request.tenant, outcome, submitted)
    }

    /// Whether the next news of the claim may come from another process. What this one works on, it tells by itself, and
    /// the store is spared the trouble.
    fn is_with_others(&self, claim: &Claim) -> bool {
        !self.store.is_exclusive() && claim.state.lease().is_none_or(|lease| !self.ids.is_ours(lease.holder))
    }

    /// The payment a claim is about: the one it makes, or the one its operation is done to.
    async fn payment_of(&self, claim: &Claim) -> Payment {
        let made = Payment::Charge(claim.subject.into());
        match claim.makes {
            Resource::Capture | Resource::Void | Resource::Refund => {
                let rows = self.store.read(vec![RowKey::Operation(claim.tenant, claim.subject.into())]).await;
                match rows.as_deref() {
                    Ok([Some(Row::Operation(operation))]) => Payment::Charge(operation.charge),
                    Ok(_) | Err(_) => made,
                }
            }
            Resource::Payout => Payment::Payout(claim.subject.into()),
            Resource::Charge
            | Resource::Account
            | Resource::Asset
            | Resource::Transfer
            | Resource::Transaction
            | Resource::Bulk
            | Resource::Shards
            | Resource::Resolution => made,
        }
    }

    async fn wait_for_news(self: &Arc<Self>, request: &Request) -> Submitted {
        let jitter = self.dice().checked_rem(WAIT_JITTER_MS).unwrap_or(0);
        let patience = Duration::from_millis(self.policy.wait.ms().saturating_add(jitter));
        let begun = self.world.elapsed();
        let mut elsewhere = pin!(None);
        loop {
            // Queue first, then look: news that comes in between is not missed.
            let Some(mut waiting) = self.waiters.queue(request.claim) else { return Submitted::InUse };
            let Ok(rows) = self.store.read(vec![RowKey::Claim(request.tenant, request.claim)]).await else {
                // The key is known to be in use: that the store cannot be read just now does not make it free.
                if self.world.elapsed().saturating_sub(begun) >= patience {
                    return Submitted::InUse;
                }
                self.world.sleep(POLL).await;
                continue;
            };
            let Some(Some(Row::Claim(claim))) = rows.into_iter().next() else { return Submitted::InUse };
            let now = self.store.now();
            let (idle, in_vain) = match claim.meet(request.fingerprint, now) {
                Meeting::Mismatch => return Submitted::Mismatch,
                Meeting::Replay(settled) => {
                    return Submitted::Answer { settled: settled.clone(), replayed: true };
                }
                Meeting::Expired { original_request_at } => {
                    return Submitted::Expired { original_request_at };
                }
                Meeting::Free => return Submitted::InUse,
                Meeting::InFlight => (Span::ZERO, Submitted::InUse),
                Meeting::Pending { not_before } => {
                    let idle = not_before.since(now);
                    let retry_after = idle.max(Span::from_ms(1_000)).min(PENDING_RETRY_MAX);
                    (idle, Submitted::Pending { payment: self.payment_of(&claim).await, retry_after })
                }
            };
            let left = patience.saturating_sub(self.world.elapsed().saturating_sub(begun));
            if left.is_zero() || Duration::from_millis(idle.ms()) > left {
                return in_vain;
            }
            if elsewhere.is_none() && self.is_with_others(&claim) {
                elsewhere.set(self.store.settled_elsewhere(request.claim));
                if elsewhere.is_some() {
                    continue;
                }
            }
            // Where no store wakes us, we look again and again.
            let step = match (self.store.is_exclusive(), elsewhere.is_some()) {
                (true, _) => left,
                (false, true) => left.min(POLL_WOKEN),
                (false, false) => left.min(POLL),
            };
            // The news is only a hint to look: it may be that of an earlier request under this key.
            tokio::select! {
                biased;
                _ = waiting.news() => {}
                () = completion(elsewhere.as_mut()) => elsewhere.set(self.store.settled_elsewhere(request.claim)),
                () = self.world.sleep(step) => {}
            }
        }
    }
}

/// What is there, once it completes; if nothing is, never.
async fn completion(future: Pin<&mut Option<impl Future<Output = ()>>>) {
    match future.as_pin_mut() {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// The stored answer. A claim that is told as settled always has one.
fn answer(claim: &Claim, replayed: bool) -> Submitted {
    match claim.state.settled() {
        Some(settled) => Submitted::Answer { settled: settled.clone(), replayed },
        None => Submitted::InUse,
    }
}
