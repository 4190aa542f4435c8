//! Many transactions under one key, each with its own result.
//!
//! They are committed in as few sets as fit. The claim travels in every set: the first makes it, those between renew
//! its lease, the last stores the answer. The numbers of the transactions follow from the claim's own, so whoever takes
//! the key over after a crash sees which of them were written and goes on with the rest.

use super::acts::{Trouble, deltas, insert};
use super::chunk::{Chunk, Drafted, is_one_way, whole};
use super::spread::Blocked;
use crate::commit::NotCommitted;
use crate::detach::DetachOnDrop;
use crate::engine::Inner;
use crate::present::{ItemResult, LedgerReply};
use crate::refuse::keyed;
use crate::service::Submitted;
use crate::signal::{ClaimOutcome, Signal};
use crate::submit::{Met, ROUNDS_MAX};
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

/// Sets of one chunk that may be refused because balances moved before its items are tried one by one.
const CHUNK_TRIES: u32 = 3;
/// What a set holds besides transactions and moves: the claim and the audit record.
const FIXED_CHANGES: usize = 2;

/// A bulk request under way.
struct Bulk<'a> {
    request: Request,
    items: &'a [Item],
    known: KnownAccounts,
    /// The number all others follow from.
    first: i64,
    results: Vec<Option<ItemResult>>,
    /// The record whose key is free again.
    expired: Option<Claim>,
    /// The claim as last committed.
    claim: Option<Claim>,
}

