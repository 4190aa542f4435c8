//! The journal: balanced transactions, fitting accounts, sums and guards after every commit.

use super::super::report::VerifyReport;
use super::Walk;
use counterfoil_core::ledger::account::{Guard, Side};
use counterfoil_core::ledger::totals::BalanceAmounts;
use counterfoil_core::ledger::transaction::{Layer, Leg, Legs, Transaction};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::AccountId;

impl Walk {
    /// Checks the transactions of a commit. Guards hold for the whole commit, not for each
    /// transaction.
    pub(super) fn see_commit(&mut self, transactions: &[Transaction], report: &mut VerifyReport) {
        let mut before: Vec<(AccountId, BalanceAmounts, Guard)> = Vec::new();
        let mut assets: Vec<Asset> = Vec::new();
        for transaction in transactions {
            let bad = Legs::balanced(transaction.legs.as_slice().to_vec()).err();
            let broken = bad.map(|bad| format!("{}: {bad:?}", self.transaction_name(transaction)));
            report.note("journal_balances", broken);
            report.note("entries_fit_accounts", self.misfit(transaction));
            for leg in transaction.legs.as_slice() {
                self.record_before(leg.account, &mut before);
                if !assets.contains(&leg.asset) {
                    assets.push(leg.asset);
                }
                self.add(leg);
            }
        }
        for asset in assets {
            let sums = self.sums.get(&asset).copied().unwrap_or_default();
            let broken = sums != (0, 0);
            report.note(
                "ledger_sums_to_zero",
                broken.then(|| format!("{asset} sums to {} posted and {} reserved", sums.0, sums.1)),
            );
        }
        for (account, before, guard) in before {
            report.note("guards_hold_at_every_prefix", self.beyond(account, before, guard));
        }
    }

    fn misfit(&self, transaction: &Transaction) -> Option<String> {
        let name = || self.transaction_name(transaction);
        transaction.legs.as_slice().iter().find_map(|leg| {
            let account = || self.account_name(leg.account);
            match self.accounts.get(&leg.account).and_then(|seen| seen.facts) {
                None => Some(format!("{} names {}, which is not there", name(), account())),
                Some(facts) if facts.tenant != transaction.tenant => {
                    Some(format!("{} names {}, which is another tenant's", name(), account()))
                }
                Some(facts) if facts.asset != leg.asset => Some(format!(
                    "{} moves {} in {}, which counts {}",
                    name(),
                    leg.asset,
                    account(),
                    facts.asset
                )),
                Some(_) => None,
            }
        })
    }

    /// Records a guarded account's amounts before the commit.
    fn record_before(&self, account: AccountId, before: &mut Vec<(AccountId, BalanceAmounts, Guard)>) {
        let Some(seen) = self.accounts.get(&account) else { return };
        if let Some(facts) = seen.facts
            && facts.guard.is_set()
            && before.iter().all(|(known, _, _)| *known != account)
        {
            before.push((account, seen.totals.seen_from(facts.normal), facts.guard));
        }
    }

    fn add(&mut self, leg: &Leg) {
        let seen = self.accounts.entry(leg.account).or_default();
        seen.totals = seen.totals.plus_leg(leg);
        let amount = i128::from(leg.amount);
        let signed = match leg.side {
            Side::Debit => amount.saturating_neg(),
            Side::Credit => amount,
        };
        let sums = self.sums.entry(leg.asset).or_default();
        match leg.layer {
            Layer::Posted => sums.0 = sums.0.saturating_add(signed),
            Layer::Pending => sums.1 = sums.1.saturating_add(signed),
            Layer::Released => sums.1 = sums.1.saturating_sub(signed),
        }
    }

    /// The violation of an account's guard, unless the commit brought the account closer to the
    /// bounds.
    fn beyond(&self, account: AccountId, before: BalanceAmounts, guard: Guard) -> Option<String> {
        let seen = self.accounts.get(&account)?;
        let after = seen.totals.seen_from(seen.facts?.normal);
        if let Some(floor) = guard.floor
            && after.available < i128::from(floor)
            && after.available < before.available
        {
            return Some(format!(
                "{} fell to {}, below {floor}",
                self.account_name(account),
                after.available
            ));
        }
        let expected = |view: BalanceAmounts| view.posted.saturating_add(view.incoming);
        if let Some(cap) = guard.cap
            && expected(after) > i128::from(cap)
            && expected(after) > expected(before)
        {
            return Some(format!("{} rose to {}, above {cap}", self.account_name(account), expected(after)));
        }
        None
    }
}
