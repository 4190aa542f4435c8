//! Postings of captured charges.

use super::super::report::VerifyReport;
use super::super::rows::Rows;
use super::Walk;
use counterfoil_core::ledger::chart::{PREFIX, Role};
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::ledger::transaction::{Layer, Legs, Transaction, TransactionKind};
use counterfoil_core::payments::charge::{Charge, Wallet};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, OperationId, PayoutId, TenantId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_store::RowKey;
use std::collections::HashMap;

/// Expected postings by charge.
pub(in crate::verify) type Captures = HashMap<ChargeId, Captured>;

/// The expected posting of a captured charge.
#[derive(Clone, Copy)]
pub(in crate::verify) struct Captured {
    tenant: TenantId,
    amount: i64,
    asset: Asset,
    destination: AccountId,
    wallet: Option<Wallet>,
}

impl Captured {
    /// `None` if the charge was not captured.
    pub(in crate::verify) fn of(charge: &Charge) -> Option<Captured> {
        (charge.sums.captured > 0).then(|| Captured {
            tenant: charge.tenant,
            amount: charge.sums.captured,
            asset: charge.order.amount.asset(),
            destination: charge.order.destination,
            wallet: charge.order.wallet,
        })
    }

    /// Whether the posted hold is the wallet's part of the charge.
    fn is_paid_by(&self, hold: &Hold) -> bool {
        self.wallet.is_some_and(|Wallet { account, amount }| {
            (hold.tenant, hold.from, hold.to) == (self.tenant, account, self.destination)
                && (hold.amount, hold.asset) == (amount, self.asset)
                && matches!(hold.state, HoldState::Posted { amount: posted, .. } if posted == amount)
        })
    }
}

/// A refund's hold has the refund's id.
fn refund_of(hold: HoldId) -> OperationId {
    OperationId::from_i64(hold.to_i64())
}

/// A payout's hold has the payout's id.
fn payout_of(hold: HoldId) -> PayoutId {
    PayoutId::from_i64(hold.to_i64())
}

/// The chart's accounts in charge postings.
#[derive(Clone, Copy)]
pub(super) struct Chart {
    receivable: AccountId,
    suspense: AccountId,
}

impl Walk {
    pub(super) fn ask_posting(&self, transaction: &Transaction, keys: &mut Vec<RowKey>) {
        let tenant = transaction.tenant;
        if let TransactionKind::HoldPosted(hold) = transaction.kind {
            keys.extend([
                RowKey::Operation(tenant, refund_of(hold)),
                RowKey::Payout(tenant, payout_of(hold)),
            ]);
        }
        let TransactionKind::Charge(charge) = transaction.kind else { return };
        if !self.captured.contains_key(&charge) {
            keys.push(RowKey::Charge(tenant, charge));
        }
        let assets = transaction.legs.as_slice().iter().map(|leg| leg.asset);
        for asset in assets.filter(|asset| !self.charts.contains_key(&(tenant, *asset))) {
            let codes = [Role::Receivable, Role::Suspense].map(|role| role.code(asset));
            keys.extend(codes.into_iter().flatten().map(|code| RowKey::Name(tenant, code)));
        }
    }

    pub(super) fn learn_charts(&mut self, rows: &Rows) {
        for name in rows.names() {
            let chart = name.code.as_str().strip_prefix(PREFIX).and_then(|code| code.split_once(':'));
            let Some(Ok(asset)) = chart.map(|(_, asset)| Asset::parse(asset)) else { continue };
            let account = |role: Role| Some(rows.named(name.tenant, &role.code(asset).ok()?)?.account);
            if let (Some(receivable), Some(suspense)) = (account(Role::Receivable), account(Role::Suspense)) {
                self.charts.insert((name.tenant, asset), Chart { receivable, suspense });
            }
        }
    }

    pub(super) fn see_posting(&mut self, transaction: &Transaction, rows: &Rows, report: &mut VerifyReport) {
        let TransactionKind::Charge(id) = transaction.kind else { return };
        let same_number = transaction.id.to_i64() == id.to_i64();
        let captured = if same_number { self.captured_by(id, rows) } else { None };
        if same_number {
            self.captured.remove(&id);
        }
        let right = captured.is_some_and(|captured| self.posts(transaction, captured));
        let broken = (!right).then(|| {
            let charge = self.name(ReferenceKind::Charge, id.to_i64());
            format!("{} is not the posting of {charge}", self.transaction_name(transaction))
        });
        report.note("charges_are_posted_once", broken);
    }

    /// The charge's expected posting. Charges captured after the charges were listed are judged by
    /// their row.
    fn captured_by(&self, id: ChargeId, rows: &Rows) -> Option<Captured> {
        self.captured.get(&id).copied().or_else(|| rows.charge(id).and_then(Captured::of))
    }

    /// Checks that the wallet's part and the card's part of a split charge are posted in one
    /// commit. Every other posted hold of a payment must belong to a refund or a payout.
    pub(super) fn see_wallets(&self, commit: &[Transaction], rows: &Rows, report: &mut VerifyReport) {
        let charges = || {
            commit.iter().filter_map(|transaction| match transaction.kind {
                TransactionKind::Charge(id) => Some((transaction, self.captured_by(id, rows)?)),
                _ => None,
            })
        };
        let parts = || {
            commit.iter().filter_map(|transaction| match transaction.kind {
                TransactionKind::HoldPosted(id) => Some((transaction, rows.hold(id)?)),
                _ => None,
            })
        };
        for (transaction, captured) in charges().filter(|(_, captured)| captured.wallet.is_some()) {
            let paid = parts().filter(|(_, hold)| captured.is_paid_by(hold)).count() == 1;
            let name = || self.transaction_name(transaction);
            let broken = (!paid).then(|| format!("{} comes without what the wallet pays", name()));
            report.note("wallets_pay_with_the_card", broken);
        }
        let of_charges = |hold: &Hold| {
            let own =
                rows.operation(refund_of(hold.id)).is_some() || rows.payout(payout_of(hold.id)).is_some();
            hold.is_a_payments() && !own
        };
        for (transaction, hold) in parts().filter(|(_, hold)| of_charges(hold)) {
            let right = charges().any(|(_, captured)| captured.is_paid_by(hold));
            let name = || self.transaction_name(transaction);
            let broken = (!right).then(|| format!("{} comes without what the card pays", name()));
            report.note("wallets_pay_with_the_card", broken);
        }
    }

    fn posts(&self, transaction: &Transaction, captured: Captured) -> bool {
        let Some(chart) = self.charts.get(&(captured.tenant, captured.asset)) else { return false };
        transaction.tenant == captured.tenant
            && [captured.destination, chart.suspense].into_iter().any(|credited| {
                let Captured { amount, asset, .. } = captured;
                let legs = Legs::transfer(chart.receivable, credited, amount, asset, Layer::Posted);
                legs.is_ok_and(|legs| legs == transaction.legs)
            })
    }

    pub(super) fn finish_postings(&self, report: &mut VerifyReport) {
        let mut left: Vec<&ChargeId> = self.captured.keys().collect();
        left.sort_unstable();
        for charge in left {
            let name = self.name(ReferenceKind::Charge, charge.to_i64());
            report.note("charges_are_posted_once", Some(format!("{name} is captured and not posted")));
        }
    }
}
