//! Row ids that cannot exist yet, because ids are assigned in rising order.
//!
//! Rows inserted since the last trim are in the image. For older rows the highest id is known: a
//! higher id is new and needs no look-up. A lower id may be late and is looked up.

use crate::tables::Write;
use counterfoil_core::types::id::{SetId, SubjectId};
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::{Row, RowKey};
use rusqlite::{Connection, Result};
use std::collections::HashSet;

/// The highest id of each kind.
const HIGHEST: [(IdKind, &str); 9] = [
    (IdKind::Charge, "SELECT max(id) FROM charges"),
    (IdKind::Operation, "SELECT max(id) FROM operations"),
    (IdKind::Payout, "SELECT max(id) FROM payouts"),
    (IdKind::Outbox, "SELECT max(id) FROM outbox"),
    (IdKind::Account, "SELECT max(id) FROM accounts"),
    (IdKind::Transaction, "SELECT max(id) FROM journal_transactions"),
    (IdKind::Hold, "SELECT max(id) FROM holds"),
    (IdKind::Subject, "SELECT max(subject) FROM claims"),
    (IdKind::Set, "SELECT max(set_id) FROM commits"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum IdKind {
    Charge,
    Operation,
    Payout,
    Outbox,
    Account,
    Transaction,
    Hold,
    Subject,
    Set,
    Audit,
}

const KINDS: usize = 10;

type Marks = [i128; KINDS];

/// The highest ids, and unique ids that were used lately.
#[derive(Debug)]
pub(super) struct RowIds {
    /// The highest ids of rows that are no longer in the image.
    below: Marks,
    /// The highest ids of all rows.
    highest: Marks,
    /// Unique ids used in the current and the previous round. The image does not have them.
    taken: [HashSet<UniqueId>; 2],
    /// The position at which the current round began.
    since: u64,
}

/// A unique id that is not the row key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum UniqueId {
    /// The resource that a claim makes.
    Subject(SubjectId),
    Set(SetId),
    /// The tables key these rows by the number alone, across all tenants.
    Number(IdKind, i64),
    OfAnotherTenant,
}

impl UniqueId {
    /// Why the id cannot be used.
    pub(super) fn why_taken(self) -> &'static str {
        match self {
            UniqueId::Subject(_) => "another key has made the same",
            UniqueId::Set(_) => "a set of this name was committed before",
            UniqueId::Number(..) | UniqueId::OfAnotherTenant => "what it names is another tenant's",
        }
    }

    /// The unique id that a write uses, if any.
    pub(super) fn of(write: &Write) -> Option<UniqueId> {
        match write {
            Write::Insert(row, _) | Write::Reuse(row, ..) => match &**row {
                Row::Claim(claim) => Some(UniqueId::Subject(claim.subject)),
                Row::Charge(charge) => Some(UniqueId::Number(IdKind::Charge, charge.id.to_i64())),
                Row::Operation(operation) => Some(UniqueId::Number(IdKind::Operation, operation.id.to_i64())),
                Row::Payout(payout) => Some(UniqueId::Number(IdKind::Payout, payout.id.to_i64())),
                Row::Account(account) => Some(UniqueId::Number(IdKind::Account, account.id.to_i64())),
                Row::Transaction(posted) => Some(UniqueId::Number(IdKind::Transaction, posted.id.to_i64())),
                Row::Hold(hold) => Some(UniqueId::Number(IdKind::Hold, hold.id.to_i64())),
                // Their keys derive from a row above, or contain a name that the tenant chose.
                Row::Outbox(_)
                | Row::Audit(_)
                | Row::Tenant(_)
                | Row::ApiKey(_)
                | Row::Slot(_)
                | Row::Name(_)
                | Row::Asset(_)
                | Row::Balance(_)
                | Row::Reversal(_)
                | Row::Snapshot(_)
                | Row::Cursor(_) => None,
            },
            Write::Replace(_) | Write::Remove(_) | Write::Commit(..) => None,
        }
    }

    fn mark(self) -> Option<(IdKind, i128)> {
        match self {
            UniqueId::Subject(id) => Some((IdKind::Subject, i128::from(id.to_i64()))),
            UniqueId::Set(id) => Some((IdKind::Set, i128::from(id.to_i64()))),
            UniqueId::Number(kind, id) => Some((kind, i128::from(id))),
            UniqueId::OfAnotherTenant => None,
        }
    }

    fn is_found(self, db: &Connection) -> Result<bool> {
        let (sql, id) = match self {
            UniqueId::Subject(id) => ("SELECT 1 FROM claims WHERE subject = ?1", id.to_i64()),
            UniqueId::Set(id) => ("SELECT 1 FROM commits WHERE set_id = ?1", id.to_i64()),
            // The row key contains the number, so the row itself was looked up before.
            UniqueId::Number(..) => return Ok(false),
            UniqueId::OfAnotherTenant => return Ok(true),
        };
        db.prepare_cached(sql)?.exists([id])
    }
}

