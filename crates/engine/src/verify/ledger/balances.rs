//! Balances of guarded accounts against the entries and guards.
//!
//! A balance is current, while the entries were added up to an earlier commit. Where the two
//! differ, later entries are added commit by commit, until the sum equals the balance that was
//! read.

use super::super::report::VerifyReport;
use super::super::rows::Rows;
use super::Walk;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::ledger::totals::{BalanceAmounts, Totals};
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_store::{EntryPage, Position, ReadError, Row, RowKey, Scan, Store};
use std::collections::HashMap;

impl Walk {
    pub(super) async fn check_balances<S: Store>(
        &self,
        store: &S,
        accounts: &[Account],
        histories: &HashMap<AccountId, Totals>,
        head: Position,
        report: &mut VerifyReport,
    ) -> Result<(), ReadError> {
        let mut batch: Vec<&Account> = Vec::new();
        let mut keys = 0_usize;
        for account in accounts.iter().filter(|account| account.guard.is_set()) {
            // All shards of an account come from a single read, which is one snapshot.
            if keys.saturating_add(rows_of(account)) > SCAN_MAX {
                self.check_batch(store, &batch, histories, head, report).await?;
                (batch, keys) = (Vec::new(), 0);
            }
            keys = keys.saturating_add(rows_of(account));
            batch.push(account);
        }
        self.check_batch(store, &batch, histories, head, report).await
    }

    async fn check_batch<S: Store>(
        &self,
        store: &S,
        accounts: &[&Account],
        histories: &HashMap<AccountId, Totals>,
        head: Position,
        report: &mut VerifyReport,
    ) -> Result<(), ReadError> {
        let rows = Rows::read(store, accounts.iter().flat_map(|account| keys(account)).collect()).await?;
        for account in accounts {
            let history = histories.get(&account.id).copied().unwrap_or_default();
            let (mut account, mut again) = (Account::clone(account), None);
            // The account may have got more shards since it was listed.
            while let Some(wider) = wider(&account, again.as_ref().unwrap_or(&rows)) {
                again = Some(Rows::read(store, keys(&wider)).await?);
                account = wider;
            }
            let rows = again.as_ref().unwrap_or(&rows);
            let broken = self.misfit_of(store, &account, rows, history, head).await?;
            report.note("balances_match_entries", broken);
        }
        Ok(())
    }

    async fn misfit_of<S: Store>(
        &self,
        store: &S,
        account: &Account,
        rows: &Rows,
        history: Totals,
        head: Position,
    ) -> Result<Option<String>, ReadError> {
        let name = || self.account_name(account.id);
        let shards: Vec<&Balance> =
            shards(account).filter_map(|shard| rows.balance(account.id, shard)).collect();
        let sum =
            |part: fn(&Balance) -> i64| -> i128 { shards.iter().map(|shard| i128::from(part(shard))).sum() };
        let parts = |part: fn(&Balance) -> Option<i64>| -> Option<i128> {
            shards.iter().map(|shard| part(shard).map(i128::from)).sum()
        };
        // Without a shard, nothing enforces the guard.
        let bounded = !shards.is_empty()
            && parts(|shard| shard.floor) == account.guard.floor.map(i128::from)
            && parts(|shard| shard.cap) == account.guard.cap.map(i128::from);
        if !bounded {
            return Ok(Some(format!("{} has shards that do not add up to its bounds", name())));
        }
        let (posted, outgoing) = (sum(|shard| shard.posted), sum(|shard| shard.outgoing));
        let view = BalanceAmounts {
            posted,
            outgoing,
            incoming: sum(|shard| shard.incoming),
            available: posted.saturating_sub(outgoing),
        };
        let reached = was_reached_since(store, account, history, head, view).await?;
        Ok((!reached)
            .then(|| format!("{} has {posted} posted and {outgoing} reserved, not its entries' sum", name())))
    }
}

/// Whether the account's entries gave `view` at `head` or at a later commit.
async fn was_reached_since<S: Store>(
    store: &S,
    account: &Account,
    history: Totals,
    head: Position,
    view: BalanceAmounts,
) -> Result<bool, ReadError> {
    let (mut totals, mut position) = (history, head);
    loop {
        if totals.seen_from(account.normal) == view {
            return Ok(true);
        }
        let page = store.entries(account.tenant, account.id, EntryPage::After(position), SCAN_MAX).await?;
        let before = position;
        // The last commit of a full page may continue on the next page, so it is read again.
        let cut = page.last().filter(|_| page.len() >= SCAN_MAX).map(|last| last.position);
        for commit in page.chunk_by(|one, next| one.position == next.position) {
            let Some(at) = commit.first().map(|entry| entry.position).filter(|at| Some(*at) != cut) else {
                break;
            };
            totals = commit.iter().fold(totals, |sum, entry| sum.plus(entry.side, entry.layer, entry.amount));
            position = at;
            if totals.seen_from(account.normal) == view {
                return Ok(true);
            }
        }
        if position == before {
            return Ok(false);
        }
    }
}

/// The account's current row, if it has got more shards meanwhile.
fn wider(account: &Account, rows: &Rows) -> Option<Account> {
    rows.account(account.id).filter(|now| now.widest > account.widest).cloned()
}

fn shards(account: &Account) -> impl Iterator<Item = u8> {
    (0..account.widest).map_while(|shard| u8::try_from(shard).ok())
}

fn rows_of(account: &Account) -> usize {
    usize::from(account.widest).saturating_add(1)
}

fn keys(account: &Account) -> Vec<RowKey> {
    let shards = shards(account).map(|shard| RowKey::Balance(account.tenant, account.id, shard));
    std::iter::once(RowKey::Account(account.tenant, account.id)).chain(shards).collect()
}

/// Checks that every balance row belongs to a guarded account.
pub(super) async fn check_orphans<S: Store>(
    walk: &Walk,
    store: &S,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    let mut after = None;
    loop {
        let page = store.scan(Scan::Balances { after, limit: SCAN_MAX }).await?;
        let balances: Vec<Balance> = page
            .into_iter()
            .filter_map(|row| if let Row::Balance(balance) = row { Some(balance) } else { None })
            .collect();
        let Some(last) = balances.last() else { return Ok(()) };
        after = Some((last.tenant, last.account, last.shard));
        let keys = balances.iter().map(|balance| RowKey::Account(balance.tenant, balance.account));
        let rows = Rows::read(store, keys.collect()).await?;
        for balance in balances {
            let own = rows
                .account(balance.account)
                .is_some_and(|account| account.guard.is_set() && u16::from(balance.shard) < account.widest);
            if !own {
                let name = walk.account_name(balance.account);
                let shard = balance.shard;
                report
                    .note("balances_match_entries", Some(format!("shard {shard} of {name} bounds nothing")));
            }
        }
    }
}
