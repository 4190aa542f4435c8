//! The ledger: the journal in commit order, then every account against the sums of that walk.
//!
//! The walk ends at the last commit at its start, so a live store is judged at one point.
//! Transactions never change and holds end once, so late reads give the same result.

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

/// The sums of the walk so far.
pub(super) struct Walk {
    references: References,
    accounts: HashMap<AccountId, Seen>,
    /// Sums over all accounts of an asset: posted and reserved.
    sums: BTreeMap<Asset, (i128, i128)>,
    /// Captured charges whose transactions the walk has not reached yet.
    captured: Captures,
    charts: HashMap<(TenantId, Asset), Chart>,
    open: HashMap<HoldId, Reserved>,
    snapshotted: HashSet<AccountId>,
}

/// An account seen by the walk.
#[derive(Clone, Copy, Default)]
struct Seen {
    facts: Option<Facts>,
    totals: Totals,
}

/// An account's immutable fields.
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

    /// Checks the next commits.
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

    /// Adds the keys of the rows a transaction is checked against.
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

    /// The checks that are possible only at the end of the walk, `head`.
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

/// The transactions of each commit. A missing transaction shows as a difference in the accounts'
/// histories.
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
