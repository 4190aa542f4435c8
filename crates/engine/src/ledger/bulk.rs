//! Bulk requests: many transactions under one key, with a result for each.
//!
//! The transactions are committed in as few sets as possible. The claim is part of every set: the
//! first set inserts it, later ones renew its lease, the last one stores the answer. The
//! transactions' ids follow from the claim's subject. After a crash, another process can therefore
//! take the key over, see which transactions exist and continue with the rest.

use super::chunk::{Chunk, Drafted, is_one_way, whole};
use super::decisions::{DecisionError, deltas, insert};
use super::spread::Blocked;
use crate::commit::NotCommitted;
use crate::detach::DetachOnDrop;
use crate::engine::Inner;
use crate::present::{ItemResult, LedgerReply};
use crate::refuse::claim_set;
use crate::service::Submitted;
use crate::signal::{ClaimOutcome, Signal};
use crate::submit::{KeyState, ROUNDS_MAX};
use crate::world::World;
use counterfoil_core::audit::AuditKind;
use counterfoil_core::idempotency::claim::{Claim, ClaimEvent, ClaimState, Resource, Settled};
use counterfoil_core::idempotency::request::{Outcome, Request};
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::balance::{Balance, BalanceRefusal};
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::payments::ledger::decide::{DecisionContext, KnownAccounts, post, transfer};
use counterfoil_core::payments::ledger::{AccountSelector, Item, LedgerRefusal};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::{AccountId, SetId, SubjectId, TenantId, TransactionId, nth_after};
use counterfoil_core::types::limits::{CHANGES_PER_SET_MAX, SCAN_MAX};
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, ReadError, RefusalReason, Row, RowKey, Store};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Refused sets of a chunk before the items are tried one by one. Sets are refused when balances
/// move meanwhile.
const CHUNK_TRIES: u32 = 3;
/// Changes of a set besides transactions and moves: the claim and the audit record.
const FIXED_CHANGES: usize = 2;

/// A bulk request under way.
struct Bulk<'a> {
    request: Request,
    items: &'a [Item],
    known: KnownAccounts,
    /// The claim's subject. The ids of the items follow it.
    first: i64,
    results: Vec<Option<ItemResult>>,
    /// The expired claim to be replaced.
    expired: Option<Claim>,
    /// The last committed claim.
    claim: Option<Claim>,
}

/// Result of a chunk, and of the whole request.
enum ChunkResult {
    Done,
    /// A balance does not allow the chunk as a whole.
    Unfit(BalanceRefusal),
    /// Another request holds the key.
    Taken(Box<Claim>),
    /// The expired claim to be replaced is gone; the key is free.
    KeyFree,
    /// Another process continues the work.
    Elsewhere,
    StoreFailed(String),
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Runs the items to the end. A client that hangs up cancels nothing.
    pub(crate) async fn bulk(self: &Arc<Self>, request: Request, items: Vec<Item>) -> Submitted {
        if let Some(submitted) = self.cached_answer(&request).await {
            return submitted;
        }
        if self.is_draining() {
            return self.replay_only(&request).await;
        }
        let (inner, active) = (Arc::clone(self), self.enter());
        let running = async move {
            let submitted = inner.run_bulk(request, &items).await;
            drop(active);
            submitted
        };
        DetachOnDrop::new(&self.world, running).await.unwrap_or(Submitted::InUse)
    }

    async fn run_bulk(self: &Arc<Self>, request: Request, items: &[Item]) -> Submitted {
        let mut found: Option<Claim> = None;
        for _ in 0..ROUNDS_MAX {
            if let Some(claim) = &found {
                match self.key_state(claim, &request) {
                    KeyState::Answered(submitted) => return submitted,
                    KeyState::Free => {}
                    KeyState::Unsettled if is_abandoned(claim, self.store.now()) => {}
                    KeyState::Unsettled => return self.wait(&request).await,
                }
            }
            let (result, claim) = match self.begin_bulk(request, items, found.take()).await {
                Ok(mut bulk) => (self.finish_bulk(&mut bulk).await, bulk.claim),
                Err(result) => (result, None),
            };
            match result {
                ChunkResult::Done => {
                    return match claim {
                        Some(claim) => {
                            let claim = Arc::new(claim);
                            let news = crate::waiters::News::Settled(Arc::clone(&claim));
                            self.waiters.tell(claim.id, &news);
                            self.answer_first_request(&request, claim)
                        }
                        None => Submitted::InUse,
                    };
                }
                ChunkResult::Taken(claim) => found = Some(*claim),
                ChunkResult::KeyFree => {}
                ChunkResult::Elsewhere => return self.wait(&request).await,
                ChunkResult::Unfit(_) => self.watch.saw(Signal::Conflict),
                ChunkResult::StoreFailed(why) => return self.failed_closed(&why),
            }
        }
        self.counted(request.tenant, ClaimOutcome::InUse, Submitted::InUse)
    }

