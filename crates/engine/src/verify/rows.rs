//! Rows by their keys, read in as few reads as allowed. As many as one read takes are from one moment.

use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_core::ledger::account::{Account, AccountCode, AccountName};
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::ledger::transaction::{Reversal, Transaction};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::operation::Operation;
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, OperationId, PayoutId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_store::{ReadError, Row, RowKey, Store, UNTOLD};
use std::collections::HashMap;

/// Rows that were asked for and are there. They are read under their tenants; once they are here, ids suffice: they are
/// unique over all tenants.
pub(super) struct Rows(HashMap<RowKey, Row>);

impl Rows {
    pub(super) async fn read<S: Store>(store: &S, keys: Vec<RowKey>) -> Result<Rows, ReadError> {
        let mut rows = Rows(HashMap::with_capacity(keys.len()));
        rows.add(store, keys).await?;
        Ok(rows)
    }

    pub(super) async fn add<S: Store>(&mut self, store: &S, mut keys: Vec<RowKey>) -> Result<(), ReadError> {
        keys.sort_unstable();
        keys.dedup();
        for chunk in keys.chunks(SCAN_MAX) {
            for (key, row) in chunk.iter().zip(store.read(chunk.to_vec()).await?) {
                if let Some(row) = row {
                    self.0.insert(by_id(key), row);
                }
            }
        }
        Ok(())
    }

    /// The rows that names and reversals point to.
    pub(super) fn named_by(&self, keys: &[RowKey]) -> Vec<RowKey> {
        let pointed = |key: &RowKey| match self.0.get(&by_id(key)) {
            Some(Row::Name(name)) => Some(RowKey::Account(name.tenant, name.account)),
            Some(Row::Reversal(reversal)) => Some(RowKey::Transaction(reversal.tenant, reversal.by)),
            _ => None,
        };
        keys.iter().filter_map(pointed).collect()
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.0.values().filter_map(|row| if let Row::Account(account) = row { Some(account) } else { None })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &AccountName> {
        self.0.values().filter_map(|row| if let Row::Name(name) = row { Some(name) } else { None })
    }

    pub(super) fn account(&self, id: AccountId) -> Option<&Account> {
        if let Row::Account(account) = self.0.get(&RowKey::Account(UNTOLD, id))? {
            Some(account)
        } else {
            None
        }
    }

    pub(super) fn named(&self, tenant: TenantId, code: &AccountCode) -> Option<&AccountName> {
        if let Row::Name(name) = self.0.get(&RowKey::Name(tenant, code.clone()))? { Some(name) } else { None }
    }

    pub(super) fn transaction(&self, id: TransactionId) -> Option<&Transaction> {
        let row = self.0.get(&RowKey::Transaction(UNTOLD, id))?;
        if let Row::Transaction(transaction) = row { Some(transaction) } else { None }
    }

    pub(super) fn balance(&self, account: AccountId, shard: u8) -> Option<&Balance> {
        if let Row::Balance(balance) = self.0.get(&RowKey::Balance(UNTOLD, account, shard))? {
            Some(balance)
        } else {
            None
        }
    }

    pub(super) fn hold(&self, id: HoldId) -> Option<&Hold> {
        if let Row::Hold(hold) = self.0.get(&RowKey::Hold(UNTOLD, id))? { Some(hold) } else { None }
    }

    pub(super) fn reversal(&self, original: TransactionId) -> Option<&Reversal> {
        if let Row::Reversal(reversal) = self.0.get(&RowKey::Reversal(UNTOLD, original))? {
            Some(reversal)
        } else {
            None
        }
    }

    pub(super) fn charge(&self, id: ChargeId) -> Option<&Charge> {
        if let Row::Charge(charge) = self.0.get(&RowKey::Charge(UNTOLD, id))? { Some(charge) } else { None }
    }

    pub(super) fn operation(&self, id: OperationId) -> Option<&Operation> {
        let row = self.0.get(&RowKey::Operation(UNTOLD, id))?;
        if let Row::Operation(operation) = row { Some(operation) } else { None }
    }

    pub(super) fn payout(&self, id: PayoutId) -> Option<&Payout> {
        if let Row::Payout(payout) = self.0.get(&RowKey::Payout(UNTOLD, id))? { Some(payout) } else { None }
    }

    pub(super) fn outbox(&self, id: SubjectId) -> Option<&Outbox> {
        if let Row::Outbox(outbox) = self.0.get(&RowKey::Outbox(UNTOLD, id))? { Some(outbox) } else { None }
    }

    /// The claim of that id, if it is the one that made `subject`: a key that was free again has made something else.
    pub(super) fn claim(&self, id: ClaimId, subject: SubjectId) -> Option<&Claim> {
        match self.0.get(&RowKey::Claim(UNTOLD, id))? {
            Row::Claim(claim) if claim.subject == subject => Some(claim),
            _ => None,
        }
    }
}

/// The key without its tenant, where it has an id that is nobody else's.
fn by_id(key: &RowKey) -> RowKey {
    match key {
        RowKey::Name(..) | RowKey::Asset(..) => key.clone(),
        _ => key.clone().of(UNTOLD),
    }
}
