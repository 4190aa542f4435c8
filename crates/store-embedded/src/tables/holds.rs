//! Holds, keyed by sequential id, with an index of the deadlines of pending holds.

use super::{RowWriter, cell};
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::types::id::{HoldId, TransactionId};
use counterfoil_core::types::time::Time;
use counterfoil_store::codec::metadata;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

macro_rules! columns {
    () => {
        "id, tenant, from_account, to_account, amount, asset, expires_at, state, posted_amount, ended_by, metadata, \
         created_at, revision"
    };
}

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM holds WHERE id = ?1");
const AFTER: &str = concat!("SELECT ", columns!(), " FROM holds WHERE id > ?1 ORDER BY id LIMIT ?2");
const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM holds WHERE state = 'pending' AND expires_at <= ?1 ORDER BY expires_at, id LIMIT ?2"
);
const INSERT: &str = concat!(
    "INSERT OR FAIL INTO holds (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
);
/// The terms of a hold never change.
const UPDATE: &str =
    "UPDATE holds SET state = ?2, posted_amount = ?3, ended_by = ?4, revision = ?5 WHERE id = ?1";

pub(super) fn load(db: &Connection, id: HoldId) -> Result<Option<Hold>> {
    db.prepare_cached(BY_ID)?.query_row([id.to_i64()], read).optional()
}

pub(super) fn after(db: &Connection, after: Option<HoldId>, limit: i64) -> Result<Vec<Hold>> {
    let after = after.map_or(i64::MIN, HoldId::to_i64);
    db.prepare_cached(AFTER)?.query_map([after, limit], read)?.collect()
}

pub(super) fn due(db: &Connection, now: Time, limit: i64) -> Result<Vec<Hold>> {
    db.prepare_cached(DUE)?.query_map([now.ms(), limit], read)?.collect()
}

pub(super) fn insert(to: &mut RowWriter<'_>, hold: &Hold) -> Result<()> {
    let (posted, by) = cells(hold.state);
    to.write(
        INSERT,
        params![
            hold.id.to_i64(),
            hold.tenant.to_i64(),
            hold.from.to_i64(),
            hold.to.to_i64(),
            hold.amount,
            hold.asset.code(),
            hold.expires_at.ms(),
            hold.state.name(),
            posted,
            by,
            metadata::encode(&hold.metadata),
            hold.created_at.ms(),
            hold.revision,
        ],
    )
}

pub(super) fn replace(to: &mut RowWriter<'_>, hold: &Hold) -> Result<()> {
    let (posted, by) = cells(hold.state);
    to.write(UPDATE, params![hold.id.to_i64(), hold.state.name(), posted, by, hold.revision,])
}

/// Columns of some states only.
fn cells(state: HoldState) -> (Option<i64>, Option<i64>) {
    match state {
        HoldState::Pending => (None, None),
        HoldState::Posted { amount, by } => (Some(amount), Some(by.to_i64())),
        HoldState::Voided { by } | HoldState::Lapsed { by } => (None, Some(by.to_i64())),
    }
}

fn read(row: &Row<'_>) -> Result<Hold> {
    Ok(Hold {
        id: cell::hold(row, 0)?,
        tenant: cell::tenant(row, 1)?,
        from: cell::account(row, 2)?,
        to: cell::account(row, 3)?,
        amount: row.get(4)?,
        asset: cell::asset(row, 5)?,
        expires_at: cell::time(row, 6)?,
        state: read_state(row)?,
        metadata: cell::word(row, 10, metadata::decode)?,
        created_at: cell::time(row, 11)?,
        revision: row.get(12)?,
    })
}

fn read_state(row: &Row<'_>) -> Result<HoldState> {
    let by = || -> Result<TransactionId> { cell::transaction(row, 9) };
    Ok(match row.get_ref(7)?.as_str().unwrap_or_default() {
        "pending" => HoldState::Pending,
        "posted" => HoldState::Posted { amount: row.get(8)?, by: by()? },
        "voided" => HoldState::Voided { by: by()? },
        "lapsed" => HoldState::Lapsed { by: by()? },
        _ => return Err(cell::damaged(7, Type::Text)),
    })
}