    /// Starts a new request, or takes over an abandoned one.
    async fn begin_bulk<'a>(
        &self,
        request: Request,
        items: &'a [Item],
        found: Option<Claim>,
    ) -> Result<Bulk<'a>, ChunkResult> {
        let now = self.store.now();
        let names = items.iter().flat_map(names);
        let known = self.known_accounts(request.tenant, names).await?;
        let abandoned = found.as_ref().filter(|claim| is_abandoned(claim, now));
        let (first, claim) = match abandoned {
            Some(claim) => {
                let lease = self.policy.lease.grant(self.ids.holder(), now);
                let taken = claim.on(ClaimEvent::TakenOver(lease));
                let taken = taken.map_err(|illegal| ChunkResult::StoreFailed(format!("{illegal:?}")))?;
                let id = self
                    .next_id(now)
                    .await
                    .ok_or_else(|| ChunkResult::StoreFailed("no id can be minted".into()))?;
                let detail = format!("from={} attempt={}", claim.state.name(), taken.attempts);
                let set = ChangeSet::new(SetId::from_i64(id))
                    .replace(taken.clone(), claim.revision)
                    .insert(self.record(&taken, now, AuditKind::TakenOver, detail));
                self.commit(set).await.map_err(takeover_failure)?;
                self.watch.saw(Signal::Claim { tenant: request.tenant, outcome: ClaimOutcome::Reclaimed });
                (claim.subject.to_i64(), Some(taken))
            }
            None => (self.block(now, items.len().saturating_add(1)).await?, None),
        };
        let mut results = vec![None; items.len()];
        if claim.is_some() {
            let ids: Vec<RowKey> = (1..=items.len())
                .filter_map(|place| nth_after(first, place))
                .map(|id| RowKey::Transaction(request.tenant, TransactionId::from_i64(id)))
                .collect();
            let mut written = Vec::with_capacity(ids.len());
            for ids in ids.chunks(SCAN_MAX) {
                written.extend(self.store.read(ids.to_vec()).await?);
            }
            for (result, row) in results.iter_mut().zip(written) {
                if let Some(Row::Transaction(transaction)) = row {
                    *result = Some(ItemResult::Posted(Box::new(transaction)));
                }
            }
        }
        let expired = if claim.is_some() { None } else { found };
        Ok(Bulk { request, items, known, first, results, expired, claim })
    }

    async fn block(&self, now: Time, count: usize) -> Result<i64, DecisionError> {
        // Minting one id renews a lapsed worker slot.
        self.next_id(now).await.ok_or_else(|| DecisionError("no id can be minted".into()))?;
        self.ids.block(now, count).map_err(|error| DecisionError(format!("no ids can be minted: {error:?}")))
    }

    async fn finish_bulk(&self, bulk: &mut Bulk<'_>) -> ChunkResult {
        let mut next = 0;
        loop {
            match self.next_chunk(bulk, next).await {
                Ok((end, ChunkResult::Done)) if end >= bulk.items.len() => return ChunkResult::Done,
                Ok((end, ChunkResult::Done)) => next = end,
                Ok((_, result)) => return result,
                Err(DecisionError(why)) => return ChunkResult::StoreFailed(why),
            }
        }
    }

    /// Commits as many items from `start` on as fit into a single set. Returns the start of the
    /// next chunk.
    async fn next_chunk(
        &self,
        bulk: &mut Bulk<'_>,
        start: usize,
    ) -> Result<(usize, ChunkResult), DecisionError> {
        for round in 0..=CHUNK_TRIES {
            let now = self.store.now();
            // The first try is optimistic: usually everything fits, and no balance is read.
            let optimistic = round == 0;
            let chunk = self.gather_chunk(bulk, start..bulk.items.len(), now, optimistic).await?;
            match self.commit_chunk(bulk, &chunk, now).await {
                ChunkResult::Unfit(_) if optimistic => {}
                ChunkResult::Unfit(_) => self.watch.saw(Signal::Conflict),
                result => return Ok((chunk.end, result)),
            }
        }
        // Other writers were always faster: try the next item alone and take the judge's refusal as
        // its result.
        let now = self.store.now();
        let mut chunk = self.gather_chunk(bulk, start..start.saturating_add(1), now, false).await?;
        let result = match self.commit_chunk(bulk, &chunk, now).await {
            ChunkResult::Unfit(unfit) => {
                chunk
                    .decided
                    .iter_mut()
                    .for_each(|(_, result)| *result = ItemResult::Refused(refusal(unfit)));
                chunk.deltas.clear();
                self.commit_chunk(bulk, &chunk, now).await
            }
            result => result,
        };
        Ok((chunk.end, result))
    }

    /// Decides items at `places` until a set is full. An optimistic chunk reads no balances where
    /// each account only gains or only loses; the judge decides whether they suffice.
    async fn gather_chunk(
        &self,
        bulk: &Bulk<'_>,
        places: Range<usize>,
        now: Time,
        optimistic: bool,
    ) -> Result<Chunk, DecisionError> {
        let room = CHANGES_PER_SET_MAX.saturating_sub(FIXED_CHANGES);
        let mut drafts: Vec<(usize, Drafted)> = Vec::new();
        let mut wanted: Vec<AccountId> = Vec::new();
        let mut end = places.start;
        let mut changes = 0_usize;
        for place in places {
            if bulk.results.get(place).is_some_and(Option::is_some) {
                end = place.saturating_add(1);
                continue;
            }
            let draft = bulk.decide(place, now)?;
            let mut fresh: Vec<AccountId> = Vec::new();
            if let Ok((_, deltas)) = &draft {
                let accounts = deltas.iter().map(|(account, _)| account.id);
                fresh.extend(accounts.filter(|id| !wanted.contains(id)));
                changes = changes.saturating_add(fresh.len()).saturating_add(1);
            }
            if changes > room && !drafts.is_empty() {
                break;
            }
            wanted.extend(fresh);
            drafts.push((place, draft));
            end = place.saturating_add(1);
        }
        let mut balances =
            if optimistic && is_one_way(&drafts) { HashMap::new() } else { self.balances(&drafts).await? };
        let mut chunk = Chunk { decided: Vec::with_capacity(drafts.len()), deltas: Vec::new(), end };
        for (place, draft) in drafts {
            let result = match draft {
                Err(result) => result,
                Ok((transaction, deltas)) => match chunk.take(&deltas, &mut balances) {
                    Ok(()) => ItemResult::Posted(Box::new(transaction)),
                    Err(unfit) => ItemResult::Refused(refusal(unfit)),
                },
            };
            chunk.decided.push((place, result));
        }
        Ok(chunk)
    }

    /// Balances over all shards, as the judge will probably find them.
    async fn balances(
        &self,
        drafts: &[(usize, Drafted)],
    ) -> Result<HashMap<AccountId, Balance>, DecisionError> {
        let drafted = drafts.iter().filter_map(|(_, draft)| draft.as_ref().ok());
        // Sorted, so that the same request makes the same reads.
        let accounts: BTreeMap<AccountId, Arc<Account>> = drafted
            .flat_map(|(_, deltas)| deltas)
            .map(|(account, _)| (account.id, Arc::clone(account)))
            .collect();
        let shards = self.shards(accounts.into_values().collect()).await?;
        Ok(shards.iter().map(|(account, shards)| (account.id, whole(account, shards))).collect())
    }

    async fn commit_chunk(&self, bulk: &mut Bulk<'_>, chunk: &Chunk, now: Time) -> ChunkResult {
        for (place, result) in &chunk.decided {
            bulk.note(*place, Some(result.clone()));
        }
        let result = self.offer_chunk(bulk, chunk, now).await;
        if !matches!(result, ChunkResult::Done) {
            // Not committed: the items must be decided again.
            for (place, _) in &chunk.decided {
                bulk.note(*place, None);
            }
        }
        result
    }

    async fn offer_chunk(&self, bulk: &mut Bulk<'_>, chunk: &Chunk, now: Time) -> ChunkResult {
        let claim = match self.chunk_claim(bulk, chunk, now) {
            Ok(claim) => Arc::new(claim),
            Err(why) => return ChunkResult::StoreFailed(why),
        };
        let Some(id) = self.next_id(now).await else {
            return ChunkResult::StoreFailed("no id can be minted".into());
        };
        let before = bulk.claim.as_ref().or(bulk.expired.as_ref());
        let mut set = claim_set(SetId::from_i64(id), &claim, before);
        let mut posted = 0_usize;
        for (_, result) in &chunk.decided {
            if let ItemResult::Posted(transaction) = result {
                set = set.with(insert(Transaction::clone(transaction)));
                posted = posted.saturating_add(1);
            }
        }
        let refused = chunk.decided.len().saturating_sub(posted);
        let detail = format!("request=req_{} kind=bulk posted={posted} refused={refused}", bulk.request.id);
        let set = set.insert(self.record(&claim, now, AuditKind::Posted, detail));
        let seed = self.world.chance();
        match self.commit_moving(&set, &chunk.deltas, seed).await {
            Ok(_) => {
                bulk.claim = Some(Claim::clone(&claim));
                ChunkResult::Done
            }
            Err(Blocked::Unfit(unfit)) => ChunkResult::Unfit(unfit),
            Err(Blocked::Refused(refusal)) => match refusal.found {
                Some(Row::Claim(found)) if bulk.claim.is_none() => ChunkResult::Taken(Box::new(found)),
                None if bulk.claim.is_none() && refusal.reason == RefusalReason::Absent => {
                    ChunkResult::KeyFree
                }
                _ => ChunkResult::Elsewhere,
            },
            Err(Blocked::Failed(NotCommitted::Unavailable(why))) => ChunkResult::StoreFailed(why),
            Err(Blocked::Failed(error)) => ChunkResult::StoreFailed(format!("{error:?}")),
        }
    }

    /// The claim in a chunk's set: settled in the last set, in flight before.
    fn chunk_claim(&self, bulk: &Bulk<'_>, chunk: &Chunk, now: Time) -> Result<Claim, String> {
        let request = &bulk.request;
        let subject = SubjectId::from_i64(bulk.first);
        let done = || {
            let results: Vec<ItemResult> = bulk.results.iter().flatten().cloned().collect();
            let reply = self.present.ledger(LedgerReply::Bulk { id: subject, results: &results }, request.id);
            Settled { reply, windows: self.policy.windows.windows(request.claim, now) }
        };
        let last = chunk.end >= bulk.items.len();
        let lease = self.policy.lease.grant(self.ids.holder(), now);
        match &bulk.claim {
            None if last => Ok(request.settled(
                subject,
                Resource::Bulk,
                Outcome::Done(done()),
                now,
                bulk.expired.as_ref(),
            )),
            None => Ok(request.claim(
                subject,
                Resource::Bulk,
                ClaimState::InFlight(lease),
                now,
                bulk.expired.as_ref(),
            )),
            Some(claim) => {
                let event = if last {
                    ClaimEvent::Completed(done())
                } else {
                    ClaimEvent::Renewed { until: lease.until }
                };
                claim.on(event).map_err(|illegal| format!("{illegal:?} is a defect to report"))
            }
        }
    }
}

