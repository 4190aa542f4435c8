//! What the tables ask of new rows, asked once for all that are shown together.
//!
//! The file's own triggers ask it for every row, and for as long as a table has one SQLite sets all rows of an insertion aside before it
//! writes the first.

use super::volumes::Volume;
use super::{Write, commits, journal, volumes};
use counterfoil_core::types::id::TransactionId;
use counterfoil_store::{Position, Row};
use rusqlite::{Connection, Error, Result};

/// New rows, by what is to be asked.
#[derive(Default)]
struct New {
    volumes: Vec<Volume>,
    positions: Vec<Position>,
    transactions: Vec<TransactionId>,
    legs: usize,
}

/// Fails if rows that were just written are not what their tables take: positions rise; what stands under a transaction are its own
/// legs, which balance; keys go into volumes that are open.
pub(crate) fn check<'a>(db: &Connection, writes: impl Iterator<Item = &'a Write>) -> Result<()> {
    let mut new = New::default();
    for write in writes {
        new.note(write);
    }
    new.volumes.dedup();
    for volume in new.volumes {
        agree(0, volumes::lists_of(db, volume)?)?;
    }
    if let Some(first) = new.positions.first() {
        agree(0, new.positions.windows(2).filter(|pair| !pair.is_sorted_by(|one, next| one < next)).count())?;
        agree(new.positions.len(), commits::count_from(db, *first)?)?;
    }
    if new.transactions.is_empty() {
        Ok(())
    } else {
        agree(new.legs, journal::legs_of(db, &new.transactions)?)
    }
}

impl New {
    fn note(&mut self, write: &Write) {
        if let Some((_, volume)) = write.entering() {
            self.volumes.push(volume);
        }
        match write {
            Write::Commit(receipt, ..) => self.positions.push(receipt.position),
            Write::Insert(row, _) => {
                if let Row::Transaction(transaction) = &**row {
                    self.transactions.push(transaction.id);
                    self.legs = self.legs.saturating_add(transaction.legs.as_slice().len());
                }
            }
            Write::Replace(_) | Write::Reuse(..) | Write::Remove(_) => {}
        }
    }
}

fn agree(expected: usize, found: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::StatementChangedRows(found)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::own_rules::tests::tables;
    use crate::tables::{Origin, apply_all};
    use counterfoil_core::types::id::SetId;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::CommitReceipt;
    use counterfoil_store::conformance::fixtures::claim;
    use counterfoil_store::conformance::fixtures::ledger::transfer;
    use std::sync::Arc;

    fn inserted(row: impl Into<Row>, volume: Volume) -> Write {
        let receipt = CommitReceipt { position: Position(1), at: Time::EPOCH };
        Write::Insert(Arc::new(row.into()), Origin { receipt, volume })
    }

    fn posted(number: i64) -> Write {
        inserted(transfer(number, 10, 11, 5), Volume::FIRST)
    }

    fn commit(position: u64) -> Write {
        let set = SetId::from_i64(i64::try_from(position).unwrap());
        Write::Commit(CommitReceipt { position: Position(position), at: Time::EPOCH }, set, Vec::new())
    }

    /// Shows these as the display does.
    fn shown(db: &Connection, writes: &[Write]) -> Result<()> {
        apply_all(db, writes.iter())?;
        check(db, writes.iter())
    }

    #[test]
    fn what_stands_under_a_transaction_are_its_own_legs() {
        let stray = "INSERT INTO journal_entries (transaction_id, leg, account, position, side, layer, asset, amount, at) \
            VALUES (?1, 7, 10, 1, 'debit', 'posted', 'USD', 5, 0)";
        let db = tables();
        db.execute(stray, [3]).unwrap();
        shown(&db, &[posted(1), posted(2)]).unwrap();
        assert_eq!(shown(&db, &[posted(4), posted(3)]), Err(Error::StatementChangedRows(5)));
    }

    #[test]
    fn positions_rise() {
        let db = tables();
        shown(&db, &[commit(2), commit(4)]).unwrap();
        assert_eq!(shown(&db, &[commit(3)]), Err(Error::StatementChangedRows(2)), "one above it is there");
        assert_eq!(shown(&db, &[commit(6), commit(5)]), Err(Error::StatementChangedRows(1)), "among the new");
        shown(&db, &[commit(7)]).unwrap();
    }

    #[test]
    fn keys_go_into_volumes_that_are_open() {
        let db = tables();
        let (closed, open) = (Volume::FIRST.next(), Volume::FIRST.next().next());
        shown(&db, &[inserted(claim(1), closed), inserted(claim(2), open)]).unwrap();
        volumes::list_closed(&db, None, open).unwrap();
        shown(&db, &[inserted(claim(3), open)]).unwrap();
        let late = shown(&db, &[inserted(claim(4), open), inserted(claim(5), closed)]);
        assert_eq!(late, Err(Error::StatementChangedRows(1)));
    }
}
