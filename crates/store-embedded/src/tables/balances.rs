//! Guarded balances, keyed by account and shard. A group writes a balance once, after its last
//! move.

use super::{RowWriter, cell, owners};
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::types::id::{AccountId, TenantId};
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

/// The tenant is that of the account, or of the reader if the account is missing.
pub(super) fn load(
    db: &Connection,
    tenant: TenantId,
    account: AccountId,
    shard: u8,
) -> Result<Option<Balance>> {
    let key = params![account.to_i64(), shard];
    let tenant = owners::of_account(db, account)?.unwrap_or(tenant);
    db.prepare_cached(BY_KEY)?.query_row(key, |row| read(tenant, row)).optional()
}

pub(super) fn after(db: &Connection, after: Option<(AccountId, u8)>, limit: i64) -> Result<Vec<Balance>> {
    // Shards are never negative.
    let (account, shard) =
        after.map_or((i64::MIN, -1), |(account, shard)| (account.to_i64(), i64::from(shard)));
    let mut statement = db.prepare_cached(AFTER)?;
    let read_owned = |row: &Row<'_>| {
        let owner = owners::of_account(db, cell::account(row, 0)?)?;
        read(owner.unwrap_or(owners::NOBODY), row)
    };
    statement.query_map([account, shard, limit], read_owned)?.collect()
}

pub(super) fn insert(to: &mut RowWriter<'_>, balance: &Balance) -> Result<()> {
    write_whole(to, INSERT, balance)
}

pub(super) fn replace(to: &mut RowWriter<'_>, balance: &Balance) -> Result<()> {
    write_whole(to, UPDATE, balance)
}

fn write_whole(to: &mut RowWriter<'_>, sql: &'static str, balance: &Balance) -> Result<()> {
    to.write(
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

fn read(tenant: TenantId, row: &Row<'_>) -> Result<Balance> {
    Ok(Balance {
        tenant,
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
