//! Holds against the journal: their reservations, their ends and the sums still reserved.

use super::super::report::VerifyReport;
use super::super::rows::Rows;
use super::{Seen, Walk};
use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::ledger::transaction::{Layer, Leg, Transaction, TransactionKind};
use counterfoil_core::types::id::{AccountId, HoldId, TransactionId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use std::collections::BTreeMap;

/// The reservation in a hold's row.
#[derive(Clone, Copy)]
pub(super) struct Reserved {
    from: AccountId,
    to: AccountId,
    amount: i64,
}

/// The hold a transaction is about.
fn about(kind: TransactionKind) -> Option<HoldId> {
    match kind {
        TransactionKind::Held(hold)
        | TransactionKind::HoldPosted(hold)
        | TransactionKind::HoldVoided(hold)
        | TransactionKind::HoldLapsed(hold) => Some(hold),
        TransactionKind::Transfer
        | TransactionKind::General
        | TransactionKind::Conversion
        | TransactionKind::Charge(_)
        | TransactionKind::Reversal(_) => None,
    }
}

pub(super) fn ask(transaction: &Transaction, keys: &mut Vec<RowKey>) {
    keys.extend(about(transaction.kind).map(|hold| RowKey::Hold(transaction.tenant, hold)));
}

impl Walk {
    pub(super) fn see_hold(&mut self, transaction: &Transaction, rows: &Rows, report: &mut VerifyReport) {
        let Some(id) = about(transaction.kind) else { return };
        let row = rows.hold(id);
        let right = row.is_some_and(|hold| hold.tenant == transaction.tenant && is_step(hold, transaction));
        report.note(
            "holds_match_journal",
            (!right).then(|| {
                let hold = self.hold_name(id);
                format!("{} is not a step of {hold}", self.transaction_name(transaction))
            }),
        );
        match (transaction.kind, row) {
            (TransactionKind::Held(_), Some(hold)) => {
                self.open.insert(id, Reserved { from: hold.from, to: hold.to, amount: hold.amount });
            }
            _ => {
                self.open.remove(&id);
            }
        }
    }

    fn hold_name(&self, id: HoldId) -> String {
        self.name(ReferenceKind::Transfer, id.to_i64())
    }

    pub(super) async fn finish_holds<S: Store>(
        &self,
        store: &S,
        report: &mut VerifyReport,
    ) -> Result<(), ReadError> {
        // By account: reserved sums of the journal, and of the open holds.
        let mut reserved: BTreeMap<AccountId, [(i128, i128); 2]> = BTreeMap::new();
        for (account, Seen { totals, .. }) in &self.accounts {
            if (totals.debits_pending, totals.credits_pending) != (0, 0) {
                reserved.insert(*account, [(totals.debits_pending, totals.credits_pending), (0, 0)]);
            }
        }
        for hold in self.open.values() {
            let [_, from] = reserved.entry(hold.from).or_default();
            from.0 = from.0.saturating_add(i128::from(hold.amount));
            let [_, to] = reserved.entry(hold.to).or_default();
            to.1 = to.1.saturating_add(i128::from(hold.amount));
        }
        for (account, [journal, held]) in reserved {
            let broken = (journal != held).then(|| {
                let name = self.account_name(account);
                format!("{name} has {journal:?} reserved, its open holds {held:?}")
            });
            report.note("holds_match_journal", broken);
        }
        self.scan_holds(store, report).await
    }

    /// Checks that every hold has the transactions that its row names.
    async fn scan_holds<S: Store>(&self, store: &S, report: &mut VerifyReport) -> Result<(), ReadError> {
        let mut after = None;
        loop {
            let page = store.scan(Scan::Holds { after, limit: SCAN_MAX }).await?;
            let holds: Vec<Hold> = page
                .into_iter()
                .filter_map(|row| if let Row::Hold(hold) = row { Some(hold) } else { None })
                .collect();
            let Some(last) = holds.last() else { return Ok(()) };
            after = Some((last.tenant, last.id));
            let keys = holds.iter().flat_map(|hold| {
                let ends = [Some(TransactionId::from_i64(hold.id.to_i64())), ended_by(hold.state)];
                ends.into_iter().flatten().map(|id| RowKey::Transaction(hold.tenant, id))
            });
            let rows = Rows::read(store, keys.collect()).await?;
            for hold in &holds {
                let kind = |id| rows.transaction(id).map(|transaction| transaction.kind);
                let begun =
                    kind(TransactionId::from_i64(hold.id.to_i64())) == Some(TransactionKind::Held(hold.id));
                let ended = ended_by(hold.state).is_none_or(|by| kind(by) == end_kind(hold));
                report.note(
                    "holds_match_journal",
                    (!begun || !ended)
                        .then(|| format!("{} is {} without it", self.hold_name(hold.id), hold.state.name())),
                );
            }
        }
    }
}

fn ended_by(state: HoldState) -> Option<TransactionId> {
    match state {
        HoldState::Pending => None,
        HoldState::Posted { by, .. } | HoldState::Voided { by } | HoldState::Lapsed { by } => Some(by),
    }
}

fn end_kind(hold: &Hold) -> Option<TransactionKind> {
    match hold.state {
        HoldState::Pending => None,
        HoldState::Posted { .. } => Some(TransactionKind::HoldPosted(hold.id)),
        HoldState::Voided { .. } => Some(TransactionKind::HoldVoided(hold.id)),
        HoldState::Lapsed { .. } => Some(TransactionKind::HoldLapsed(hold.id)),
    }
}

/// Whether the transaction is the hold's reservation, or the end that the hold's row names.
fn is_step(hold: &Hold, transaction: &Transaction) -> bool {
    let pair = |layer, amount| {
        let leg = |account, side| Leg { account, side, layer, amount, asset: hold.asset };
        [leg(hold.from, Side::Debit), leg(hold.to, Side::Credit)]
    };
    let legs = transaction.legs.as_slice();
    if transaction.kind == TransactionKind::Held(hold.id) {
        return transaction.id.to_i64() == hold.id.to_i64() && legs == pair(Layer::Pending, hold.amount);
    }
    let named = ended_by(hold.state) == Some(transaction.id) && end_kind(hold) == Some(transaction.kind);
    let mut expected = pair(Layer::Released, hold.amount).to_vec();
    if let HoldState::Posted { amount, .. } = hold.state {
        expected.extend(pair(Layer::Posted, amount));
    }
    named && legs == expected
}
