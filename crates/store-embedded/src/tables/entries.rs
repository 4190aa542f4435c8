//! The journal by account: pages of entries in commit order, and their sums.

use super::{cell, to_i64};
use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::ledger::transaction::Layer;
use counterfoil_core::types::id::{AccountId, TransactionId};
use counterfoil_store::{CommitReceipt, EntryPage, Folded, Position, Upto};
use rusqlite::{Connection, OptionalExtension, Params, Result, Row};

macro_rules! of_account {
    ($rest:literal) => {
        concat!(
            "SELECT transaction_id, leg, position, at, account, side, layer, amount, asset \
             FROM journal_entries WHERE account = ?1 ",
            $rest
        )
    };
}

const AFTER: &str = of_account!("AND position > ?3 ORDER BY position, transaction_id, leg LIMIT ?2");
const NEWEST: &str = of_account!("ORDER BY position DESC, transaction_id DESC, leg DESC LIMIT ?2");
const BEFORE: &str = of_account!(
    "AND (position, transaction_id, leg) < (?3, ?4, ?5) \
     ORDER BY position DESC, transaction_id DESC, leg DESC LIMIT ?2"
);
const MARK: &str =
    "SELECT position FROM journal_entries WHERE transaction_id = ?1 AND leg = ?2 AND account = ?3";
const FOLD: &str = "SELECT position, at, side, layer, amount FROM journal_entries \
    WHERE account = ?1 AND position > ?2 AND position <= ?3 ORDER BY position";

pub(crate) fn page(
    db: &Connection,
    account: AccountId,
    page: EntryPage,
    limit: i64,
) -> Result<Vec<AccountEntry>> {
    let id = account.to_i64();
    match page {
        EntryPage::After(position) => list(db, AFTER, [id, limit, to_i64(position)]),
        EntryPage::Before(None) => list(db, NEWEST, [id, limit]),
        EntryPage::Before(Some((transaction, leg))) => match mark(db, account, transaction, leg)? {
            None => Ok(Vec::new()),
            Some(position) => list(db, BEFORE, [id, limit, position, transaction.to_i64(), i64::from(leg)]),
        },
    }
}

/// The position of a leg, if the account has that leg.
fn mark(db: &Connection, account: AccountId, transaction: TransactionId, leg: u16) -> Result<Option<i64>> {
    let key = [transaction.to_i64(), i64::from(leg), account.to_i64()];
    db.prepare_cached(MARK)?.query_row(key, |row| row.get(0)).optional()
}

fn list(db: &Connection, sql: &str, params: impl Params) -> Result<Vec<AccountEntry>> {
    db.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Sums an account's entries in 128 bits; SQLite's own sums have 64.
pub(crate) fn fold(db: &Connection, account: AccountId, after: Position, upto: Upto) -> Result<Folded> {
    let last = match upto {
        Upto::Position(position) => to_i64(position),
        Upto::Now | Upto::Time(_) => i64::MAX,
    };
    let mut folded = Folded::default();
    let mut statement = db.prepare_cached(FOLD)?;
    let mut rows = statement.query([account.to_i64(), to_i64(after), last])?;
    while let Some(row) = rows.next()? {
        let receipt = CommitReceipt { position: cell::position(row, 0)?, at: cell::time(row, 1)? };
        if !upto.includes(receipt) {
            // Time grows with the position: no later entry is included.
            break;
        }
        let (side, layer) = (cell::word(row, 2, Side::parse)?, cell::word(row, 3, Layer::parse)?);
        folded.totals = folded.totals.plus(side, layer, row.get(4)?);
        folded.last = Some(receipt);
    }
    Ok(folded)
}

fn read(row: &Row<'_>) -> Result<AccountEntry> {
    Ok(AccountEntry {
        transaction: cell::transaction(row, 0)?,
        leg: row.get(1)?,
        position: cell::position(row, 2)?,
        at: cell::time(row, 3)?,
        account: cell::account(row, 4)?,
        side: cell::word(row, 5, Side::parse)?,
        layer: cell::word(row, 6, Layer::parse)?,
        amount: row.get(7)?,
        asset: cell::asset(row, 8)?,
    })
}
