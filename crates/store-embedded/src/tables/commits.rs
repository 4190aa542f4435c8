//! Commits, keyed by position: the feed, and the answer to a commit in doubt.

use super::{RowWriter, cell, to_i64};
use counterfoil_core::types::id::SetId;
use counterfoil_store::codec::touched;
use counterfoil_store::{CommitReceipt, Committed, Position};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

const LAST: &str = "SELECT position, at FROM commits ORDER BY position DESC LIMIT 1";
const BY_SET: &str = "SELECT position, at FROM commits WHERE set_id = ?1";
const AFTER: &str =
    "SELECT position, at, set_id, touched FROM commits WHERE position > ?1 ORDER BY position LIMIT ?2";
const COUNT_FROM: &str = "SELECT count(*) FROM commits WHERE position >= ?1";
const INSERT: &str = "INSERT OR FAIL INTO commits (position, set_id, at, touched) VALUES (?1, ?2, ?3, ?4)";

pub(crate) fn last(db: &Connection) -> Result<Option<CommitReceipt>> {
    db.prepare_cached(LAST)?.query_row([], receipt).optional()
}

pub(crate) fn of_set(db: &Connection, set: SetId) -> Result<Option<CommitReceipt>> {
    db.prepare_cached(BY_SET)?.query_row([set.to_i64()], receipt).optional()
}

/// Commits after a position, in order.
pub(crate) fn after(db: &Connection, position: Position, limit: i64) -> Result<Vec<Committed>> {
    db.prepare_cached(AFTER)?
        .query_map([to_i64(position), limit], |row| {
            let bytes = row.get_ref(3)?.as_blob().unwrap_or_default();
            Ok(Committed {
                receipt: receipt(row)?,
                set: SetId::from_i64(row.get(2)?),
                touched: touched::decode(bytes).ok_or_else(|| cell::damaged(3, Type::Blob))?,
            })
        })?
        .collect()
}

/// The number of commits from a position on.
pub(super) fn count_from(db: &Connection, position: Position) -> Result<usize> {
    db.prepare_cached(COUNT_FROM)?.query_row([to_i64(position)], |row| row.get(0))
}

pub(crate) fn insert(
    to: &mut RowWriter<'_>,
    receipt: CommitReceipt,
    set: SetId,
    touched: &[u8],
) -> Result<()> {
    to.write(INSERT, params![receipt.position.0, set.to_i64(), receipt.at.ms(), touched,])
}

fn receipt(row: &Row<'_>) -> Result<CommitReceipt> {
    Ok(CommitReceipt { position: cell::position(row, 0)?, at: cell::time(row, 1)? })
}