impl Bulk<'_> {
    fn note(&mut self, place: usize, result: Option<ItemResult>) {
        if let Some(slot) = self.results.get_mut(place) {
            *slot = result;
        }
    }

    /// Decides the item at `place`.
    fn decide(&self, place: usize, now: Time) -> Result<Drafted, DecisionError> {
        let id = nth_after(self.first, place.saturating_add(1));
        let (Some(id), Some(item)) = (id, self.items.get(place)) else {
            return Err(DecisionError("an item has no id".into()));
        };
        let tenant: TenantId = self.request.tenant;
        let context = DecisionContext { tenant, id: TransactionId::from_i64(id), now };
        let decided = match item.clone() {
            Item::Transfer(order) if order.hold.is_some() => {
                Err(vec![Flaw::new("/hold", "a transfer of many cannot be held; send it on its own")])
            }
            Item::Transfer(order) => {
                transfer(order, &self.known, context).map(|(transaction, _)| transaction)
            }
            Item::Post(order) => post(order, &self.known, context),
        };
        match decided {
            Ok(transaction) => {
                let deltas = deltas(&self.known, &transaction)?;
                Ok(Ok((transaction, deltas)))
            }
            Err(flaws) => Ok(Err(ItemResult::Invalid(flaws))),
        }
    }
}

