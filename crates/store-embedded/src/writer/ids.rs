//! Which rows cannot be there yet, because ids are given out in rising order: looking for them would find nothing.
//!
//! Rows that were inserted since the image was last cut back are in the image. Of those before it is known how high their ids
//! got: a higher one is new. A lower one may be late, and is looked for.

use crate::tables::Write;
use counterfoil_core::types::id::{SetId, SubjectId};
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::{Row, RowKey};
use rusqlite::{Connection, Result};
use std::collections::HashSet;

/// Tables whose rows bring ids of their own, and where their highest is found.
const HIGHEST: [(Kind, &str); 9] = [
    (Kind::Charge, "SELECT max(id) FROM charges"),
    (Kind::Operation, "SELECT max(id) FROM operations"),
    (Kind::Payout, "SELECT max(id) FROM payouts"),
    (Kind::Outbox, "SELECT max(id) FROM outbox"),
    (Kind::Account, "SELECT max(id) FROM accounts"),
    (Kind::Transaction, "SELECT max(id) FROM journal_transactions"),
    (Kind::Hold, "SELECT max(id) FROM holds"),
    (Kind::Subject, "SELECT max(subject) FROM claims"),
    (Kind::Set, "SELECT max(set_id) FROM commits"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
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

/// How high ids got.
#[derive(Debug)]
pub(super) struct Ids {
    /// Of rows that the image may have forgotten.
    below: Marks,
    /// Of all rows.
    highest: Marks,
    /// What claims have made, and the sets, in this round and the one before: the image does not hold them.
    taken: [HashSet<Taken>; 2],
    /// The position at which this round began.
    since: u64,
}

/// What no two rows may share, although it is the key of neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Taken {
    /// What a claim makes.
    Subject(SubjectId),
    /// The name of a commit.
    Set(SetId),
    /// A number that is given out once, whoever gets it: the tables know rows by it alone.
    Number(Kind, i64),
    /// What belongs to another tenant.
    Anothers,
}

impl Taken {
    /// Why it cannot be had.
    pub(super) fn why(self) -> &'static str {
        match self {
            Taken::Subject(_) => "another key has made the same",
            Taken::Set(_) => "a set of this name was committed before",
            Taken::Number(..) | Taken::Anothers => "what it names is another tenant's",
        }
    }

    /// What a write takes, if it takes anything.
    pub(super) fn by(write: &Write) -> Option<Taken> {
        match write {
            Write::Insert(row, _) | Write::Reuse(row, ..) => match &**row {
                Row::Claim(claim) => Some(Taken::Subject(claim.subject)),
                Row::Charge(charge) => Some(Taken::Number(Kind::Charge, charge.id.to_i64())),
                Row::Operation(operation) => Some(Taken::Number(Kind::Operation, operation.id.to_i64())),
                Row::Payout(payout) => Some(Taken::Number(Kind::Payout, payout.id.to_i64())),
                Row::Account(account) => Some(Taken::Number(Kind::Account, account.id.to_i64())),
                Row::Transaction(posted) => Some(Taken::Number(Kind::Transaction, posted.id.to_i64())),
                Row::Hold(hold) => Some(Taken::Number(Kind::Hold, hold.id.to_i64())),
                // These are named after one of the above, or by words of their tenant.
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

    fn mark(self) -> Option<(Kind, i128)> {
        match self {
            Taken::Subject(id) => Some((Kind::Subject, i128::from(id.to_i64()))),
            Taken::Set(id) => Some((Kind::Set, i128::from(id.to_i64()))),
            Taken::Number(kind, id) => Some((kind, i128::from(id))),
            Taken::Anothers => None,
        }
    }

    fn is_found(self, db: &Connection) -> Result<bool> {
        let (sql, id) = match self {
            Taken::Subject(id) => ("SELECT 1 FROM claims WHERE subject = ?1", id.to_i64()),
            Taken::Set(id) => ("SELECT 1 FROM commits WHERE set_id = ?1", id.to_i64()),
            // A row that was looked for and not found as this tenant's.
            Taken::Number(..) => return Ok(false),
            Taken::Anothers => return Ok(true),
        };
        db.prepare_cached(sql)?.exists([id])
    }
}

impl Ids {
    /// As the database has them. Audit records are named by the time they were written at, which is before `now`.
    pub(super) fn load(db: &Connection, now: Time) -> Result<Ids> {
        let mut highest = [i128::MIN; KINDS];
        for (kind, sql) in HIGHEST {
            let id: Option<i64> = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            raise(&mut highest, (kind, id.map_or(i128::MIN, i128::from)));
        }
        raise(&mut highest, (Kind::Audit, number(Ulid::new(now, u128::MAX))));
        Ok(Ids { below: highest, highest, taken: Default::default(), since: 0 })
    }

    /// Whether no such row can be there, unless the image has it.
    pub(super) fn is_new(&self, key: &RowKey) -> bool {
        mark(key).is_some_and(|mark| self.is_above(mark))
    }

    /// A row was inserted.
    pub(super) fn inserted(&mut self, key: &RowKey) {
        if let Some(mark) = mark(key) {
            raise(&mut self.highest, mark);
        }
    }

    /// The first of these that something has already, or that stands there twice.
    pub(super) fn first_taken(&self, db: &Connection, wanted: &[Taken]) -> Result<Option<Taken>> {
        for (place, one) in wanted.iter().enumerate() {
            let is_twice = wanted.iter().take(place).any(|earlier| earlier == one);
            if is_twice || !self.is_free(db, *one)? {
                return Ok(Some(*one));
            }
        }
        Ok(None)
    }

    fn is_free(&self, db: &Connection, wanted: Taken) -> Result<bool> {
        if self.taken.iter().any(|taken| taken.contains(&wanted)) {
            return Ok(false);
        }
        Ok(wanted.mark().is_some_and(|mark| self.is_above(mark)) || !wanted.is_found(db)?)
    }

    /// Something has it from here on.
    pub(super) fn take(&mut self, taken: Taken) {
        if let Some(mark) = taken.mark() {
            raise(&mut self.highest, mark);
        }
        let [current, _] = &mut self.taken;
        current.insert(taken);
    }

    /// The image was cut back at `position`. What the round before has taken is forgotten once the database shows it.
    pub(super) fn cut_back(&mut self, position: u64, visible: u64) {
        self.below = self.highest;
        if visible >= self.since {
            let [current, before] = &mut self.taken;
            std::mem::swap(current, before);
            current.clear();
            self.since = position;
        }
    }

    fn is_above(&self, (kind, id): (Kind, i128)) -> bool {
        self.below.get(kind as usize).is_some_and(|below| id > *below)
    }
}

fn raise(marks: &mut Marks, (kind, id): (Kind, i128)) {
    if let Some(mark) = marks.get_mut(kind as usize) {
        *mark = id.max(*mark);
    }
}

/// The id a key consists of, if its kind gives them out in order.
fn mark(key: &RowKey) -> Option<(Kind, i128)> {
    let (kind, id) = match key {
        RowKey::Charge(_, id) => (Kind::Charge, id.to_i64()),
        RowKey::Operation(_, id) => (Kind::Operation, id.to_i64()),
        RowKey::Payout(_, id) => (Kind::Payout, id.to_i64()),
        RowKey::Outbox(_, id) => (Kind::Outbox, id.to_i64()),
        RowKey::Account(_, id) => (Kind::Account, id.to_i64()),
        RowKey::Transaction(_, id) => (Kind::Transaction, id.to_i64()),
        RowKey::Hold(_, id) => (Kind::Hold, id.to_i64()),
        RowKey::Audit(_, _, id) => return Some((Kind::Audit, number(*id))),
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
