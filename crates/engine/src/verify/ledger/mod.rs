//! The ledger: its journal in the order of commits, then every account against what the walk has added up.
//!
//! The walk ends at a commit that was there when it began, so a live store is judged at one point. Transactions never
//! change and holds end once, so reading them late is reading them right.

mod accounts;
mod balances;
mod holds;
mod journal;
mod names;
mod postings;
mod reversals;

use super::report::VerifyReport;
use super::rows::Rows;
use counterfoil_core::ledger::account::{Guard, Side};
use counterfoil_core::ledger::totals::Totals;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, HoldId, TenantId};
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_store::{Committed, Position, ReadError, RowKey, Store};
use holds::Reserved;
use postings::Chart;
pub(super) use postings::{Captured, Captures};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What the walk has added up so far.
pub(super) struct Walk {
    references: References,
    accounts: HashMap<AccountId, Seen>,
    /// What all accounts of an asset sum up to: posted, and reserved.
    sums: BTreeMap<Asset, (i128, i128)>,
    /// Charges that were captured and whose transactions have not come by yet.
    captured: Captures,
    charts: HashMap<(TenantId, Asset), Chart>,
    open: HashMap<HoldId, Reserved>,
    snapshotted: HashSet<AccountId>,
}

/// An account as the walk knows it.
#[derive(Clone, Copy, Default)]
struct Seen {
    facts: Option<Facts>,
    totals: Totals,
}

/// What is fixed about an account.
#[derive(Clone, Copy)]
struct Facts {
    tenant: TenantId,
    asset: Asset,
    normal: Side,
    guard: Guard,
}

impl Walk {
    pub(super) fn new(captured: Captures, references: References) -> Walk {
        Walk {
            references,
            accounts: HashMap::new(),
            sums: BTreeMap::new(),
            captured,
            charts: HashMap::new(),
            open: HashMap::new(),
            snapshotted: HashSet::new(),
        }
    }

    /// Takes in the next commits.
    pub(super) async fn take<S: Store>(
        &mut self,
        store: &S,
        page: &[Committed],
        report: &mut VerifyReport,
    ) -> Result<(), ReadError> {
        let commits = transactions(store, page).await?;
        let mut keys: Vec<RowKey> = Vec::new();
        for key in page.iter().flat_map(|commit| &commit.touched) {
            match key {
                RowKey::Name(..) | RowKey::Reversal(..) => keys.push(key.clone()),
                RowKey::Snapshot(_, account, _) => {
                    self.snapshotted.insert(*account);
                }
                _ => {}
            }
        }
        let touched = keys.clone();
        for transaction in commits.iter().flatten() {
            self.ask(transaction, &mut keys);
        }
        let mut rows = Rows::read(store, keys).await?;
        let further = rows.named_by(&touched);
        rows.add(store, further).await?;
        self.learn(&rows);
        for key in &touched {
            match key {
                RowKey::Name(tenant, code) => names::see(&rows, *tenant, code, report),
                RowKey::Reversal(_, original) => self.see_reversal_row(&rows, *original, report),
                _ => {}
            }
        }
        for commit in commits.iter().filter(|commit| !commit.is_empty()) {
            self.see_commit(commit, report);
            self.see_wallets(commit, &rows, report);
            for transaction in commit {
                self.see_hold(transaction, &rows, report);
                self.see_reversal(transaction, &rows, report);
                self.see_posting(transaction, &rows, report);
            }
        }
        Ok(())
    }

    /// Which rows are needed to judge a transaction.
    fn ask(&self, transaction: &Transaction, keys: &mut Vec<RowKey>) {
        for leg in transaction.legs.as_slice() {
            if self.accounts.get(&leg.account).is_none_or(|seen| seen.facts.is_none()) {
                keys.push(RowKey::Account(transaction.tenant, leg.account));
            }
        }
        holds::ask(transaction, keys);
        reversals::ask(transaction, keys);
        self.ask_posting(transaction, keys);
    }

    fn learn(&mut self, rows: &Rows) {
        for account in rows.accounts() {
            let facts = Facts {
                tenant: account.tenant,
                asset: account.asset,
                normal: account.normal,
                guard: account.guard,
            };
            self.accounts.entry(account.id).or_default().facts = Some(facts);
        }
        self.learn_charts(rows);
    }

    /// What can be said only at the end, which is `head`.
    pub(super) async fn finish<S: Store>(
        &mut self,
        store: &S,
        head: Position,
        report: &mut VerifyReport,
    ) -> Result<(), ReadError> {
        self.finish_postings(report);
        self.finish_holds(store, report).await?;
        self.finish_accounts(store, head, report).await
    }

    fn name(&self, kind: ReferenceKind, id: i64) -> String {
        self.references.seal(kind, id).to_string()
    }

    fn transaction_name(&self, transaction: &Transaction) -> String {
        self.name(ReferenceKind::Transaction, transaction.id.to_i64())
    }

    fn account_name(&self, account: AccountId) -> String {
        self.name(ReferenceKind::Account, account.to_i64())
    }
}

/// The transactions of each commit. One that is not there is missed by its accounts' histories.
async fn transactions<S: Store>(store: &S, page: &[Committed]) -> Result<Vec<Vec<Transaction>>, ReadError> {
    let ids = |commit: &Committed| -> Vec<RowKey> {
        commit.touched.iter().filter(|key| matches!(key, RowKey::Transaction(..))).cloned().collect()
    };
    let rows = Rows::read(store, page.iter().flat_map(ids).collect()).await?;
    Ok(page
        .iter()
        .map(|commit| {
            let ids = commit.touched.iter().filter_map(|key| match key {
                RowKey::Transaction(_, id) => Some(*id),
                _ => None,
            });
            ids.filter_map(|id| rows.transaction(id)).cloned().collect()
        })
        .collect())
}
