//! The [`Service`] implementation of the engine.

use crate::admin::Register;
use crate::command::Command;
use crate::engine::{Engine, Inner};
use crate::service::{
    AdminError, BalanceView, DeadLetter, KeyView, NewKey, NewTenant, Principal, RefundView, Resolution,
    Service, ServiceFuture, Submitted, TenantView, TransactionView, TransferView,
};
use crate::world::World;
use counterfoil_core::audit::AuditRecord;
use counterfoil_core::idempotency::claim::{ClaimId, Resource};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::outbox::Payment;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::payments::ledger::{AccountSelector, Item, LedgerCommand};
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_core::payments::operation::{Operation, OperationKind};
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::payments::payout::create::CreatePayout;
use counterfoil_core::tenancy::{ApiKey, Tenant};
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{
    AccountId, ChargeId, OperationId, PayoutId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_gateway::Gateway;
use counterfoil_store::{EntryPage, ReadError, Row, RowKey, Scan, Store, Tally, Upto};
use std::sync::Arc;

impl<S: Store, G: Gateway, W: World> Service for Engine<S, G, W> {
    fn now(&self) -> Time {
        self.inner.store.now()
    }

    fn request_id(&self) -> Ulid {
        Ulid::new(self.inner.store.now(), self.inner.world.chance())
    }

    fn references(&self) -> &References {
        &self.inner.references
    }

    fn submit(&self, command: CreateCharge) -> ServiceFuture<'_, Submitted> {
        Box::pin(async move { self.inner.submit(Command::Create(Box::new(command))).await })
    }

    fn operate(&self, command: Operate) -> ServiceFuture<'_, Submitted> {
        Box::pin(async move { self.inner.submit(Command::Operate(command)).await })
    }

    fn pay_out(&self, command: CreatePayout) -> ServiceFuture<'_, Submitted> {
        Box::pin(async move { self.inner.submit(Command::PayOut(Box::new(command))).await })
    }

    fn payout(&self, tenant: TenantId, id: PayoutId) -> ServiceFuture<'_, Result<Option<Payout>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.read(vec![RowKey::Payout(tenant, id)]).await?;
            Ok(rows.into_iter().flatten().find_map(payout_of))
        })
    }

    fn payouts(
        &self,
        tenant: TenantId,
        before: Option<PayoutId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Payout>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.scan(Scan::PayoutsOf { tenant, before, limit }).await?;
            Ok(rows.into_iter().filter_map(payout_of).collect())
        })
    }

    fn refund(
        &self,
        tenant: TenantId,
        id: OperationId,
    ) -> ServiceFuture<'_, Result<Option<RefundView>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.read(vec![RowKey::Operation(tenant, id)]).await?;
            let refund = rows.into_iter().flatten().filter_map(operation_of);
            let refund = refund.filter(|one| one.kind == OperationKind::Refund);
            Ok(self.inner.with_charges(refund.collect()).await?.into_iter().next())
        })
    }

    fn refunds(
        &self,
        tenant: TenantId,
        before: Option<OperationId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<RefundView>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.scan(Scan::RefundsOf { tenant, before, limit }).await?;
            self.inner.with_charges(rows.into_iter().filter_map(operation_of).collect()).await
        })
    }

    fn dead_letters(
        &self,
        tenant: TenantId,
        before: Option<SubjectId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<DeadLetter>, ReadError>> {
        Box::pin(self.inner.dead_letters(tenant, before, limit))
    }

    fn dead_letter(
        &self,
        tenant: TenantId,
        id: SubjectId,
    ) -> ServiceFuture<'_, Result<Option<DeadLetter>, ReadError>> {
        Box::pin(self.inner.dead_letter(tenant, id))
    }

    fn resolve(
        &self,
        request: Request,
        id: SubjectId,
        resolution: Resolution,
    ) -> ServiceFuture<'_, Submitted> {
        Box::pin(async move { self.inner.resolve_letter(request, id, resolution).await })
    }

    fn hint(&self, payment: Payment) -> ServiceFuture<'_, Result<usize, ReadError>> {
        Box::pin(self.inner.take_hint(payment))
    }

    fn charge(&self, tenant: TenantId, id: ChargeId) -> ServiceFuture<'_, Result<Option<Charge>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.read(vec![RowKey::Charge(tenant, id)]).await?;
            Ok(rows.into_iter().flatten().find_map(charge_of))
        })
    }

    fn charges(
        &self,
        tenant: TenantId,
        before: Option<ChargeId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Charge>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.scan(Scan::ChargesOf { tenant, before, limit }).await?;
            Ok(rows.into_iter().filter_map(charge_of).collect())
        })
    }

    fn timeline(
        &self,
        tenant: TenantId,
        subject: SubjectId,
        after: Option<Ulid>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Option<Vec<AuditRecord>>, ReadError>> {
        Box::pin(async move {
            // Every subject's history has a first record.
            let first = Scan::Timeline { tenant, subject, after: None, limit: 1 };
            if self.inner.store.scan(first).await?.is_empty() {
                return Ok(None);
            }
            let rows = self.inner.store.scan(Scan::Timeline { tenant, subject, after, limit }).await?;
            Ok(Some(
                rows.into_iter()
                    .filter_map(|row| if let Row::Audit(record) = row { Some(record) } else { None })
                    .collect(),
            ))
        })
    }

    fn execute(&self, request: Request, command: LedgerCommand) -> ServiceFuture<'_, Submitted> {
        Box::pin(async move { self.inner.execute(request, command).await })
    }

    fn bulk(&self, request: Request, items: Vec<Item>) -> ServiceFuture<'_, Submitted> {
        Box::pin(async move { self.inner.bulk(request, items).await })
    }

    fn account(
        &self,
        tenant: TenantId,
        named: AccountSelector,
    ) -> ServiceFuture<'_, Result<Option<Arc<Account>>, ReadError>> {
        // Not from the cache: another process may have changed the number of shards.
        Box::pin(async move { self.inner.fresh_account(tenant, &named).await })
    }

    fn accounts(
        &self,
        tenant: TenantId,
        before: Option<AccountId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Account>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.scan(Scan::AccountsOf { tenant, before, limit }).await?;
            Ok(rows
                .into_iter()
                .filter_map(|row| if let Row::Account(account) = row { Some(account) } else { None })
                .collect())
        })
    }

    fn balance(
        &self,
        account: Arc<Account>,
        upto: Upto,
    ) -> ServiceFuture<'_, Result<BalanceView, ReadError>> {
        Box::pin(async move { self.inner.balance(&account, upto).await })
    }

    fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        before: Option<(TransactionId, u16)>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<AccountEntry>, ReadError>> {
        Box::pin(self.inner.store.entries(tenant, account, EntryPage::Before(before), limit))
    }

    fn transfer(
        &self,
        tenant: TenantId,
        id: TransactionId,
    ) -> ServiceFuture<'_, Result<Option<TransferView>, ReadError>> {
        Box::pin(self.inner.transfer(tenant, id))
    }

    fn transaction(
        &self,
        tenant: TenantId,
        id: TransactionId,
    ) -> ServiceFuture<'_, Result<Option<TransactionView>, ReadError>> {
        Box::pin(self.inner.transaction(tenant, id))
    }

    fn transactions(
        &self,
        tenant: TenantId,
        before: Option<TransactionId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Transaction>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.scan(Scan::TransactionsOf { tenant, before, limit }).await?;
            Ok(rows
                .into_iter()
                .filter_map(
                    |row| if let Row::Transaction(transaction) = row { Some(transaction) } else { None },
                )
                .collect())
        })
    }

    fn assets(&self, tenant: TenantId) -> ServiceFuture<'_, Result<Vec<AssetDefinition>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.scan(Scan::AssetsOf { tenant }).await?;
            Ok(rows
                .into_iter()
                .filter_map(|row| if let Row::Asset(definition) = row { Some(definition) } else { None })
                .collect())
        })
    }

    fn claim(&self, tenant: TenantId, id: ClaimId) -> ServiceFuture<'_, Result<Option<KeyView>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.read(vec![RowKey::Claim(tenant, id)]).await?;
            let Some(Some(Row::Claim(claim))) = rows.into_iter().next() else {
                return Ok(None);
            };
            let subject = claim.subject;
            let keys = vec![
                RowKey::Outbox(tenant, subject),
                RowKey::Operation(tenant, subject.into()),
                RowKey::Payout(tenant, subject.into()),
            ];
            let (mut parked, mut payment) = (None, None);
            for row in self.inner.store.read(keys).await?.into_iter().flatten() {
                match row {
                    Row::Outbox(outbox) => parked = outbox.parked,
                    Row::Operation(operation) => payment = Some(Payment::Charge(operation.charge)),
                    Row::Payout(payout) => payment = Some(Payment::Payout(payout.id)),
                    _ => {}
                }
            }
            if claim.makes == Resource::Charge {
                payment = Some(Payment::Charge(subject.into()));
            }
            Ok(Some(KeyView { claim, payment, parked }))
        })
    }

    fn principal(&self, key: Digest) -> ServiceFuture<'_, Result<Option<Arc<Principal>>, ReadError>> {
        Box::pin(self.inner.principal(key))
    }

    fn tally(&self) -> ServiceFuture<'_, Result<Tally, ReadError>> {
        Box::pin(self.inner.store.tally(self.inner.store.now()))
    }

    fn ready(&self) -> ServiceFuture<'_, Result<(), String>> {
        Box::pin(async move {
            if self.inner.is_draining() {
                return Err("the server is shutting down".into());
            }
            self.inner.store.tally(self.inner.store.now()).await.map_err(|error| error.to_string())?;
            self.inner
                .ids
                .next(self.inner.store.now())
                .map_err(|error| format!("no id can be minted: {error:?}"))?;
            Ok(())
        })
    }

    fn create_tenant(&self, tenant: NewTenant) -> ServiceFuture<'_, Result<Tenant, AdminError>> {
        Box::pin(async move { self.register().create_tenant(tenant).await })
    }

    fn create_key(&self, key: NewKey) -> ServiceFuture<'_, Result<ApiKey, AdminError>> {
        Box::pin(async move { self.register().create_key(key).await })
    }

    fn revoke_key(&self, id: String) -> ServiceFuture<'_, Result<ApiKey, AdminError>> {
        Box::pin(async move { self.register().revoke_key(&id).await })
    }

    fn tenants(&self) -> ServiceFuture<'_, Result<Vec<TenantView>, ReadError>> {
        Box::pin(async move { self.register().tenants().await })
    }
}

impl<S: Store, G: Gateway, W: World> Engine<S, G, W> {
    fn register(&self) -> Register<'_, S> {
        Register { store: &self.inner.store, ids: &self.inner.ids }
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Pairs each operation with its charge. An operation without a charge is left out.
    async fn with_charges(&self, operations: Vec<Operation>) -> Result<Vec<RefundView>, ReadError> {
        let key = |operation: &Operation| RowKey::Charge(operation.tenant, operation.charge);
        let keys = operations.iter().map(key).collect();
        let charges = self.store.read(keys).await?;
        let pairs = operations.into_iter().zip(charges);
        Ok(pairs.filter_map(|(operation, row)| Some((operation, charge_of(row?)?))).collect())
    }
}

fn operation_of(row: Row) -> Option<Operation> {
    if let Row::Operation(operation) = row { Some(operation) } else { None }
}

fn payout_of(row: Row) -> Option<Payout> {
    if let Row::Payout(payout) = row { Some(payout) } else { None }
}

fn charge_of(row: Row) -> Option<Charge> {
    if let Row::Charge(charge) = row { Some(charge) } else { None }
}
