//! The rows of a store. Every row has a key. Every mutable row has a revision, incremented by each
//! write.

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

/// A map by row key. Every commit reads such maps a dozen times, so they use a fast hash instead of
/// SipHash.
///
/// Clients choose only codes and names; ids are minted and digests are ours. The hash is seeded per
/// process against chosen collisions. A map holds the rows of one group, so its size is bounded.
pub type KeyMap<V> = HashMap<RowKey, V, RandomState>;
/// A map by claim, hashed like [`KeyMap`].
pub type ClaimMap<V> = HashMap<ClaimId, V, RandomState>;
/// A set of row keys, hashed like [`KeyMap`].
pub type KeySet = HashSet<RowKey, RandomState>;

/// A row of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// An idempotency record.
    Claim(Claim),
    Charge(Charge),
    /// A capture, a void or a refund of a charge.
    Operation(Operation),
    Payout(Payout),
    /// Outstanding work of a payment.
    Outbox(Outbox),
    /// An audit record; never changed, never removed.
    Audit(AuditRecord),
    Tenant(Tenant),
    ApiKey(ApiKey),
    Slot(Slot),
    Account(Account),
    /// An account's code; never changed, never removed.
    Name(AccountName),
    /// A tenant's own asset; never changed, never removed.
    Asset(AssetDefinition),
    /// A shard of a guarded balance. Only [`crate::Change::Move`] changes it.
    Balance(Balance),
    /// A transaction with its entries; never changed, never removed.
    Transaction(Transaction),
    /// The reversal of a transaction; never changed, never removed.
    Reversal(Reversal),
    Hold(Hold),
    /// An account's sums at a position; never changed.
    Snapshot(Snapshot),
    /// The position of a feed reader.
    Cursor(Cursor),
}

/// Identifies a row. The key of a tenant's row starts with the tenant, so an id that leaks to
/// another tenant finds nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKey {
    /// By tenant, and by the digest of tenant and idempotency key.
    Claim(TenantId, ClaimId),
    Charge(TenantId, ChargeId),
    Operation(TenantId, OperationId),
    Payout(TenantId, PayoutId),
    /// By tenant and the claim's subject.
    Outbox(TenantId, SubjectId),
    /// By tenant, subject and record.
    Audit(TenantId, SubjectId, Ulid),
    Tenant(TenantName),
    /// By the secret's digest. The row names the tenant.
    ApiKey(Digest),
    Slot(u16),
    Account(TenantId, AccountId),
    Name(TenantId, AccountCode),
    Asset(TenantId, Asset),
    Balance(TenantId, AccountId, u8),
    Transaction(TenantId, TransactionId),
    /// By tenant and the reversed transaction.
    Reversal(TenantId, TransactionId),
    Hold(TenantId, HoldId),
    Snapshot(TenantId, AccountId, Position),
    Cursor(FeedReader),
}

impl RowKey {
    /// The row's tenant; `None` for rows that belong to no tenant.
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

    /// The same key under another tenant; keys without a tenant stay unchanged.
    #[must_use]
    pub fn with_tenant(self, tenant: TenantId) -> RowKey {
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

    /// The row's revision; always 1 for immutable rows.
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

    /// Whether a row like this may be inserted. A balance starts without money; only its bounds are
    /// set.
    pub fn may_be_inserted(&self) -> bool {
        match self {
            Row::Balance(balance) => balance.posted == 0 && balance.outgoing == 0 && balance.incoming == 0,
            _ => true,
        }
    }

    /// Whether `next` is a legal successor. Enforced by every store.
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

    /// Whether this row may be removed. History may not.
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
