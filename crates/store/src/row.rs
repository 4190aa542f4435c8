//! The rows a store keeps. Each has one key; each that can change has a revision that grows with every write.

use counterfoil_core::audit::AuditRecord;
use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_core::ledger::account::{Account, AccountCode, AccountName};
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::ledger::snapshot::{Cursor, FeedReader, Snapshot};
use counterfoil_core::ledger::transaction::{Reversal, Transaction};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::operation::Operation;
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::tenancy::{ApiKey, Tenant, TenantName};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, OperationId, PayoutId, Slot, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::ulid::Ulid;
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};

/// Something by row. Every commit asks such maps some dozen times, so they hash fast instead of with a cipher. The numbers
/// in keys are minted and the digests are ours; only codes and names are words of clients, and for their sake the hash is
/// seeded anew in every process. A map holds what one group touches, which is bounded.
pub type KeyMap<V> = HashMap<RowKey, V, RandomState>;
/// Something by claim, hashed as [`KeyMap`].
pub type ClaimMap<V> = HashMap<ClaimId, V, RandomState>;
/// A set of rows, hashed as [`KeyMap`].
pub type KeySet = HashSet<RowKey, RandomState>;

/// Anything a store keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// An idempotency record.
    Claim(Claim),
    /// A charge.
    Charge(Charge),
    /// A capture, a void or a refund of a charge.
    Operation(Operation),
    /// A payout.
    Payout(Payout),
    /// Work to be done.
    Outbox(Outbox),
    /// An audit record; never changed, never removed.
    Audit(AuditRecord),
    /// A tenant.
    Tenant(Tenant),
    /// An API key.
    ApiKey(ApiKey),
    /// A worker slot.
    Slot(Slot),
    /// A ledger account.
    Account(Account),
    /// An account's code; never changed, never removed.
    Name(AccountName),
    /// A tenant's own asset; never changed, never removed.
    Asset(AssetDefinition),
    /// A shard of a guarded balance. It is changed by [`crate::Change::Move`] only.
    Balance(Balance),
    /// A transaction with its entries; never changed, never removed.
    Transaction(Transaction),
    /// That a transaction was undone; never changed, never removed.
    Reversal(Reversal),
    /// A held transfer.
    Hold(Hold),
    /// An account's sums at a position; never changed.
    Snapshot(Snapshot),
    /// How far a reader of the feed has come.
    Cursor(Cursor),
}

/// Stands for the tenant in keys told by commits from before keys named theirs, where nothing tells it any more. Nobody's: no
/// row is under it.
pub const UNTOLD: TenantId = TenantId::from_i64(i64::MIN);

/// Gives keys that do not tell their tenant the one `owner` finds, or else the one that all others of the commit have. Those
/// whose tenant nothing tells any more, because their rows are gone, are left out.
pub fn adopted<E>(
    keys: Vec<RowKey>,
    mut owner: impl FnMut(&RowKey) -> Result<Option<TenantId>, E>,
) -> Result<Vec<RowKey>, E> {
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let tenant = match key.tenant() {
            Some(UNTOLD) => owner(&key)?,
            told => told,
        };
        found.push((key, tenant));
    }
    let mut tenants = found.iter().filter_map(|(_, tenant)| *tenant);
    let first = tenants.next();
    let only = first.filter(|first| tenants.all(|tenant| tenant == *first));
    let key = |(key, tenant): (RowKey, Option<TenantId>)| match key.tenant() {
        Some(UNTOLD) => Some(key.of(tenant.or(only)?)),
        Some(_) | None => Some(key),
    };
    Ok(found.into_iter().filter_map(key).collect())
}

/// Identifies a row. What belongs to a tenant is known by it first: a key with another tenant's number finds nothing, so a
/// number that got into the wrong hands opens nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKey {
    /// By tenant, and tenant and key, digested.
    Claim(TenantId, ClaimId),
    /// By tenant and id.
    Charge(TenantId, ChargeId),
    /// By tenant and id.
    Operation(TenantId, OperationId),
    /// By tenant and id.
    Payout(TenantId, PayoutId),
    /// By tenant and what its claim makes.
    Outbox(TenantId, SubjectId),
    /// By tenant, subject and record.
    Audit(TenantId, SubjectId, Ulid),
    /// By name.
    Tenant(TenantName),
    /// By the secret's digest: whose it is, is what is asked.
    ApiKey(Digest),
    /// By number.
    Slot(u16),
    /// By tenant and id.
    Account(TenantId, AccountId),
    /// By tenant and code.
    Name(TenantId, AccountCode),
    /// By tenant and code.
    Asset(TenantId, Asset),
    /// By tenant, account and shard.
    Balance(TenantId, AccountId, u8),
    /// By tenant and id.
    Transaction(TenantId, TransactionId),
    /// By tenant and the transaction that was undone.
    Reversal(TenantId, TransactionId),
    /// By tenant and id.
    Hold(TenantId, HoldId),
    /// By tenant, account and position.
    Snapshot(TenantId, AccountId, Position),
    /// By reader.
    Cursor(FeedReader),
}

