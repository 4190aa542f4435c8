//! Accounts: each history against the journal, and its snapshots against the history.

use super::super::report::VerifyReport;
use super::{Facts, Walk, balances, names};
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::snapshot::Snapshot;
use counterfoil_core::ledger::totals::Totals;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::limits::{SCAN_MAX, SNAPSHOT_EVERY};
use counterfoil_store::{CommitReceipt, Position, ReadError, Row, Scan, Store, Upto};
use std::collections::{BTreeMap, HashMap};

impl Walk {
    pub(super) async fn finish_accounts<S: Store>(
        &mut self,
        store: &S,
        head: Position,
        report: &mut VerifyReport,
    ) -> Result<(), ReadError> {
        let mut sums: BTreeMap<Asset, (i128, i128)> = BTreeMap::new();
        let mut after = None;
        loop {
            let page = store.scan(Scan::Accounts { after, limit: SCAN_MAX }).await?;
            let accounts: Vec<Account> = page
                .into_iter()
                .filter_map(|row| if let Row::Account(account) = row { Some(account) } else { None })
                .collect();
            let Some(last) = accounts.last() else { break };
            after = Some((last.tenant, last.id));
            names::check(store, &accounts, report).await?;
            let mut histories = HashMap::with_capacity(accounts.len());
            for account in &accounts {
                let history = self.history(store, account, head, report).await?;
                let journal = self.accounts.entry(account.id).or_default();
                journal.facts.get_or_insert(Facts {
                    tenant: account.tenant,
                    asset: account.asset,
                    normal: account.normal,
                    guard: account.guard,
                });
                let same = history == journal.totals;
                let sum = sums.entry(account.asset).or_default();
                sum.0 = sum.0.saturating_add(history.credits).saturating_sub(history.debits);
                sum.1 = sum.1.saturating_add(history.credits_pending).saturating_sub(history.debits_pending);
                histories.insert(account.id, history);
                report.note(
                    "entries_match_journal",
                    (!same).then(|| {
                        format!("{} has other entries than its legs", self.account_name(account.id))
                    }),
                );
            }
            self.check_balances(store, &accounts, &histories, head, report).await?;
        }
        for (asset, (posted, reserved)) in sums {
            let broken = (posted, reserved) != (0, 0);
            report.note(
                "ledger_sums_to_zero",
                broken.then(|| format!("accounts of {asset} show {posted} posted and {reserved} reserved")),
            );
        }
        balances::check_orphans(self, store, report).await
    }

    /// The sum of the account's entries at `head`, added up from snapshot to snapshot.
    async fn history<S: Store>(
        &self,
        store: &S,
        account: &Account,
        head: Position,
        report: &mut VerifyReport,
    ) -> Result<Totals, ReadError> {
        let (mut position, mut totals) = (Position::START, Totals::default());
        for snapshot in self.snapshots(store, account, head).await? {
            let step =
                store.fold(account.tenant, account.id, position, Upto::Position(snapshot.position)).await?;
            totals = totals.and(step.totals);
            position = snapshot.position;
            let receipt = CommitReceipt { position, at: snapshot.at };
            let same = totals == snapshot.totals && step.last == Some(receipt);
            report.note(
                "snapshots_match_entries",
                (!same).then(|| {
                    let name = self.account_name(account.id);
                    format!("{name} has another sum at commit {} than its snapshot", position.0)
                }),
            );
        }
        let rest = store.fold(account.tenant, account.id, position, Upto::Position(head)).await?;
        Ok(totals.and(rest.totals))
    }

    /// The account's snapshots, oldest first. Accounts that cannot have any are not read.
    async fn snapshots<S: Store>(
        &self,
        store: &S,
        account: &Account,
        head: Position,
    ) -> Result<Vec<Snapshot>, ReadError> {
        let entries = self.accounts.get(&account.id).map_or(0, |seen| seen.totals.entries);
        if entries < SNAPSHOT_EVERY && !self.snapshotted.contains(&account.id) {
            return Ok(Vec::new());
        }
        let (tenant, account, upto) = (account.tenant, account.id, Upto::Position(head));
        let rows = store.scan(Scan::Snapshots { tenant, account, upto, limit: SCAN_MAX }).await?;
        let snapshots = rows.into_iter().rev();
        Ok(snapshots
            .filter_map(|row| if let Row::Snapshot(snapshot) = row { Some(snapshot) } else { None })
            .collect())
    }
}
