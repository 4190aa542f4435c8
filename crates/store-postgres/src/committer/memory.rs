//! A cache of rows written by this process, which will soon write most of them again and need not
//! read them back.
//!
//! The cache never decides anything. A row is stored with the number of the writing transaction. A
//! group that uses the row writes only if the row in the table still has that number (`xmin`). A
//! transaction writes a row once, so an equal `xmin` means an equal row. A mismatch fails the whole
//! write, and no refusal is based on the cache.

use crate::clock::monotonic;
use crate::tables::TableId;
use counterfoil_core::payments::charge::ChargeStatus;
use counterfoil_core::payments::{operation, payout};
use counterfoil_store::{KeyMap, Row, RowKey};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The capacity of one of the two generations. More rows than this are never in flight.
const ROWS_MAX: usize = 16_384;
/// The time for which a generation takes rows. Transaction numbers wrap around after 2^32; no row
/// is cached for that long.
const GENERATION: Duration = Duration::from_mins(5);

/// A row and the transaction that wrote it, as text.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    pub(crate) row: Arc<Row>,
    pub(crate) by: Arc<str>,
}

#[derive(Debug)]
pub(crate) struct Memory(Mutex<Generations>);

#[derive(Debug)]
struct Generations {
    born: Duration,
    young: KeyMap<Remembered>,
    old: KeyMap<Remembered>,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory(Mutex::new(Generations {
            born: monotonic(),
            young: KeyMap::default(),
            old: KeyMap::default(),
        }))
    }

    /// Whether rows of this table are ever cached (see [`is_in_progress`]).
    pub(super) const fn caches(table_id: TableId) -> bool {
        matches!(
            table_id,
            TableId::Claim | TableId::Charge | TableId::Operation | TableId::Payout | TableId::Outbox
        )
    }

    /// All of these rows, or `None` if one is missing.
    pub(super) fn recall<'k>(&self, keys: impl Iterator<Item = &'k RowKey>) -> Option<KeyMap<Remembered>> {
        let mut rows = self.generations(monotonic());
        let rows = &mut *rows;
        keys.map(|key| {
            let found = rows.young.get(key).or_else(|| rows.old.get(key))?;
            Some((key.clone(), found.clone()))
        })
        .collect()
    }

    pub(super) fn contains(&self, key: &RowKey) -> bool {
        let rows = self.generations(monotonic());
        rows.young.contains_key(key) || rows.old.contains_key(key)
    }

    /// Records rows written or removed by the transaction `by`.
    pub(super) fn wrote(&self, rows: impl Iterator<Item = (RowKey, Option<Arc<Row>>)>, by: &Arc<str>) {
        let mut known = self.generations(monotonic());
        for (key, row) in rows {
            known.old.remove(&key);
            match row.filter(|row| is_in_progress(row)) {
                Some(row) => known.young.insert(key, Remembered { row, by: Arc::clone(by) }),
                None => known.young.remove(&key),
            };
        }
    }

    /// Removes rows that may be stale.
    pub(super) fn forget(&self, keys: impl Iterator<Item = RowKey>) {
        let mut rows = self.generations(monotonic());
        for key in keys {
            rows.young.remove(&key);
            rows.old.remove(&key);
        }
    }

    /// Empties the cache before a new connection: another server may use the same numbers for other
    /// transactions.
    pub(super) fn clear(&self) {
        let mut rows = self.generations(monotonic());
        rows.young.clear();
        rows.old.clear();
    }

    fn generations(&self, now: Duration) -> MutexGuard<'_, Generations> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let age = now.saturating_sub(rows.born);
        if rows.young.len() >= ROWS_MAX || age >= GENERATION {
            rows.old = std::mem::take(&mut rows.young);
            rows.born = now;
            if age >= GENERATION.saturating_mul(2) {
                rows.old.clear();
            }
        }
        rows
    }
}

/// Whether this process will soon write the row again.
fn is_in_progress(row: &Row) -> bool {
    match row {
        Row::Claim(claim) => claim.sweep_at().is_none(),
        Row::Charge(charge) => {
            charge.status == ChargeStatus::Processing || charge.working.is_some() || charge.sums.refunding > 0
        }
        Row::Operation(operation) => operation.status == operation::OperationStatus::Processing,
        Row::Payout(payout) => payout.status == payout::PayoutStatus::Processing,
        Row::Outbox(_) => true,
        Row::Audit(_)
        | Row::Tenant(_)
        | Row::ApiKey(_)
        | Row::Slot(_)
        | Row::Account(_)
        | Row::Name(_)
        | Row::Asset(_)
        | Row::Balance(_)
        | Row::Transaction(_)
        | Row::Reversal(_)
        | Row::Hold(_)
        | Row::Snapshot(_)
        | Row::Cursor(_) => false,
    }
}