impl RowKey {
    /// Whose row it is; nothing for what belongs to no tenant.
    pub const fn tenant(&self) -> Option<TenantId> {
        match self {
            RowKey::Claim(tenant, _)
            | RowKey::Charge(tenant, _)
            | RowKey::Operation(tenant, _)
            | RowKey::Payout(tenant, _)
            | RowKey::Outbox(tenant, _)
            | RowKey::Audit(tenant, ..)
            | RowKey::Account(tenant, _)
            | RowKey::Name(tenant, _)
            | RowKey::Asset(tenant, _)
            | RowKey::Balance(tenant, ..)
            | RowKey::Transaction(tenant, _)
            | RowKey::Reversal(tenant, _)
            | RowKey::Hold(tenant, _)
            | RowKey::Snapshot(tenant, ..) => Some(*tenant),
            RowKey::Tenant(_) | RowKey::ApiKey(_) | RowKey::Slot(_) | RowKey::Cursor(_) => None,
        }
    }

    /// The same number under that tenant; what belongs to no tenant stays as it is.
    #[must_use]
    pub fn of(self, tenant: TenantId) -> RowKey {
        match self {
            RowKey::Claim(_, id) => RowKey::Claim(tenant, id),
            RowKey::Charge(_, id) => RowKey::Charge(tenant, id),
            RowKey::Operation(_, id) => RowKey::Operation(tenant, id),
            RowKey::Payout(_, id) => RowKey::Payout(tenant, id),
            RowKey::Outbox(_, id) => RowKey::Outbox(tenant, id),
            RowKey::Audit(_, subject, id) => RowKey::Audit(tenant, subject, id),
            RowKey::Account(_, id) => RowKey::Account(tenant, id),
            RowKey::Name(_, code) => RowKey::Name(tenant, code),
            RowKey::Asset(_, asset) => RowKey::Asset(tenant, asset),
            RowKey::Balance(_, account, shard) => RowKey::Balance(tenant, account, shard),
            RowKey::Transaction(_, id) => RowKey::Transaction(tenant, id),
            RowKey::Reversal(_, original) => RowKey::Reversal(tenant, original),
            RowKey::Hold(_, id) => RowKey::Hold(tenant, id),
            RowKey::Snapshot(_, account, position) => RowKey::Snapshot(tenant, account, position),
            RowKey::Tenant(_) | RowKey::ApiKey(_) | RowKey::Slot(_) | RowKey::Cursor(_) => self,
        }
    }
}

impl Row {
    /// The row's key.
    pub fn key(&self) -> RowKey {
        match self {
            Row::Claim(claim) => RowKey::Claim(claim.tenant, claim.id),
            Row::Charge(charge) => RowKey::Charge(charge.tenant, charge.id),
            Row::Operation(operation) => RowKey::Operation(operation.tenant, operation.id),
            Row::Payout(payout) => RowKey::Payout(payout.tenant, payout.id),
            Row::Outbox(outbox) => RowKey::Outbox(outbox.tenant, outbox.id),
            Row::Audit(record) => RowKey::Audit(record.tenant, record.subject, record.id),
            Row::Tenant(tenant) => RowKey::Tenant(tenant.name.clone()),
            Row::ApiKey(key) => RowKey::ApiKey(key.digest),
            Row::Slot(slot) => RowKey::Slot(slot.number),
            Row::Account(account) => RowKey::Account(account.tenant, account.id),
            Row::Name(name) => RowKey::Name(name.tenant, name.code.clone()),
            Row::Asset(definition) => RowKey::Asset(definition.tenant, definition.asset),
            Row::Balance(balance) => RowKey::Balance(balance.tenant, balance.account, balance.shard),
            Row::Transaction(transaction) => RowKey::Transaction(transaction.tenant, transaction.id),
            Row::Reversal(reversal) => RowKey::Reversal(reversal.tenant, reversal.original),
            Row::Hold(hold) => RowKey::Hold(hold.tenant, hold.id),
            Row::Snapshot(snapshot) => RowKey::Snapshot(snapshot.tenant, snapshot.account, snapshot.position),
            Row::Cursor(cursor) => RowKey::Cursor(cursor.reader),
        }
    }

