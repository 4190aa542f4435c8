//! Commits of sets that move guarded balances. Each delta goes to a single shard; a delta that does
//! not fit there is planned over all shards of the account.

use crate::commit::NotCommitted;
use crate::engine::Inner;
use crate::signal::Signal;
use crate::world::World;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::balance::{Balance, BalanceRefusal, Delta};
use counterfoil_core::ledger::shard::{ShardPart, ShardPlan, pick, plan, refill};
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::limits::{CHANGES_PER_SET_MAX, SCAN_MAX};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_gateway::Gateway;
use counterfoil_store::{
    ChangeSet, CommitReceipt, CommitRefusal, Move, ReadError, RefusalReason, Row, RowKey, Store,
};
use std::sync::Arc;

/// Deltas of guarded accounts, each account once.
pub(crate) type Deltas = Vec<(Arc<Account>, Delta)>;

/// The reason why a set with moves was not committed.
#[derive(Debug)]
pub(crate) enum Blocked {
    /// A change other than a move was refused.
    Refused(Box<CommitRefusal>),
    /// An account as a whole does not allow its delta.
    Unfit(BalanceRefusal),
    /// The commit failed or is in doubt.
    Failed(NotCommitted),
}

/// A seed derived from a number. Neighbouring numbers give distant shards.
pub(crate) fn scatter(number: i64) -> u128 {
    // The golden ratio in 64 bits: its products are spread evenly (Knuth's multiplicative hashing).
    const GOLDEN: u128 = 0x9e37_79b9_7f4a_7c15;
    u128::from(number.unsigned_abs()).wrapping_mul(GOLDEN) >> 32_u32 & u128::from(u32::MAX)
}

