//! Captured charges against their transactions.

use super::super::report::Report;
use super::Walk;
use super::rows::Rows;
use counterfoil_core::ledger::chart::{PREFIX, Role};
use counterfoil_core::ledger::transaction::{Kind, Layer, Legs, Transaction};
use counterfoil_core::payments::charge::{Charge, Status};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, ChargeId, TenantId};
use counterfoil_core::types::reference::Kind as ReferenceKind;
use counterfoil_store::RowKey;
use std::collections::HashMap;

/// What captured charges should have posted.
pub(in crate::verify) type Captures = HashMap<ChargeId, Captured>;

/// What a captured charge should have posted.
#[derive(Clone, Copy)]
pub(in crate::verify) struct Captured {
    tenant: TenantId,
    amount: i64,
    asset: Asset,
    destination: AccountId,
}

impl Captured {
    /// Nothing if the charge was not captured.
    pub(in crate::verify) fn of(charge: &Charge) -> Option<Captured> {
        (charge.status == Status::Succeeded).then(|| Captured {
            tenant: charge.tenant,
            amount: charge.order.amount.minor(),
            asset: charge.order.amount.asset(),
            destination: charge.order.destination,
        })
    }
}

/// The chart's accounts that charges are posted to.
#[derive(Clone, Copy)]
pub(super) struct Chart {
    receivable: AccountId,
    suspense: AccountId,
}

impl Walk {
    pub(super) fn ask_posting(&self, transaction: &Transaction, keys: &mut Vec<RowKey>) {
        let Kind::Charge(charge) = transaction.kind else { return };
        if !self.captured.contains_key(&charge) {
            keys.push(RowKey::Charge(charge));
        }
        let assets = transaction.legs.as_slice().iter().map(|leg| leg.asset);
        for asset in assets.filter(|asset| !self.charts.contains_key(&(transaction.tenant, *asset))) {
            let codes = [Role::Receivable, Role::Suspense].map(|role| role.code(asset));
            keys.extend(codes.into_iter().flatten().map(|code| RowKey::Name(transaction.tenant, code)));
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

    pub(super) fn see_posting(&mut self, transaction: &Transaction, rows: &Rows, report: &mut Report) {
        let Kind::Charge(id) = transaction.kind else { return };
        let same_number = transaction.id.to_i64() == id.to_i64();
        // A charge that was captured after the charges were read is not among them.
        let late = || rows.charge(id).and_then(Captured::of);
        let captured = if same_number { self.captured.remove(&id).or_else(late) } else { None };
        let right = captured.is_some_and(|captured| self.posts(transaction, captured));
        let broken = (!right).then(|| {
            let charge = self.name(ReferenceKind::Charge, id.to_i64());
            format!("{} is not the posting of {charge}", self.transaction_name(transaction))
        });
        report.note("charges_are_posted_once", broken);
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

    pub(super) fn finish_postings(&self, report: &mut Report) {
        let mut left: Vec<&ChargeId> = self.captured.keys().collect();
        left.sort_unstable();
        for charge in left {
            let name = self.name(ReferenceKind::Charge, charge.to_i64());
            report.note("charges_are_posted_once", Some(format!("{name} is captured and not posted")));
        }
    }
}
