//! Rows this process wrote and will soon write again, so that they need not be read back.
//!
//! Nothing is decided by memory alone. Each row is kept with the number of the transaction that wrote it; who relies on
//! it writes only if the row in the table is still that transaction's (`xmin`), which wrote the row once, so it is the
//! same row. A write that finds another one fails as a whole, and a refusal is never given from memory.

use crate::clock::monotonic;
use crate::tables::Place;
use counterfoil_core::payments::charge::ChargeStatus;
use counterfoil_core::payments::{operation, payout};
use counterfoil_store::{KeyMap, Row, RowKey};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rows of one generation; there are two. More than are in flight at any time.
const ROWS_MAX: usize = 16_384;
/// How long a generation takes rows. Transaction numbers come round after 2^32; nothing is remembered for that long.
const GENERATION: Duration = Duration::from_mins(5);

/// A row, and the transaction that wrote it as the server spells it.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    pub(crate) row: Arc<Row>,
    pub(crate) by: Arc<str>,
}

/// What is remembered.
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

    /// Whether rows there may be on their way (see [`is_on_its_way`]); others are never remembered.
    pub(super) const fn is_of(place: Place) -> bool {
        matches!(place, Place::Claim | Place::Charge | Place::Operation | Place::Payout | Place::Outbox)
    }

    /// All of these rows, or nothing if one is missing.
    pub(super) fn recall<'k>(&self, keys: impl Iterator<Item = &'k RowKey>) -> Option<KeyMap<Remembered>> {
        let mut rows = self.generations(monotonic());
        let rows = &mut *rows;
        keys.map(|key| {
            let found = rows.young.get(key).or_else(|| rows.old.get(key))?;
            Some((key.clone(), found.clone()))
        })
        .collect()
    }

    /// Whether a row of that key is remembered.
    pub(super) fn has(&self, key: &RowKey) -> bool {
        let rows = self.generations(monotonic());
        rows.young.contains_key(key) || rows.old.contains_key(key)
    }

    /// The transaction `by` left these rows, or none under their keys.
    pub(super) fn wrote(&self, rows: impl Iterator<Item = (RowKey, Option<Arc<Row>>)>, by: &Arc<str>) {
        let mut known = self.generations(monotonic());
        for (key, row) in rows {
            known.old.remove(&key);
            match row.filter(|row| is_on_its_way(row)) {
                Some(row) => known.young.insert(key, Remembered { row, by: Arc::clone(by) }),
                None => known.young.remove(&key),
            };
        }
    }

    /// What is remembered of these rows may be wrong.
    pub(super) fn forget(&self, keys: impl Iterator<Item = RowKey>) {
        let mut rows = self.generations(monotonic());
        for key in keys {
            rows.young.remove(&key);
            rows.old.remove(&key);
        }
    }

    /// Another server may be behind the next connection, with transactions of its own under the same numbers.
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

/// Whether the row will be written again by who wrote it, and soon.
fn is_on_its_way(row: &Row) -> bool {
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