/// Attempts to plan one set. Each plan may be outdated by other writers.
const PLANS_MAX: u32 = 16;

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Commits `set` with the moves of `deltas`. `seed` chooses the shards.
    pub(crate) async fn commit_moving(
        &self,
        set: &ChangeSet,
        deltas: &Deltas,
        seed: u128,
    ) -> Result<CommitReceipt, Blocked> {
        let first = |(account, delta): &(Arc<Account>, Delta)| {
            vec![ShardPart { shard: pick(account.shards, seed), delta: *delta }]
        };
        let mut plans: Vec<Vec<ShardPart>> = deltas.iter().map(first).collect();
        for _ in 0..PLANS_MAX {
            let mut whole = set.clone();
            // The index of each move's account.
            let mut owners = Vec::with_capacity(deltas.len());
            for (owner, ((account, _), parts)) in deltas.iter().zip(&plans).enumerate() {
                for part in parts {
                    whole = whole.shift(motion(account, part));
                    owners.push(owner);
                }
            }
            let refusal = match self.commit(whole).await {
                Ok(receipt) => {
                    self.warm(deltas);
                    return Ok(receipt);
                }
                Err(NotCommitted::Refused(refusal)) => refusal,
                Err(other) => return Err(Blocked::Failed(other)),
            };
            let moved = refusal.change.checked_sub(set.changes().len()).and_then(|at| owners.get(at));
            let Some(&owner) = moved else { return Err(Blocked::Refused(refusal)) };
            let (Some((account, delta)), true) = (deltas.get(owner), is_unfit(refusal.reason)) else {
                return Err(Blocked::Refused(refusal));
            };
            let others: usize =
                plans.iter().enumerate().filter(|(at, _)| *at != owner).map(|(_, parts)| parts.len()).sum();
            let room = CHANGES_PER_SET_MAX.saturating_sub(set.changes().len()).saturating_sub(others);
            let wanted = pick(account.shards, seed);
            let parts = self.plan(account, wanted, *delta, room).await?;
            self.watch.saw(Signal::Conflict);
            if let Some(place) = plans.get_mut(owner) {
                *place = parts;
            }
        }
        Err(Blocked::Failed(NotCommitted::Unavailable(
            "other writers on its accounts were always faster".into(),
        )))
    }

    /// Plans a delta over the current shards, and gathers money that is scattered over too
    /// many.
    async fn plan(
        &self,
        account: &Arc<Account>,
        wanted: u8,
        delta: Delta,
        room: usize,
    ) -> Result<Vec<ShardPart>, Blocked> {
        let unavailable = |why: String| Blocked::Failed(NotCommitted::Unavailable(why));
        for _ in 0..PLANS_MAX {
            let shards = self.shards(vec![Arc::clone(account)]).await;
            let mut shards = shards.map_err(|error| unavailable(error.to_string()))?;
            let Some((_, shards)) = shards.pop() else {
                return Err(unavailable("the account is gone".into()));
            };
            // Prefer to refill the wanted shard, so that the next write to it fits as well.
            if let Some(parts) = refill(&shards, wanted, delta).filter(|parts| parts.len() <= room) {
                return Ok(parts);
            }
            match plan(&shards, delta, room).map_err(Blocked::Unfit)? {
                ShardPlan::Apply(parts) => return Ok(parts),
                ShardPlan::GatherFirst(parts) => self.gather(account, &parts).await?,
            }
        }
        Err(unavailable("the account's shards change too fast to be gathered".into()))
    }

    /// All shards of each account, read in a single snapshot per account. Accounts that another
    /// process has spread wider than cached here are read again.
    pub(super) async fn shards(
        &self,
        mut wanted: Vec<Arc<Account>>,
    ) -> Result<Vec<(Arc<Account>, Vec<Balance>)>, ReadError> {
        let mut all = Vec::with_capacity(wanted.len());
        while !wanted.is_empty() {
            let mut keys: Vec<RowKey> = Vec::new();
            let mut asked = 0_usize;
            for account in &wanted {
                if asked > 0 && keys.len().saturating_add(usize::from(account.widest)) >= SCAN_MAX {
                    break;
                }
                keys.push(RowKey::Account(account.tenant, account.id));
                let shards = numbers(account).map(|shard| RowKey::Balance(account.tenant, account.id, shard));
                keys.extend(shards);
                asked = asked.saturating_add(1);
            }
            let mut rows = self.store.read(keys).await?.into_iter();
            let rest = wanted.split_off(asked);
            for account in std::mem::replace(&mut wanted, rest) {
                let fresh = rows.next().flatten();
                let shards = numbers(&account)
                    .map(|shard| match rows.next().flatten() {
                        Some(Row::Balance(balance)) => balance,
                        _ => Balance::empty(account.tenant, account.id, shard, account.guard.guarded()),
                    })
                    .collect();
                match fresh {
                    // The width only grows, so this ends.
                    Some(Row::Account(fresh)) if fresh.widest > account.widest => {
                        let fresh = Arc::new(fresh);
                        self.accounts.learn(&fresh);
                        wanted.push(fresh);
                    }
                    _ => all.push((account, shards)),
                }
            }
        }
        Ok(all)
    }

    /// Moves money between the shards of an account; the sum is unchanged.
    async fn gather(&self, account: &Account, parts: &[ShardPart]) -> Result<(), Blocked> {
        let Some(id) = self.next_id(self.store.now()).await else {
            return Err(Blocked::Failed(NotCommitted::Unavailable("no id can be minted".into())));
        };
        let set = parts
            .iter()
            .fold(ChangeSet::new(SetId::from_i64(id)), |set, part| set.shift(motion(account, part)));
        match self.commit(set).await {
            // Refused: another writer was faster, and the next plan sees its result.
            Ok(_) | Err(NotCommitted::Refused(_)) => Ok(()),
            Err(other) => Err(Blocked::Failed(other)),
        }
    }

    fn warm(&self, deltas: &Deltas) {
        for (account, _) in deltas {
            for (hot, writes) in self.heat.wrote(account, self.store.now()) {
                let reference = self.references.seal(ReferenceKind::Account, hot.to_i64());
                tracing::warn!(account = %reference, writes, "a guarded account is hot; spread it with POST /v1/accounts/{{id}}/shards");
                self.watch.saw(Signal::HotAccount { account: hot, writes });
            }
        }
    }
}

fn numbers(account: &Account) -> impl Iterator<Item = u8> {
    (0..account.widest).map_while(|number| u8::try_from(number).ok())
}

fn motion(account: &Account, part: &ShardPart) -> Move {
    let (tenant, guarded) = (account.tenant, account.guard.guarded());
    Move { tenant, account: account.id, shard: part.shard, guarded, delta: part.delta }
}

/// Whether the judge refused because of a balance.
const fn is_unfit(reason: RefusalReason) -> bool {
    match reason {
        RefusalReason::Insufficient | RefusalReason::CapExceeded | RefusalReason::NotHeld => true,
        RefusalReason::Malformed
        | RefusalReason::Present
        | RefusalReason::Absent
        | RefusalReason::Stale
        | RefusalReason::IllegalMove => false,
    }
}