impl From<DecisionError> for ChunkResult {
    fn from(DecisionError(why): DecisionError) -> ChunkResult {
        ChunkResult::StoreFailed(why)
    }
}

impl From<ReadError> for ChunkResult {
    fn from(error: ReadError) -> ChunkResult {
        ChunkResult::StoreFailed(error.to_string())
    }
}

/// Result of a failed takeover. Usually another process was faster.
fn takeover_failure(error: NotCommitted) -> ChunkResult {
    match error {
        NotCommitted::Refused(refusal) => match refusal.found {
            Some(Row::Claim(found)) => ChunkResult::Taken(Box::new(found)),
            _ => ChunkResult::Elsewhere,
        },
        NotCommitted::Unavailable(why) => ChunkResult::StoreFailed(why),
        NotCommitted::InDoubt => ChunkResult::StoreFailed("taking the work over is in doubt".into()),
    }
}

/// Whether the claim is an unfinished bulk request whose lease is over.
fn is_abandoned(claim: &Claim, now: Time) -> bool {
    claim.makes == Resource::Bulk && claim.state.lease().is_some_and(|lease| lease.is_over(now))
}

fn names(item: &Item) -> Vec<&AccountSelector> {
    match item {
        Item::Transfer(order) => vec![&order.from, &order.to],
        Item::Post(order) => order.entries.iter().map(|leg| &leg.account).collect(),
    }
}

const fn refusal(unfit: BalanceRefusal) -> LedgerRefusal {
    match unfit {
        BalanceRefusal::CapExceeded => LedgerRefusal::CapExceeded,
        BalanceRefusal::Insufficient | BalanceRefusal::NotHeld => LedgerRefusal::InsufficientFunds,
    }
}
