//! Snapshots, keyed by account and position. Sums are 16 bytes, big-endian: integers of SQLite have
//! 8.

use super::{RowWriter, cell, owners, to_i64};
use counterfoil_core::ledger::snapshot::Snapshot;
use counterfoil_core::ledger::totals::Totals;
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_store::{Position, Upto};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

macro_rules! columns {
    () => {
        "account, position, at, debits, credits, debits_pending, credits_pending, entries"
    };
}

const BY_KEY: &str = concat!("SELECT ", columns!(), " FROM snapshots WHERE account = ?1 AND position = ?2");
const UPTO: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM snapshots WHERE account = ?1 AND position <= ?2 AND at <= ?3 ORDER BY position DESC LIMIT ?4"
);
const INSERT: &str =
    concat!("INSERT OR FAIL INTO snapshots (", columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
const DELETE: &str = "DELETE FROM snapshots WHERE account = ?1 AND position = ?2";

/// The tenant is that of the account, or of the reader if the account is missing.
pub(super) fn load(
    db: &Connection,
    tenant: TenantId,
    account: AccountId,
    position: Position,
) -> Result<Option<Snapshot>> {
    let tenant = owners::of_account(db, account)?.unwrap_or(tenant);
    let key = [account.to_i64(), to_i64(position)];
    db.prepare_cached(BY_KEY)?.query_row(key, |row| read(tenant, row)).optional()
}

/// An account's snapshots up to a point, newest first.
pub(super) fn upto(
    db: &Connection,
    tenant: TenantId,
    account: AccountId,
    upto: Upto,
    limit: i64,
) -> Result<Vec<Snapshot>> {
    if !owners::may_see(db, tenant, account)? {
        return Ok(Vec::new());
    }
    let (position, time) = match upto {
        Upto::Now => (i64::MAX, i64::MAX),
        Upto::Position(position) => (to_i64(position), i64::MAX),
        Upto::Time(time) => (i64::MAX, time.ms()),
    };
    let bounds = [account.to_i64(), position, time, limit];
    db.prepare_cached(UPTO)?.query_map(bounds, |row| read(tenant, row))?.collect()
}

pub(super) fn insert(to: &mut RowWriter<'_>, snapshot: &Snapshot) -> Result<()> {
    let totals = &snapshot.totals;
    to.write(
        INSERT,
        params![
            snapshot.account.to_i64(),
            snapshot.position.0,
            snapshot.at.ms(),
            totals.debits.to_be_bytes(),
            totals.credits.to_be_bytes(),
            totals.debits_pending.to_be_bytes(),
            totals.credits_pending.to_be_bytes(),
            totals.entries,
        ],
    )
}

pub(super) fn remove(to: &mut RowWriter<'_>, account: AccountId, position: Position) -> Result<()> {
    to.write(DELETE, params![account.to_i64(), to_i64(position)])
}

fn read(tenant: TenantId, row: &Row<'_>) -> Result<Snapshot> {
    Ok(Snapshot {
        tenant,
        account: cell::account(row, 0)?,
        position: cell::position(row, 1)?,
        at: cell::time(row, 2)?,
        totals: Totals {
            debits: row.get(3).map(i128::from_be_bytes)?,
            credits: row.get(4).map(i128::from_be_bytes)?,
            debits_pending: row.get(5).map(i128::from_be_bytes)?,
            credits_pending: row.get(6).map(i128::from_be_bytes)?,
            entries: row.get(7)?,
        },
    })
}
