//! The rows a store keeps. Each has one key; each that can change has a revision that grows with every write.

use counterfoil_core::audit::Record;
use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::tenancy::{ApiKey, Tenant, TenantName};
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{ChargeId, Slot};
use counterfoil_core::types::ulid::Ulid;

/// Anything a store keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// An idempotency record.
    Claim(Claim),
    /// A charge.
    Charge(Charge),
    /// Work to be done.
    Outbox(Outbox),
    /// An audit record; never changed, never removed.
    Audit(Record),
    /// A tenant.
    Tenant(Tenant),
    /// An API key.
    ApiKey(ApiKey),
    /// A worker slot.
    Slot(Slot),
}

/// Identifies a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKey {
    /// By tenant and key, digested.
    Claim(ClaimId),
    /// By id.
    Charge(ChargeId),
    /// By the charge it is for.
    Outbox(ChargeId),
    /// By charge and record.
    Audit(ChargeId, Ulid),
    /// By name.
    Tenant(TenantName),
    /// By the secret's digest.
    ApiKey(Digest),
    /// By number.
    Slot(u16),
}

impl Row {
    /// The row's key.
    pub fn key(&self) -> RowKey {
        match self {
            Row::Claim(claim) => RowKey::Claim(claim.id),
            Row::Charge(charge) => RowKey::Charge(charge.id),
            Row::Outbox(outbox) => RowKey::Outbox(outbox.charge),
            Row::Audit(record) => RowKey::Audit(record.subject, record.id),
            Row::Tenant(tenant) => RowKey::Tenant(tenant.name.clone()),
            Row::ApiKey(key) => RowKey::ApiKey(key.digest),
            Row::Slot(slot) => RowKey::Slot(slot.number),
        }
    }

    /// The row's revision; an audit record has only its first.
    pub fn revision(&self) -> u64 {
        match self {
            Row::Claim(claim) => claim.revision,
            Row::Charge(charge) => charge.revision,
            Row::Outbox(outbox) => outbox.revision,
            Row::Audit(_) => 1,
            Row::Tenant(tenant) => tenant.revision,
            Row::ApiKey(key) => key.revision,
            Row::Slot(slot) => slot.revision,
        }
    }

    /// Whether `next` may stand in this row's place, whatever its writer believes.
    pub fn may_become(&self, next: &Row) -> bool {
        let grows = next.revision() > self.revision();
        grows
            && match (self, next) {
                (Row::Claim(old), Row::Claim(new)) => old.may_become(new),
                (Row::Charge(old), Row::Charge(new)) => {
                    old.status.may_become(new.status) && old.order == new.order && old.tenant == new.tenant
                }
                (Row::Outbox(old), Row::Outbox(new)) => {
                    old.provider == new.provider && old.history.generation <= new.history.generation
                }
                (Row::Tenant(old), Row::Tenant(new)) => old.id == new.id,
                (Row::ApiKey(old), Row::ApiKey(new)) => {
                    old.tenant == new.tenant && (old.revoked_at.is_none() || old.revoked_at == new.revoked_at)
                }
                (Row::Slot(old), Row::Slot(new)) => old.epoch <= new.epoch,
                (
                    Row::Claim(_)
                    | Row::Charge(_)
                    | Row::Outbox(_)
                    | Row::Audit(_)
                    | Row::Tenant(_)
                    | Row::ApiKey(_)
                    | Row::Slot(_),
                    _,
                ) => false,
            }
    }

    /// Whether rows of this kind may be removed at all: history may not.
    pub fn may_be_removed(&self) -> bool {
        match self {
            Row::Outbox(_) => true,
            Row::Claim(claim) => claim.sweep_at().is_some(),
            Row::Charge(_) | Row::Audit(_) | Row::Tenant(_) | Row::ApiKey(_) | Row::Slot(_) => false,
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
    Outbox(Outbox),
    Audit(Record),
    Tenant(Tenant),
    ApiKey(ApiKey),
    Slot(Slot)
);
