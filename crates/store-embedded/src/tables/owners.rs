//! Tenants of rows, for tables without a tenant column.

use super::{audit_log, claims};
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_store::RowKey;
use rusqlite::{Connection, OptionalExtension, Result};

/// The tenant of a balance without an account, which is damage that `verify` reports.
pub(super) const NOBODY: TenantId = TenantId::from_i64(i64::MIN);

macro_rules! of {
    ($table:literal) => {
        concat!("SELECT tenant FROM ", $table, " WHERE id = ?1")
    };
}

pub(crate) fn of_account(db: &Connection, account: AccountId) -> Result<Option<TenantId>> {
    by_id(db, of!("accounts"), account.to_i64())
}

/// Whether the tenant may read the account; a missing account has no owner.
pub(crate) fn may_see(db: &Connection, tenant: TenantId, account: AccountId) -> Result<bool> {
    Ok(of_account(db, account)?.is_none_or(|owner| owner == tenant))
}

/// The tenant of a row or of its account or transaction; none if the row is missing.
pub(super) fn of_row(db: &Connection, key: &RowKey) -> Result<Option<TenantId>> {
    match key {
        RowKey::Claim(_, id) => Ok(claims::load(db, *id)?.map(|claim| claim.tenant)),
        RowKey::Charge(_, id) => by_id(db, of!("charges"), id.to_i64()),
        RowKey::Operation(_, id) => by_id(db, of!("operations"), id.to_i64()),
        RowKey::Payout(_, id) => by_id(db, of!("payouts"), id.to_i64()),
        RowKey::Outbox(_, id) => by_id(db, of!("outbox"), id.to_i64()),
        RowKey::Audit(_, subject, id) => Ok(audit_log::load(db, *subject, *id)?.map(|record| record.tenant)),
        RowKey::Account(_, account) | RowKey::Balance(_, account, _) | RowKey::Snapshot(_, account, _) => {
            of_account(db, *account)
        }
        RowKey::Transaction(_, id) | RowKey::Reversal(_, id) => {
            by_id(db, of!("journal_transactions"), id.to_i64())
        }
        RowKey::Hold(_, id) => by_id(db, of!("holds"), id.to_i64()),
        RowKey::Name(tenant, _) | RowKey::Asset(tenant, _) => Ok(Some(*tenant)),
        RowKey::Tenant(_) | RowKey::ApiKey(_) | RowKey::Slot(_) | RowKey::Cursor(_) => Ok(None),
    }
}

fn by_id(db: &Connection, sql: &'static str, id: i64) -> Result<Option<TenantId>> {
    let tenant = db.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?;
    Ok(tenant.map(TenantId::from_i64))
}
