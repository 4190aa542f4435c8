//! An index of rows by id, filled with as few reads as possible. One read is one snapshot of at
//! most `SCAN_MAX` rows.

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
use counterfoil_store::{ReadError, Row, RowKey, Store};
use std::collections::HashMap;

/// Rows found in the store. They are read by tenant and id, and found here by id alone: ids are
/// unique over all tenants.
#[derive(Default)]
pub(super) struct Rows {
    accounts: HashMap<AccountId, Account>,
    names: HashMap<(TenantId, AccountCode), AccountName>,
    transactions: HashMap<TransactionId, Transaction>,
    balances: HashMap<(AccountId, u8), Balance>,
    holds: HashMap<HoldId, Hold>,
    reversals: HashMap<TransactionId, Reversal>,
    charges: HashMap<ChargeId, Charge>,
    operations: HashMap<OperationId, Operation>,
    payouts: HashMap<PayoutId, Payout>,
    work: HashMap<SubjectId, Outbox>,
    claims: HashMap<ClaimId, Claim>,
}

impl Rows {
    pub(super) async fn read<S: Store>(store: &S, keys: Vec<RowKey>) -> Result<Rows, ReadError> {
        let mut rows = Rows::default();
        rows.add(store, keys).await?;
        Ok(rows)
    }

    pub(super) async fn add<S: Store>(&mut self, store: &S, mut keys: Vec<RowKey>) -> Result<(), ReadError> {
        keys.sort_unstable();
        keys.dedup();
        for chunk in keys.chunks(SCAN_MAX) {
            for row in store.read(chunk.to_vec()).await?.into_iter().flatten() {
                self.index(row);
            }
        }
        Ok(())
    }

    fn index(&mut self, row: Row) {
        match row {
            Row::Account(account) => {
                self.accounts.insert(account.id, account);
            }
            Row::Name(name) => {
                self.names.insert((name.tenant, name.code.clone()), name);
            }
            Row::Transaction(transaction) => {
                self.transactions.insert(transaction.id, transaction);
            }
            Row::Balance(balance) => {
                self.balances.insert((balance.account, balance.shard), balance);
            }
            Row::Hold(hold) => {
                self.holds.insert(hold.id, hold);
            }
            Row::Reversal(reversal) => {
                self.reversals.insert(reversal.original, reversal);
            }
            Row::Charge(charge) => {
                self.charges.insert(charge.id, charge);
            }
            Row::Operation(operation) => {
                self.operations.insert(operation.id, operation);
            }
            Row::Payout(payout) => {
                self.payouts.insert(payout.id, payout);
            }
            Row::Outbox(outbox) => {
                self.work.insert(outbox.id, outbox);
            }
            Row::Claim(claim) => {
                self.claims.insert(claim.id, claim);
            }
            // No check asks for these by id.
            Row::Audit(_)
            | Row::Tenant(_)
            | Row::ApiKey(_)
            | Row::Slot(_)
            | Row::Asset(_)
            | Row::Snapshot(_)
            | Row::Cursor(_) => {}
        }
    }

    /// Keys of the rows that the names and reversals among `keys` point to.
    pub(super) fn named_by(&self, keys: &[RowKey]) -> Vec<RowKey> {
        let target = |key: &RowKey| match key {
            RowKey::Name(tenant, code) => {
                self.named(*tenant, code).map(|name| RowKey::Account(name.tenant, name.account))
            }
            RowKey::Reversal(_, original) => {
                self.reversal(*original).map(|reversal| RowKey::Transaction(reversal.tenant, reversal.by))
            }
            _ => None,
        };
        keys.iter().filter_map(target).collect()
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &AccountName> {
        self.names.values()
    }

    pub(super) fn account(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(&id)
    }

    pub(super) fn named(&self, tenant: TenantId, code: &AccountCode) -> Option<&AccountName> {
        self.names.get(&(tenant, code.clone()))
    }

    pub(super) fn transaction(&self, id: TransactionId) -> Option<&Transaction> {
        self.transactions.get(&id)
    }

    pub(super) fn balance(&self, account: AccountId, shard: u8) -> Option<&Balance> {
        self.balances.get(&(account, shard))
    }

    pub(super) fn hold(&self, id: HoldId) -> Option<&Hold> {
        self.holds.get(&id)
    }

    pub(super) fn reversal(&self, original: TransactionId) -> Option<&Reversal> {
        self.reversals.get(&original)
    }

    pub(super) fn charge(&self, id: ChargeId) -> Option<&Charge> {
        self.charges.get(&id)
    }

    pub(super) fn operation(&self, id: OperationId) -> Option<&Operation> {
        self.operations.get(&id)
    }

    pub(super) fn payout(&self, id: PayoutId) -> Option<&Payout> {
        self.payouts.get(&id)
    }

    pub(super) fn outbox(&self, id: SubjectId) -> Option<&Outbox> {
        self.work.get(&id)
    }

    /// The claim of that id, if it created `subject`. A key used again after the windows belongs to
    /// another subject.
    pub(super) fn claim(&self, id: ClaimId, subject: SubjectId) -> Option<&Claim> {
        self.claims.get(&id).filter(|claim| claim.subject == subject)
    }
}
