//! Which transactions were undone, and by which.

use super::{Pen, cell};
use counterfoil_core::ledger::transaction::Reversal;
use counterfoil_core::types::id::TransactionId;
use rusqlite::{Connection, OptionalExtension, Result, params};

const BY_ORIGINAL: &str = "SELECT undone_by FROM reversals WHERE original = ?1";
const INSERT: &str = "INSERT OR FAIL INTO reversals (original, undone_by) VALUES (?1, ?2)";

pub(super) fn load(db: &Connection, original: TransactionId) -> Result<Option<Reversal>> {
    db.prepare_cached(BY_ORIGINAL)?
        .query_row([original.to_i64()], |row| Ok(Reversal { original, by: cell::transaction(row, 0)? }))
        .optional()
}

pub(super) fn insert(pen: &mut Pen<'_>, reversal: &Reversal) -> Result<()> {
    pen.write(INSERT, params![reversal.original.to_i64(), reversal.by.to_i64()])
}