impl RowIds {
    /// Reads the highest ids from the database. Ids of audit records begin with their time, which
    /// is before `now`.
    pub(super) fn load(db: &Connection, now: Time) -> Result<RowIds> {
        let mut highest = [i128::MIN; KINDS];
        for (kind, sql) in HIGHEST {
            let id: Option<i64> = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            raise(&mut highest, (kind, id.map_or(i128::MIN, i128::from)));
        }
        raise(&mut highest, (IdKind::Audit, number(Ulid::new(now, u128::MAX))));
        Ok(RowIds { below: highest, highest, taken: Default::default(), since: 0 })
    }

    /// Whether no such row can exist outside the image.
    pub(super) fn is_new(&self, key: &RowKey) -> bool {
        mark(key).is_some_and(|mark| self.is_above(mark))
    }

    /// Raises the highest id to that of an inserted row.
    pub(super) fn inserted(&mut self, key: &RowKey) {
        if let Some(mark) = mark(key) {
            raise(&mut self.highest, mark);
        }
    }

    /// The first id that is used already, or listed twice.
    pub(super) fn first_taken(&self, db: &Connection, wanted: &[UniqueId]) -> Result<Option<UniqueId>> {
        for (place, one) in wanted.iter().enumerate() {
            let is_twice = wanted.iter().take(place).any(|earlier| earlier == one);
            if is_twice || !self.is_free(db, *one)? {
                return Ok(Some(*one));
            }
        }
        Ok(None)
    }

    fn is_free(&self, db: &Connection, wanted: UniqueId) -> Result<bool> {
        if self.taken.iter().any(|taken| taken.contains(&wanted)) {
            return Ok(false);
        }
        Ok(wanted.mark().is_some_and(|mark| self.is_above(mark)) || !wanted.is_found(db)?)
    }

    /// Marks the id as used.
    pub(super) fn take(&mut self, taken: UniqueId) {
        if let Some(mark) = taken.mark() {
            raise(&mut self.highest, mark);
        }
        let [current, _] = &mut self.taken;
        current.insert(taken);
    }

    /// The image was trimmed at `position`. Ids of the round before are forgotten once they are
    /// flushed.
    pub(super) fn trim(&mut self, position: u64, flushed: u64) {
        self.below = self.highest;
        if flushed >= self.since {
            let [current, before] = &mut self.taken;
            std::mem::swap(current, before);
            current.clear();
            self.since = position;
        }
    }

    fn is_above(&self, (kind, id): (IdKind, i128)) -> bool {
        self.below.get(kind as usize).is_some_and(|below| id > *below)
    }
}

fn raise(marks: &mut Marks, (kind, id): (IdKind, i128)) {
    if let Some(mark) = marks.get_mut(kind as usize) {
        *mark = id.max(*mark);
    }
}

/// The id in a row key, if ids of its kind are assigned in order.
fn mark(key: &RowKey) -> Option<(IdKind, i128)> {
    let (kind, id) = match key {
        RowKey::Charge(_, id) => (IdKind::Charge, id.to_i64()),
        RowKey::Operation(_, id) => (IdKind::Operation, id.to_i64()),
        RowKey::Payout(_, id) => (IdKind::Payout, id.to_i64()),
        RowKey::Outbox(_, id) => (IdKind::Outbox, id.to_i64()),
        RowKey::Account(_, id) => (IdKind::Account, id.to_i64()),
        RowKey::Transaction(_, id) => (IdKind::Transaction, id.to_i64()),
        RowKey::Hold(_, id) => (IdKind::Hold, id.to_i64()),
        RowKey::Audit(_, _, id) => return Some((IdKind::Audit, number(*id))),
        RowKey::Claim(..)
        | RowKey::Tenant(_)
        | RowKey::ApiKey(_)
        | RowKey::Slot(_)
        | RowKey::Name(..)
        | RowKey::Asset(..)
        | RowKey::Balance(..)
        | RowKey::Reversal(..)
        | RowKey::Snapshot(..)
        | RowKey::Cursor(_) => return None,
    };
    Some((kind, i128::from(id)))
}

fn number(id: Ulid) -> i128 {
    i128::from_be_bytes(id.to_bytes())
}
