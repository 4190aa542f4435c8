//! Submitting a command: claim the key, or learn from the record that is there.
//!
//! The work belongs to the engine from the first commit on; the request only waits for it, so a client that hangs
//! up cancels nothing.

use crate::commit::NotCommitted;
use crate::drive::Work;
use crate::engine::Inner;
use crate::policy::WAIT_JITTER_MS;
use crate::service::Submitted;
use crate::signal::{ClaimOutcome, Signal};
use crate::waiters::News;
use crate::world::World;
use counterfoil_core::idempotency::claim::{Claim, ClaimId, Meeting};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::payments::charge::create::{CreateCharge, Minted, Opening, decide};
use counterfoil_core::types::id::{AccountId, ChargeId, MintError, SetId, TenantId};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, Reason, Row, RowKey, Store};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What the task that opens a claim tells the request that asked for it.
enum Opened {
    /// The claim was won, and this came of it.
    News(News),
    /// Somebody else holds the key.
    Found(Box<Claim>),
    /// The store could not be written; the provider was not called.
    Failed,
    /// Nobody knows whether the claim was stored. If it was, it will be executed: the key is the only safe one.
    Doubtful(ChargeId),
    /// The record that was to be claimed anew is gone; the key is free.
    Gone,
    /// Another process finishes the work.
    Lost,
}

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
    pub(crate) async fn submit(self: &Arc<Self>, command: CreateCharge) -> Submitted {
        let request = command.request;
        if let Some(submitted) = self.remembered(&request) {
            return submitted;
        }
        if self.is_draining() {
            return self.only_replay(&request).await;
        }
        let destination = match self.destination(&command).await {
            Ok(destination) => destination,
            Err(submitted) => return self.unless_kept(&request, submitted).await,
        };
        let mut found: Option<Claim> = None;
        for _ in 0..ROUNDS_MAX {
            if let Some(claim) = &found {
                match self.settled(claim, &request) {
                    Met::Answered(submitted) => return submitted,
                    Met::Unsettled => return self.wait(&request).await,
                    Met::Free => {}
                }
            }
            match self.open(&command, destination, found.as_ref()).await {
                Opened::News(News::Settled(claim)) => {
                    return self.told(request.tenant, ClaimOutcome::Won, answer(&claim, false));
                }
                Opened::News(News::Pending { charge, retry_after }) => {
                    return self.told(
                        request.tenant,
                        ClaimOutcome::Won,
                        Submitted::Pending { charge, retry_after },
                    );
                }
                Opened::Found(claim) => found = Some(*claim),
                Opened::Doubtful(charge) => {
                    let retry_after = Span::from_ms(1_000);
                    return self.told(
                        request.tenant,
                        ClaimOutcome::Won,
                        Submitted::Pending { charge, retry_after },
                    );
                }
                Opened::Gone => found = None,
                Opened::Failed => {
                    self.watch.saw(Signal::FailClosed);
                    return Submitted::StoreUnavailable;
                }
                Opened::Lost => return self.wait(&request).await,
            }
        }
        self.told(request.tenant, ClaimOutcome::InUse, Submitted::InUse)
    }

    /// The answer, if this process stored it itself and still has it at hand.
    pub(crate) fn remembered(&self, request: &Request) -> Option<Submitted> {
        let claim = self.cache.find(request.claim);
        self.watch.saw(Signal::Cache { hit: claim.is_some() });
        match self.settled(&*claim?, request) {
            Met::Answered(submitted) => Some(submitted),
            // The key is free again, or was: the store knows what it means now.
            Met::Free | Met::Unsettled => None,
        }
    }

    /// A server that is shutting down gives stored answers and takes nothing new.
    pub(crate) async fn only_replay(&self, request: &Request) -> Submitted {
        match self.store.read(vec![RowKey::Claim(request.claim)]).await.as_deref() {
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
        match self.store.read(vec![RowKey::Claim(request.claim)]).await.as_deref() {
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

    /// Commits the claim and drives it, in a task of its own.
    async fn open(
        self: &Arc<Self>,
        command: &CreateCharge,
        destination: AccountId,
        expired: Option<&Claim>,
    ) -> Opened {
        let Ok((now, charge, set)) = self.mint_pair().await else {
            tracing::error!("failed closed: no ids can be minted, the provider was not called");
            return Opened::Failed;
        };
        let minted = Minted {
            charge: ChargeId::from_i64(charge),
            now,
            chance: self.world.chance(),
            holder: self.ids.holder(),
            destination,
        };
        let opening = decide(command.clone(), self.gateway.pinned(), self.policy.lease, &minted, expired);
        let set = claim_set(SetId::from_i64(set), &opening, expired);
        let (sender, mut answer) = oneshot::channel();
        // The task tells its waiters at once when an outcome cannot be stored yet.
        let mut waiting = self.waiters.queue(command.request.claim);
        let charge = opening.charge.id;
        let (inner, active) = (Arc::clone(self), self.enter());
        self.world.spawn(async move {
            let opened = match inner.commit(set).await {
                Ok(_) => {
                    let work = Work { claim: opening.claim, charge: opening.charge, outbox: opening.outbox };
                    // Boxed, so that the task that waits for the claim's commit stays small.
                    match Box::pin(inner.drive(work)).await {
                        Some(news) => Opened::News(news),
                        None => Opened::Lost,
                    }
                }
                Err(NotCommitted::Refused(refusal)) => {
                    if let Some(Row::Claim(claim)) = refusal.found {
                        Opened::Found(Box::new(claim))
                    } else if refusal.reason == Reason::Absent {
                        Opened::Gone
                    } else {
                        tracing::error!(?refusal.reason, refusal.change, "a claim set was refused for no reason of its key");
                        Opened::Failed
                    }
                }
                Err(NotCommitted::Unavailable(why)) => {
                    tracing::warn!(why, "failed closed: the claim could not be stored, the provider was not called");
                    Opened::Failed
                }
                Err(NotCommitted::InDoubt) => {
                    tracing::warn!("a claim's commit is in doubt; the provider was not called");
                    inner.after_doubt(opening.claim.id, opening.charge.id).await
                }
            };
            // A receiver that is gone belongs to a client that hung up; the work is done all the same.
            let _ = sender.send(opened);
            drop(active);
        });
        loop {
            let news = async {
                match &mut waiting {
                    Some(waiting) => waiting.news().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // A task that ends without a word has panicked; the recovery worker goes on from what was committed.
                opened = &mut answer => return opened.unwrap_or(Opened::Lost),
                news = news => match news {
                    Some(News::Pending { charge: told, retry_after }) if told == charge => {
                        return Opened::News(News::Pending { charge, retry_after });
                    }
                    // Of an earlier request under this key, or what the answer itself will say.
                    Some(News::Pending { .. } | News::Settled(_)) | None => waiting = None,
                },
            }
        }
    }

    /// What is there after a commit nobody can be sure of. Somebody else's record speaks for itself; ours is under way,
    /// and the recovery worker goes on with it. If there is none, ours may still appear.
    async fn after_doubt(&self, claim: ClaimId, charge: ChargeId) -> Opened {
        match self.store.read(vec![RowKey::Claim(claim)]).await.as_deref() {
            Ok([Some(Row::Claim(found))]) if found.subject != charge.into() => {
                Opened::Found(Box::new(found.clone()))
            }
            Ok(_) | Err(_) => Opened::Doubtful(charge),
        }
    }

    /// Ids for a charge and its set. A slot that lapsed while the store was away is claimed anew.
    pub(crate) async fn mint_pair(&self) -> Result<(Time, i64, i64), MintError> {
        let pair = |now| Ok((now, self.ids.next(now)?, self.ids.next(now)?));
        match pair(self.store.now()) {
            Err(MintError::LeaseOver) if self.renew_slot().await.is_ok() => pair(self.store.now()),
            minted => minted,
        }
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

    async fn wait_for_news(self: &Arc<Self>, request: &Request) -> Submitted {
        let jitter = self.dice().checked_rem(WAIT_JITTER_MS).unwrap_or(0);
        let patience = Duration::from_millis(self.policy.wait.ms().saturating_add(jitter));
        let begun = self.world.elapsed();
        let mut elsewhere = pin!(None);
        loop {
            // Queue first, then look: news that comes in between is not missed.
            let Some(mut waiting) = self.waiters.queue(request.claim) else { return Submitted::InUse };
            let Ok(rows) = self.store.read(vec![RowKey::Claim(request.claim)]).await else {
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
                    (idle, Submitted::Pending { charge: claim.subject.into(), retry_after })
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

fn claim_set(id: SetId, opening: &Opening, expired: Option<&Claim>) -> ChangeSet {
    let set = ChangeSet::new(id);
    let set = match expired {
        Some(old) => set.replace(opening.claim.clone(), old.revision),
        None => set.insert(opening.claim.clone()),
    };
    set.insert(opening.charge.clone()).insert(opening.outbox.clone()).insert(opening.audit.clone())
}
