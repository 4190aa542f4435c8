//! Submitting a command: claim the key, or answer from the existing claim.
//!
//! From the first commit on, the work belongs to the engine. The request polls the work while it
//! waits. If the client hangs up, the rest of the work runs as a background task (`detach.rs`).

use crate::command::Command;
use crate::engine::Inner;
use crate::open::OpenResult;
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

/// A claim's meaning for a request under its key.
pub(crate) enum KeyState {
    /// The claim answers the request.
    Answered(Submitted),
    /// The claim's work is not settled yet.
    Unsettled,
    /// The key may be claimed again.
    Free,
}

/// Poll interval of a waiting request if the store does not wake it.
const POLL: Duration = Duration::from_millis(50);
/// Poll interval of a waiting request if the store wakes it, in case a wake-up is lost.
const POLL_WOKEN: Duration = Duration::from_millis(250);
/// Longest `Retry-After`: a parked payment has no due time.
const PENDING_RETRY_MAX: Span = Span::from_ms(60_000);

/// Attempts to claim a key that is freed and taken again meanwhile, before the client has
/// to retry.
pub(crate) const ROUNDS_MAX: u32 = 4;

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(crate) async fn submit(self: &Arc<Self>, command: Command) -> Submitted {
        let request = *command.request();
        if let Some(submitted) = self.cached_answer(&request).await {
            return submitted;
        }
        if self.is_draining() {
            return Box::pin(self.replay_only(&request)).await;
        }
        let command = match command.resolve(self).await {
            Ok(command) => command,
            Err(submitted) => return Box::pin(self.stored_answer_or(&request, submitted)).await,
        };
        let mut found: Option<Claim> = None;
        for _ in 0..ROUNDS_MAX {
            if let Some(claim) = &found {
                match self.key_state(claim, &request) {
                    KeyState::Answered(submitted) => return submitted,
                    KeyState::Unsettled => return Box::pin(self.wait(&request)).await,
                    KeyState::Free => {}
                }
            }
            let claimed = |submitted| self.counted(request.tenant, ClaimOutcome::Won, submitted);
            match self.open(&command, found.as_ref()).await {
                OpenResult::News(News::Settled(claim)) => return claimed(answer(&claim, false)),
                OpenResult::News(News::Pending { payment, retry_after }) => {
                    return claimed(Submitted::Pending { payment, retry_after });
                }
                OpenResult::Taken(claim) => found = Some(*claim),
                OpenResult::InDoubt(payment) => {
                    return claimed(Submitted::Pending { payment, retry_after: Span::from_ms(1_000) });
                }
                OpenResult::KeyFree => found = None,
                // The store may still be readable: a stored answer needs no commit.
                OpenResult::StoreFailed => {
                    let submitted =
                        Box::pin(self.stored_answer_or(&request, Submitted::StoreUnavailable)).await;
                    if submitted == Submitted::StoreUnavailable {
                        self.watch.saw(Signal::FailClosed);
                    }
                    return submitted;
                }
                OpenResult::Elsewhere => return Box::pin(self.wait(&request)).await,
                OpenResult::Rejected(submitted) => {
                    return Box::pin(self.stored_answer_or(&request, submitted)).await;
                }
            }
        }
        self.counted(request.tenant, ClaimOutcome::InUse, Submitted::InUse)
    }

    /// The stored answer, if the cache has it.
    pub(crate) async fn cached_answer(&self, request: &Request) -> Option<Submitted> {
        let claim = self.cache.find(request.claim).await;
        self.watch.saw(Signal::Cache { hit: claim.is_some() });
        match self.key_state(&*claim?, request) {
            KeyState::Answered(submitted) => Some(submitted),
            // The entry's windows are over; only the store knows the key's state now.
            KeyState::Free | KeyState::Unsettled => None,
        }
    }

    /// Caches an answer. Only the process that committed the answer may call this.
    pub(crate) fn cache_answer(&self, claim: Arc<Claim>) {
        if let Some(publication) = self.cache.insert(claim, self.store.now()) {
            self.world.spawn(publication);
        }
    }

    /// Answers from the store only: a draining server takes no new work.
    pub(crate) async fn replay_only(&self, request: &Request) -> Submitted {
        match self.store.read(vec![RowKey::Claim(request.tenant, request.claim)]).await.as_deref() {
            Ok([Some(Row::Claim(claim))]) => match self.key_state(claim, request) {
                KeyState::Answered(submitted) => submitted,
                KeyState::Unsettled | KeyState::Free => Submitted::Draining,
            },
            Ok(_) => Submitted::Draining,
            Err(_) => Submitted::StoreUnavailable,
        }
    }

    /// Answers from the key's claim, or with `otherwise` if no claim counts.
    pub(crate) async fn stored_answer_or(
        self: &Arc<Self>,
        request: &Request,
        otherwise: Submitted,
    ) -> Submitted {
        match self.store.read(vec![RowKey::Claim(request.tenant, request.claim)]).await.as_deref() {
            Ok([Some(Row::Claim(claim))]) => match self.key_state(claim, request) {
                KeyState::Answered(submitted) => submitted,
                KeyState::Unsettled => self.wait(request).await,
                KeyState::Free => otherwise,
            },
            Ok(_) => otherwise,
            Err(_) => Submitted::StoreUnavailable,
        }
    }

    /// Judges a claim for a request under its key.
    pub(crate) fn key_state(&self, claim: &Claim, request: &Request) -> KeyState {
        let (outcome, submitted) = match claim.meet(request.fingerprint, self.store.now()) {
            Meeting::Free => return KeyState::Free,
            Meeting::InFlight | Meeting::Pending { .. } => return KeyState::Unsettled,
            Meeting::Mismatch => (ClaimOutcome::Mismatch, Submitted::Mismatch),
            Meeting::Replay(settled) => {
                (ClaimOutcome::Replayed, Submitted::Answer { settled: settled.clone(), replayed: true })
            }
            Meeting::Expired { original_request_at } => {
                (ClaimOutcome::Expired, Submitted::Expired { original_request_at })
            }
        };
        KeyState::Answered(self.counted(request.tenant, outcome, submitted))
    }

    /// Counts the outcome and returns the answer.
    pub(crate) fn counted(&self, tenant: TenantId, outcome: ClaimOutcome, submitted: Submitted) -> Submitted {
        self.watch.saw(Signal::Claim { tenant, outcome });
        submitted
    }

    /// Waits until another request or process settles the key. Its commit wakes this request.
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
        self.counted(request.tenant, outcome, submitted)
    }

    /// Whether another process may settle the claim. Only then does the store have to wake this
    /// request.
    fn may_be_elsewhere(&self, claim: &Claim) -> bool {
        !self.store.is_exclusive() && claim.state.lease().is_none_or(|lease| !self.ids.is_ours(lease.holder))
    }

    /// The payment of a claim: created by the claim, or the object of the claim's operation.
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
            // Queue before reading, so that no news is missed in between.
            let Some(mut waiting) = self.waiters.queue(request.claim) else { return Submitted::InUse };
            let Ok(rows) = self.store.read(vec![RowKey::Claim(request.tenant, request.claim)]).await else {
                // The key is known to be in use. A failed read does not free it.
                if self.world.elapsed().saturating_sub(begun) >= patience {
                    return Submitted::InUse;
                }
                self.world.sleep(POLL).await;
                continue;
            };
            let Some(Some(Row::Claim(claim))) = rows.into_iter().next() else { return Submitted::InUse };
            let now = self.store.now();
            let (idle, timed_out) = match claim.meet(request.fingerprint, now) {
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
                return timed_out;
            }
            if elsewhere.is_none() && self.may_be_elsewhere(&claim) {
                elsewhere.set(self.store.settled_elsewhere(request.claim));
                if elsewhere.is_some() {
                    continue;
                }
            }
            let step = match (self.store.is_exclusive(), elsewhere.is_some()) {
                (true, _) => left,
                (false, true) => left.min(POLL_WOKEN),
                (false, false) => left.min(POLL),
            };
            // News is only a hint to read again: it may be about an earlier request under this key.
            tokio::select! {
                biased;
                _ = waiting.news() => {}
                () = completion(elsewhere.as_mut()) => elsewhere.set(self.store.settled_elsewhere(request.claim)),
                () = self.world.sleep(step) => {}
            }
        }
    }
}

/// Completes with the future, or never if there is none.
async fn completion(future: Pin<&mut Option<impl Future<Output = ()>>>) {
    match future.as_pin_mut() {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// The claim's stored answer. Every claim in `News::Settled` has one.
fn answer(claim: &Claim, replayed: bool) -> Submitted {
    match claim.state.settled() {
        Some(settled) => Submitted::Answer { settled: settled.clone(), replayed },
        None => Submitted::InUse,
    }
}