    /// The row's revision; what is never changed has only its first.
    pub fn revision(&self) -> u64 {
        match self {
            Row::Claim(claim) => claim.revision,
            Row::Charge(charge) => charge.revision,
            Row::Operation(operation) => operation.revision,
            Row::Payout(payout) => payout.revision,
            Row::Outbox(outbox) => outbox.revision,
            Row::Audit(_)
            | Row::Name(_)
            | Row::Asset(_)
            | Row::Transaction(_)
            | Row::Reversal(_)
            | Row::Snapshot(_) => 1,
            Row::Tenant(tenant) => tenant.revision,
            Row::ApiKey(key) => key.revision,
            Row::Slot(slot) => slot.revision,
            Row::Account(account) => account.revision,
            Row::Balance(balance) => balance.revision,
            Row::Hold(hold) => hold.revision,
            Row::Cursor(cursor) => cursor.revision,
        }
    }

    /// Whether a row may come to be like this: a balance begins with its bounds and nothing else.
    pub fn may_begin(&self) -> bool {
        match self {
            Row::Balance(balance) => balance.posted == 0 && balance.outgoing == 0 && balance.incoming == 0,
            _ => true,
        }
    }

    /// Whether `next` may stand in this row's place, whatever its writer believes.
    pub fn may_become(&self, next: &Row) -> bool {
        let grows = next.revision() > self.revision();
        grows
            && match (self, next) {
                (Row::Claim(old), Row::Claim(new)) => old.may_become(new),
                (Row::Charge(old), Row::Charge(new)) => old.may_become(new),
                (Row::Operation(old), Row::Operation(new)) => old.may_become(new),
                (Row::Payout(old), Row::Payout(new)) => old.may_become(new),
                (Row::Outbox(old), Row::Outbox(new)) => old.may_become(new),
                (Row::Tenant(old), Row::Tenant(new)) => old.id == new.id,
                (Row::ApiKey(old), Row::ApiKey(new)) => {
                    old.tenant == new.tenant && (old.revoked_at.is_none() || old.revoked_at == new.revoked_at)
                }
                (Row::Slot(old), Row::Slot(new)) => old.epoch <= new.epoch,
                (Row::Account(old), Row::Account(new)) => old.may_become(new),
                (Row::Hold(old), Row::Hold(new)) => old.may_become(new),
                (Row::Cursor(old), Row::Cursor(new)) => old.position <= new.position,
                (
                    Row::Claim(_)
                    | Row::Charge(_)
                    | Row::Operation(_)
                    | Row::Payout(_)
                    | Row::Outbox(_)
                    | Row::Audit(_)
                    | Row::Tenant(_)
                    | Row::ApiKey(_)
                    | Row::Slot(_)
                    | Row::Account(_)
                    | Row::Name(_)
                    | Row::Asset(_)
                    | Row::Balance(_)
                    | Row::Transaction(_)
                    | Row::Reversal(_)
                    | Row::Hold(_)
                    | Row::Snapshot(_)
                    | Row::Cursor(_),
                    _,
                ) => false,
            }
    }

    /// Whether rows of this kind may be removed at all: history may not.
    pub fn may_be_removed(&self) -> bool {
        match self {
            Row::Outbox(_) | Row::Snapshot(_) => true,
            Row::Claim(claim) => claim.ends(),
            Row::Charge(_)
            | Row::Operation(_)
            | Row::Payout(_)
            | Row::Audit(_)
            | Row::Tenant(_)
            | Row::ApiKey(_)
            | Row::Slot(_)
            | Row::Account(_)
            | Row::Name(_)
            | Row::Asset(_)
            | Row::Balance(_)
            | Row::Transaction(_)
            | Row::Reversal(_)
            | Row::Hold(_)
            | Row::Cursor(_) => false,
        }
    }
}

macro_rules! from_row {
    ($($kind:ident($inner:ty)),* $(,)?) => {$(
        impl From<$inner> for Row {
            fn from(inner: $inner) -> Row {
                Row::$kind(inner)
            }
        }
    )*};
}

from_row!(
    Claim(Claim),
    Charge(Charge),
    Operation(Operation),
    Payout(Payout),
    Outbox(Outbox),
    Audit(AuditRecord),
    Tenant(Tenant),
    ApiKey(ApiKey),
    Slot(Slot),
    Account(Account),
    Name(AccountName),
    Asset(AssetDefinition),
    Balance(Balance),
    Transaction(Transaction),
    Reversal(Reversal),
    Hold(Hold),
    Snapshot(Snapshot),
    Cursor(Cursor)
);