/// How a chunk ended.
enum Step {
    /// It is committed.
    Done,
    /// A balance does not allow it as a whole.
    Unfit(BalanceRefusal),
    /// Somebody else has the key.
    Found(Box<Claim>),
    /// The record that was to be claimed anew is gone; the key is free.
    Gone,
    /// Somebody else went on with the work.
    Lost,
    /// The store did not take it.
    Failed(String),
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Runs the items to the end, whoever waits for it or not.
    pub(crate) async fn bulk(self: &Arc<Self>, request: Request, items: Vec<Item>) -> Submitted {
        if let Some(submitted) = self.remembered(&request).await {
            return submitted;
        }
        if self.is_draining() {
            return self.only_replay(&request).await;
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
                match self.settled(claim, &request) {
                    Met::Answered(submitted) => return submitted,
                    Met::Free => {}
                    Met::Unsettled if is_abandoned(claim, self.store.now()) => {}
                    Met::Unsettled => return self.wait(&request).await,
                }
            }
            let (step, claim) = match self.begin_bulk(request, items, found.take()).await {
                Ok(mut bulk) => (self.finish_bulk(&mut bulk).await, bulk.claim),
                Err(step) => (step, None),
            };
            match step {
                Step::Done => {
                    return match claim {
                        Some(claim) => {
                            let claim = Arc::new(claim);
                            let news = crate::waiters::News::Settled(Arc::clone(&claim));
                            self.waiters.tell(claim.id, &news);
                            self.won(&request, claim)
                        }
                        None => Submitted::InUse,
                    };
                }
                Step::Found(claim) => found = Some(*claim),
                Step::Gone => {}
                Step::Lost => return self.wait(&request).await,
                Step::Unfit(_) => self.watch.saw(Signal::Conflict),
                Step::Failed(why) => return self.failed_closed(&why),
            }
        }
        self.told(request.tenant, ClaimOutcome::InUse, Submitted::InUse)
    }

    /// Starts anew, or takes over what somebody left behind.
    async fn begin_bulk<'a>(
        &self,
        request: Request,
        items: &'a [Item],
        found: Option<Claim>,
    ) -> Result<Bulk<'a>, Step> {
        let now = self.store.now();
        let names = items.iter().flat_map(names);
        let known = self.known(request.tenant, names).await?;
        let abandoned = found.as_ref().filter(|claim| is_abandoned(claim, now));
        let (first, claim) = match abandoned {
            Some(claim) => {
                let lease = self.policy.lease.grant(self.ids.holder(), now);
                let taken = claim.on(ClaimEvent::TakenOver(lease));
                let taken = taken.map_err(|illegal| Step::Failed(format!("{illegal:?}")))?;
                let id = self.next_id(now).await.ok_or_else(|| Step::Failed("no id can be minted".into()))?;
                let detail = format!("from={} attempt={}", claim.state.name(), taken.attempts);
                let set = ChangeSet::new(SetId::from_i64(id))
                    .replace(taken.clone(), claim.revision)
                    .insert(self.record(&taken, now, AuditKind::TakenOver, detail));
                self.commit(set).await.map_err(not_taken)?;
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

    async fn block(&self, now: Time, count: usize) -> Result<i64, Trouble> {
        // Renews the slot where that is needed.
        self.next_id(now).await.ok_or_else(|| Trouble("no id can be minted".into()))?;
        self.ids.block(now, count).map_err(|error| Trouble(format!("no ids can be minted: {error:?}")))
    }

    async fn finish_bulk(&self, bulk: &mut Bulk<'_>) -> Step {
        let mut next = 0;
        loop {
            match self.next_chunk(bulk, next).await {
                Ok((end, Step::Done)) if end >= bulk.items.len() => return Step::Done,
                Ok((end, Step::Done)) => next = end,
                Ok((_, step)) => return step,
                Err(Trouble(why)) => return Step::Failed(why),
            }
        }
    }

    /// Commits items from `start` on, as many as fit into one set. Says where the next chunk starts.
    async fn next_chunk(&self, bulk: &mut Bulk<'_>, start: usize) -> Result<(usize, Step), Trouble> {
        for round in 0..=CHUNK_TRIES {
            let now = self.store.now();
            // Mostly everything fits, and then nothing need be read.
            let hopes = round == 0;
            let chunk = self.gather_chunk(bulk, start..bulk.items.len(), now, hopes).await?;
            match self.commit_chunk(bulk, &chunk, now).await {
                Step::Unfit(_) if hopes => {}
                Step::Unfit(_) => self.watch.saw(Signal::Conflict),
                step => return Ok((chunk.end, step)),
            }
        }
        // Somebody is always faster: the next item alone, and the judge's own word about it.
        let now = self.store.now();
        let mut chunk = self.gather_chunk(bulk, start..start.saturating_add(1), now, false).await?;
        let step = match self.commit_chunk(bulk, &chunk, now).await {
            Step::Unfit(unfit) => {
                chunk
                    .decided
                    .iter_mut()
                    .for_each(|(_, result)| *result = ItemResult::Refused(refusal(unfit)));
                chunk.deltas.clear();
                self.commit_chunk(bulk, &chunk, now).await
            }
            step => step,
        };
        Ok((chunk.end, step))
    }

    /// Decides items at `places` until a set is full: against balances as they stand or, where it may hope that the judge
    /// finds them sufficient, without.
    async fn gather_chunk(
        &self,
        bulk: &Bulk<'_>,
        places: Range<usize>,
        now: Time,
        hopes: bool,
    ) -> Result<Chunk, Trouble> {
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
            if hopes && is_one_way(&drafts) { HashMap::new() } else { self.balances(&drafts).await? };
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

    /// Balances over all shards: what the judge will most likely find.
    async fn balances(&self, drafts: &[(usize, Drafted)]) -> Result<HashMap<AccountId, Balance>, Trouble> {
        let drafted = drafts.iter().filter_map(|(_, draft)| draft.as_ref().ok());
        // In the order of their numbers, so that the same request reads the same.
        let accounts: BTreeMap<AccountId, Arc<Account>> = drafted
            .flat_map(|(_, deltas)| deltas)
            .map(|(account, _)| (account.id, Arc::clone(account)))
            .collect();
        let shards = self.shards(accounts.into_values().collect()).await?;
        Ok(shards.iter().map(|(account, shards)| (account.id, whole(account, shards))).collect())
    }

    async fn commit_chunk(&self, bulk: &mut Bulk<'_>, chunk: &Chunk, now: Time) -> Step {
        for (place, result) in &chunk.decided {
            bulk.note(*place, Some(result.clone()));
        }
        let step = self.offer_chunk(bulk, chunk, now).await;
        if !matches!(step, Step::Done) {
            // Not committed: the items are still to be decided.
            for (place, _) in &chunk.decided {
                bulk.note(*place, None);
            }
        }
        step
    }

    async fn offer_chunk(&self, bulk: &mut Bulk<'_>, chunk: &Chunk, now: Time) -> Step {
        let claim = match self.chunk_claim(bulk, chunk, now) {
            Ok(claim) => Arc::new(claim),
            Err(why) => return Step::Failed(why),
        };
        let Some(id) = self.next_id(now).await else { return Step::Failed("no id can be minted".into()) };
        let before = bulk.claim.as_ref().or(bulk.expired.as_ref());
        let mut set = keyed(SetId::from_i64(id), &claim, before);
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
                Step::Done
            }
            Err(Blocked::Unfit(unfit)) => Step::Unfit(unfit),
            Err(Blocked::Refused(refusal)) => match refusal.found {
                Some(Row::Claim(found)) if bulk.claim.is_none() => Step::Found(Box::new(found)),
                None if bulk.claim.is_none() && refusal.reason == RefusalReason::Absent => Step::Gone,
                _ => Step::Lost,
            },
            Err(Blocked::Failed(NotCommitted::Unavailable(why))) => Step::Failed(why),
            Err(Blocked::Failed(error)) => Step::Failed(format!("{error:?}")),
        }
    }

    /// The claim that travels with a chunk: settled with the last, in flight before.
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

    /// What the item at `place` would do.
    fn decide(&self, place: usize, now: Time) -> Result<Drafted, Trouble> {
        let id = nth_after(self.first, place.saturating_add(1));
        let (Some(id), Some(item)) = (id, self.items.get(place)) else {
            return Err(Trouble("no number for an item".into()));
        };
        let tenant: TenantId = self.request.tenant;
        let frame = DecisionContext { tenant, id: TransactionId::from_i64(id), now };
        let decided = match item.clone() {
            Item::Transfer(order) if order.hold.is_some() => {
                Err(vec![Flaw::new("/hold", "a transfer of many cannot be held; send it on its own")])
            }
            Item::Transfer(order) => transfer(order, &self.known, frame).map(|(transaction, _)| transaction),
            Item::Post(order) => post(order, &self.known, frame),
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

impl From<Trouble> for Step {
    fn from(Trouble(why): Trouble) -> Step {
        Step::Failed(why)
    }
}

impl From<ReadError> for Step {
    fn from(error: ReadError) -> Step {
        Step::Failed(error.to_string())
    }
}

/// Why work that was left behind could not be taken over: most likely somebody else did.
fn not_taken(error: NotCommitted) -> Step {
    match error {
        NotCommitted::Refused(refusal) => match refusal.found {
            Some(Row::Claim(found)) => Step::Found(Box::new(found)),
            _ => Step::Lost,
        },
        NotCommitted::Unavailable(why) => Step::Failed(why),
        NotCommitted::InDoubt => Step::Failed("taking the work over is in doubt".into()),
    }
}

/// Whether whoever worked on a bulk request has left it behind.
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
