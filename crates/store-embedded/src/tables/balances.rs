//! Guarded balances, by account and shard. A group writes each of them once, as its last set left it.

use super::{Pen, cell, owners};
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_store::UNTOLD;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

macro_rules! columns {
    () => {
        "account, shard, posted, outgoing, incoming, floor, cap, revision"
    };
}

const BY_KEY: &str = concat!("SELECT ", columns!(), " FROM balances WHERE account = ?1 AND shard = ?2");
const AFTER: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM balances WHERE (account, shard) > (?1, ?2) ORDER BY account, shard LIMIT ?3"
);
const INSERT: &str =
    concat!("INSERT OR FAIL INTO balances (", columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
const UPDATE: &str = "UPDATE OR FAIL balances SET posted = ?3, outgoing = ?4, incoming = ?5, floor = ?6, cap = ?7, \
    revision = ?8 WHERE account = ?1 AND shard = ?2";

/// One whose account is not there is taken for the tenant's who asks.
pub(super) fn load(
    db: &Connection,
    tenant: TenantId,
    account: AccountId,
    shard: u8,
) -> Result<Option<Balance>> {
    let key = params![account.to_i64(), shard];
    let Some(balance) = db.prepare_cached(BY_KEY)?.query_row(key, read).optional()? else { return Ok(None) };
    let tenant = owners::of_account(db, account)?.unwrap_or(tenant);
    Ok(Some(Balance { tenant, ..balance }))
}

pub(super) fn after(db: &Connection, after: Option<(AccountId, u8)>, limit: i64) -> Result<Vec<Balance>> {
    // No shard is below zero.
    let (account, shard) =
        after.map_or((i64::MIN, -1), |(account, shard)| (account.to_i64(), i64::from(shard)));
    let mut statement = db.prepare_cached(AFTER)?;
    let balances = statement.query_map([account, shard, limit], read)?;
    let owned = |balance: Balance| -> Result<Balance> {
        Ok(Balance { tenant: owners::or_nobody(owners::of_account(db, balance.account)?), ..balance })
    };
    balances.map(|balance| balance.and_then(owned)).collect()
}

pub(super) fn insert(pen: &mut Pen<'_>, balance: &Balance) -> Result<()> {
    write_whole(pen, INSERT, balance)
}

pub(super) fn replace(pen: &mut Pen<'_>, balance: &Balance) -> Result<()> {
    write_whole(pen, UPDATE, balance)
}

fn write_whole(pen: &mut Pen<'_>, sql: &'static str, balance: &Balance) -> Result<()> {
    pen.write(
        sql,
        params![
            balance.account.to_i64(),
            balance.shard,
            balance.posted,
            balance.outgoing,
            balance.incoming,
            balance.floor,
            balance.cap,
            balance.revision,
        ],
    )
}

fn read(row: &Row<'_>) -> Result<Balance> {
    Ok(Balance {
        tenant: UNTOLD,
        account: cell::account(row, 0)?,
        shard: row.get(1)?,
        posted: row.get(2)?,
        outgoing: row.get(3)?,
        incoming: row.get(4)?,
        floor: row.get(5)?,
        cap: row.get(6)?,
        revision: row.get(7)?,
    })
}
