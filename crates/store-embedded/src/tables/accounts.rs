//! Accounts, keyed by sequential id, with an index by tenant for lists.

use super::{RowWriter, cell};
use counterfoil_core::ledger::account::{Account, AccountCode, Guard, Side};
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_store::codec::metadata;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

macro_rules! columns {
    () => {
        "id, tenant, code, asset, normal, floor, cap, shards, widest, metadata, created_at, revision"
    };
}

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM accounts WHERE id = ?1");
const AFTER: &str = concat!("SELECT ", columns!(), " FROM accounts WHERE id > ?1 ORDER BY id LIMIT ?2");
const OF_TENANT: &str =
    concat!("SELECT ", columns!(), " FROM accounts WHERE tenant = ?1 ORDER BY id DESC LIMIT ?2");
const OF_TENANT_BEFORE: &str =
    concat!("SELECT ", columns!(), " FROM accounts WHERE tenant = ?1 AND id < ?3 ORDER BY id DESC LIMIT ?2");
const INSERT: &str = concat!(
    "INSERT OR FAIL INTO accounts (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
);
/// The other columns never change.
const UPDATE: &str = "UPDATE accounts SET shards = ?2, widest = ?3, revision = ?4 WHERE id = ?1";

pub(super) fn load(db: &Connection, id: AccountId) -> Result<Option<Account>> {
    db.prepare_cached(BY_ID)?.query_row([id.to_i64()], read).optional()
}

pub(super) fn after(db: &Connection, after: Option<AccountId>, limit: i64) -> Result<Vec<Account>> {
    let after = after.map_or(i64::MIN, AccountId::to_i64);
    db.prepare_cached(AFTER)?.query_map([after, limit], read)?.collect()
}

pub(super) fn of_tenant(
    db: &Connection,
    tenant: TenantId,
    before: Option<AccountId>,
    limit: i64,
) -> Result<Vec<Account>> {
    match before {
        None => db.prepare_cached(OF_TENANT)?.query_map([tenant.to_i64(), limit], read)?.collect(),
        Some(before) => db
            .prepare_cached(OF_TENANT_BEFORE)?
            .query_map([tenant.to_i64(), limit, before.to_i64()], read)?
            .collect(),
    }
}

pub(super) fn insert(to: &mut RowWriter<'_>, account: &Account) -> Result<()> {
    to.write(
        INSERT,
        params![
            account.id.to_i64(),
            account.tenant.to_i64(),
            account.code.as_str(),
            account.asset.code(),
            account.normal.name(),
            account.guard.floor,
            account.guard.cap,
            account.shards,
            account.widest,
            metadata::encode(&account.metadata),
            account.created_at.ms(),
            account.revision,
        ],
    )
}

pub(super) fn replace(to: &mut RowWriter<'_>, account: &Account) -> Result<()> {
    to.write(UPDATE, params![account.id.to_i64(), account.shards, account.widest, account.revision,])
}

fn read(row: &Row<'_>) -> Result<Account> {
    Ok(Account {
        id: cell::account(row, 0)?,
        tenant: cell::tenant(row, 1)?,
        code: cell::word(row, 2, |code| AccountCode::parse(code).ok())?,
        asset: cell::asset(row, 3)?,
        normal: cell::word(row, 4, Side::parse)?,
        guard: Guard { floor: row.get(5)?, cap: row.get(6)? },
        shards: row.get(7)?,
        widest: row.get(8)?,
        metadata: cell::word(row, 9, metadata::decode)?,
        created_at: cell::time(row, 10)?,
        revision: row.get(11)?,
    })
}
