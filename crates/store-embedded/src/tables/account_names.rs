//! Codes of accounts, keyed by tenant and code, which makes codes unique.

use super::{RowWriter, cell};
use counterfoil_core::ledger::account::{AccountCode, AccountName};
use counterfoil_core::types::id::TenantId;
use rusqlite::{Connection, OptionalExtension, Result, params};

const BY_KEY: &str = "SELECT account FROM account_names WHERE tenant = ?1 AND code = ?2";
const INSERT: &str = "INSERT OR FAIL INTO account_names (tenant, code, account) VALUES (?1, ?2, ?3)";

pub(super) fn load(db: &Connection, tenant: TenantId, code: &AccountCode) -> Result<Option<AccountName>> {
    let account = db
        .prepare_cached(BY_KEY)?
        .query_row(params![tenant.to_i64(), code.as_str()], |row| cell::account(row, 0))
        .optional()?;
    Ok(account.map(|account| AccountName { tenant, code: code.clone(), account }))
}

pub(super) fn insert(to: &mut RowWriter<'_>, name: &AccountName) -> Result<()> {
    to.write(INSERT, params![name.tenant.to_i64(), name.code.as_str(), name.account.to_i64(),])
}
