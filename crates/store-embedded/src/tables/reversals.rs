//! Reversals, keyed by the transaction that was undone.

use super::{RowWriter, cell, owners};
use counterfoil_core::ledger::transaction::Reversal;
use counterfoil_core::types::id::{TenantId, TransactionId};
use counterfoil_store::RowKey;
use rusqlite::{Connection, OptionalExtension, Result, params};

const BY_ORIGINAL: &str = "SELECT undone_by FROM reversals WHERE original = ?1";
const INSERT: &str = "INSERT OR FAIL INTO reversals (original, undone_by) VALUES (?1, ?2)";

/// The tenant is that of the transaction, or of the reader if the transaction is missing.
pub(super) fn load(db: &Connection, tenant: TenantId, original: TransactionId) -> Result<Option<Reversal>> {
    let tenant = owners::of_row(db, &RowKey::Reversal(tenant, original))?.unwrap_or(tenant);
    db.prepare_cached(BY_ORIGINAL)?
        .query_row([original.to_i64()], |row| {
            Ok(Reversal { tenant, original, by: cell::transaction(row, 0)? })
        })
        .optional()
}

pub(super) fn insert(to: &mut RowWriter<'_>, reversal: &Reversal) -> Result<()> {
    to.write(INSERT, params![reversal.original.to_i64(), reversal.by.to_i64()])
}
