//! The insertion rules of the schema, checked once per flush instead of once per row.
//!
//! `BEFORE INSERT` triggers hold for other programs. They make SQLite set all rows of an insertion
//! aside before writing the first, so the flusher's connection runs without them.

use super::{Write, commits, journal};
use crate::key_index::{Partition, is_listed};
use counterfoil_core::types::id::TransactionId;
use counterfoil_store::{Position, Row};
use rusqlite::{Connection, Error, Result};

/// New rows of a flush, by rule.
#[derive(Default)]
struct NewRows {
    partitions: Vec<Partition>,
    positions: Vec<Position>,
    transactions: Vec<TransactionId>,
    legs: usize,
}

/// Fails if the written rows break a rule: commits are appended in rising positions,
/// a transaction has exactly its entries, keys go into open partitions.
///
/// The entries of a transaction balance, because the core builds only balanced `Legs`.
pub(crate) fn check<'a>(db: &Connection, writes: impl Iterator<Item = &'a Write>) -> Result<()> {
    let mut new = NewRows::default();
    for write in writes {
        new.add(write);
    }
    new.partitions.dedup();
    for partition in new.partitions {
        agree(0, usize::from(is_listed(db, partition)?))?;
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

impl NewRows {
    fn add(&mut self, write: &Write) {
        if let Some((_, partition)) = write.new_key() {
            self.partitions.push(partition);
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
    use crate::key_index::list_closed_partitions;
    use crate::schema::own_rules::tests::tables;
    use crate::tables::{Origin, apply_all};
    use counterfoil_core::types::id::SetId;
    use counterfoil_core::types::time::Time;
    use counterfoil_store::CommitReceipt;
    use counterfoil_store::conformance::fixtures::claim;
    use counterfoil_store::conformance::fixtures::ledger::transfer;
    use std::sync::Arc;

    fn inserted(row: impl Into<Row>, partition: Partition) -> Write {
        let receipt = CommitReceipt { position: Position(1), at: Time::EPOCH };
        Write::Insert(Arc::new(row.into()), Origin { receipt, partition })
    }

    fn posted(number: i64) -> Write {
        inserted(transfer(number, 10, 11, 5), Partition::FIRST)
    }

    fn commit(position: u64) -> Write {
        let set = SetId::from_i64(i64::try_from(position).unwrap());
        Write::Commit(CommitReceipt { position: Position(position), at: Time::EPOCH }, set, Vec::new())
    }

    fn flush(db: &Connection, writes: &[Write]) -> Result<()> {
        apply_all(db, writes.iter())?;
        check(db, writes.iter())
    }

    #[test]
    fn a_transaction_has_only_its_own_entries() {
        let stray = "INSERT INTO journal_entries (transaction_id, leg, account, position, side, layer, asset, amount, at) \
            VALUES (?1, 7, 10, 1, 'debit', 'posted', 'USD', 5, 0)";
        let db = tables();
        db.execute(stray, [3]).unwrap();
        flush(&db, &[posted(1), posted(2)]).unwrap();
        assert_eq!(flush(&db, &[posted(4), posted(3)]), Err(Error::StatementChangedRows(5)));
    }

    #[test]
    fn commits_are_appended_in_rising_positions() {
        let db = tables();
        flush(&db, &[commit(2), commit(4)]).unwrap();
        assert_eq!(flush(&db, &[commit(3)]), Err(Error::StatementChangedRows(2)), "one above it is there");
        assert_eq!(flush(&db, &[commit(6), commit(5)]), Err(Error::StatementChangedRows(1)), "among the new");
        flush(&db, &[commit(7)]).unwrap();
    }

    #[test]
    fn keys_go_into_open_partitions() {
        let db = tables();
        let (closed, open) = (Partition::FIRST.next(), Partition::FIRST.next().next());
        flush(&db, &[inserted(claim(1), closed), inserted(claim(2), open)]).unwrap();
        list_closed_partitions(&db, None, open).unwrap();
        flush(&db, &[inserted(claim(3), open)]).unwrap();
        let late = flush(&db, &[inserted(claim(4), open), inserted(claim(5), closed)]);
        assert_eq!(late, Err(Error::StatementChangedRows(1)));
    }
}
