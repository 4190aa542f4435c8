//! Chunks: items of a bulk request that go into a single set, decided on balances read before.

use super::spread::Deltas;
use crate::present::ItemResult;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::balance::{Balance, BalanceRefusal, Delta};
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::types::id::AccountId;
use std::collections::HashMap;
use std::sync::Arc;

/// An item's transaction and deltas, or the result of an item without them.
pub(super) type Drafted = Result<(Transaction, Deltas), ItemResult>;

/// Items of a set.
pub(super) struct Chunk {
    /// Decided items, by place.
    pub(super) decided: Vec<(usize, ItemResult)>,
    pub(super) deltas: Deltas,
    /// The place after the last item.
    pub(super) end: usize,
}

impl Chunk {
    /// Adds an item's deltas if the balances allow them. A balance that was not read allows
    /// everything.
    pub(super) fn take(
        &mut self,
        deltas: &Deltas,
        balances: &mut HashMap<AccountId, Balance>,
    ) -> Result<(), BalanceRefusal> {
        let mut moved = Vec::with_capacity(deltas.len());
        for (account, delta) in deltas {
            if let Some(balance) = balances.get(&account.id) {
                moved.push(balance.moved(*delta)?);
            }
        }
        let mut sums = Vec::with_capacity(deltas.len());
        for (account, delta) in deltas {
            let before = self.sum(account.id);
            sums.push((Arc::clone(account), before.and(*delta).ok_or(BalanceRefusal::CapExceeded)?));
        }
        for balance in moved {
            balances.insert(balance.account, balance);
        }
        for (account, sum) in sums {
            match self.deltas.iter_mut().find(|(known, _)| known.id == account.id) {
                Some((_, delta)) => *delta = sum,
                None => self.deltas.push((account, sum)),
            }
        }
        Ok(())
    }

    fn sum(&self, account: AccountId) -> Delta {
        let known = self.deltas.iter().find(|(known, _)| known.id == account);
        known.map_or(Delta::default(), |(_, delta)| *delta)
    }
}

/// An account's balance summed over all shards.
pub(super) fn whole(account: &Account, shards: &[Balance]) -> Balance {
    let sum = |part: fn(&Balance) -> i64| shards.iter().map(part).fold(0, i64::saturating_add);
    Balance {
        posted: sum(|shard| shard.posted),
        outgoing: sum(|shard| shard.outgoing),
        incoming: sum(|shard| shard.incoming),
        floor: account.guard.floor,
        cap: account.guard.cap,
        ..Balance::empty(account.tenant, account.id, 0, account.guard.guarded())
    }
}

/// Whether each account only gains or only loses. Then items that fit as a whole also fit in
/// sequence.
pub(super) fn is_one_way(drafts: &[(usize, Drafted)]) -> bool {
    let mut sums: HashMap<AccountId, i64> = HashMap::new();
    let drafted = drafts.iter().filter_map(|(_, draft)| draft.as_ref().ok());
    drafted.flat_map(|(_, deltas)| deltas).all(|(account, delta)| {
        let before = sums.get(&account.id).copied().unwrap_or(0);
        let turns = before != 0 && before.is_negative() != delta.posted.is_negative();
        let only_posts = *delta == Delta { posted: delta.posted, ..Delta::default() };
        match before.checked_add(delta.posted) {
            Some(sum) if only_posts && !turns => {
                sums.insert(account.id, sum);
                true
            }
            _ => false,
        }
    })
}
