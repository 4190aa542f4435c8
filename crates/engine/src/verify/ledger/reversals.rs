//! Reversals: each mirrors one transaction, and each transaction has at most one.

use super::super::report::VerifyReport;
use super::super::rows::Rows;
use super::Walk;
use counterfoil_core::ledger::transaction::{Transaction, TransactionKind};
use counterfoil_core::payments::ledger::decide::is_reversible;
use counterfoil_core::types::id::TransactionId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_store::RowKey;

pub(super) fn ask(transaction: &Transaction, keys: &mut Vec<RowKey>) {
    let tenant = transaction.tenant;
    if let TransactionKind::Reversal(original) = transaction.kind {
        keys.extend([RowKey::Transaction(tenant, original), RowKey::Reversal(tenant, original)]);
    }
}

impl Walk {
    pub(super) fn see_reversal(&self, transaction: &Transaction, rows: &Rows, report: &mut VerifyReport) {
        let TransactionKind::Reversal(id) = transaction.kind else { return };
        let linked = rows.reversal(id).is_some_and(|reversal| reversal.by == transaction.id);
        let mirrored = rows.transaction(id).is_some_and(|original| {
            is_reversible(original.kind)
                && original.tenant == transaction.tenant
                && original.legs.posted().reversed() == transaction.legs
        });
        let broken = (!linked || !mirrored).then(|| {
            let original = self.name(ReferenceKind::Transaction, id.to_i64());
            format!("{} is not the one reversal of {original}", self.transaction_name(transaction))
        });
        report.note("reversals_mirror", broken);
    }

    /// Checks that a reversal row points to the reversing transaction.
    pub(super) fn see_reversal_row(&self, rows: &Rows, original: TransactionId, report: &mut VerifyReport) {
        let by = rows.reversal(original).and_then(|reversal| rows.transaction(reversal.by));
        let right = by.is_some_and(|by| by.kind == TransactionKind::Reversal(original));
        let broken = (!right).then(|| {
            let original = self.name(ReferenceKind::Transaction, original.to_i64());
            format!("{original} is said to be undone and is not")
        });
        report.note("reversals_mirror", broken);
    }
}
