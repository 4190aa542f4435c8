//! Transactions and their entries. Entries are written first; the transaction row closes over them.
//! From then on no entry can be added or changed.

use super::{RowWriter, cell};
use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::transaction::{Layer, Leg, Legs, Transaction, TransactionKind};
use counterfoil_core::types::id::{AccountId, TenantId, TransactionId};
use counterfoil_store::codec::metadata;
use counterfoil_store::{CommitReceipt, Position};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Params, Result, Row, params};

macro_rules! columns {
    () => {
        "id, tenant, at, kind, about, metadata, legs"
    };
}

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM journal_transactions WHERE id = ?1");
const AFTER: &str =
    concat!("SELECT ", columns!(), " FROM journal_transactions WHERE id > ?1 ORDER BY id LIMIT ?2");
const OF_TENANT: &str =
    concat!("SELECT ", columns!(), " FROM journal_transactions WHERE tenant = ?1 ORDER BY id DESC LIMIT ?2");
const OF_TENANT_BEFORE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM journal_transactions WHERE tenant = ?1 AND id < ?3 ORDER BY id DESC LIMIT ?2"
);
const LEGS: &str = "SELECT account, side, layer, amount, asset FROM journal_entries \
    WHERE transaction_id = ?1 ORDER BY leg";
/// The list of ids is the outer loop: one look-up per transaction.
const LEGS_OF: &str =
    "SELECT count(*) FROM json_each(?1) CROSS JOIN journal_entries ON transaction_id = value";
const INSERT_LEG: &str = "INSERT OR FAIL INTO journal_entries \
    (transaction_id, leg, account, side, layer, amount, asset, position, at) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const INSERT: &str = concat!(
    "INSERT OR FAIL INTO journal_transactions (",
    columns!(),
    ", position) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
);

pub(super) fn load(db: &Connection, id: TransactionId) -> Result<Option<Transaction>> {
    db.prepare_cached(BY_ID)?.query_row([id.to_i64()], |row| read(db, row)).optional()
}

pub(super) fn after(db: &Connection, after: Option<TransactionId>, limit: i64) -> Result<Vec<Transaction>> {
    let after = after.map_or(i64::MIN, TransactionId::to_i64);
    list(db, AFTER, [after, limit])
}

pub(super) fn of_tenant(
    db: &Connection,
    tenant: TenantId,
    before: Option<TransactionId>,
    limit: i64,
) -> Result<Vec<Transaction>> {
    match before {
        None => list(db, OF_TENANT, [tenant.to_i64(), limit]),
        Some(before) => list(db, OF_TENANT_BEFORE, [tenant.to_i64(), limit, before.to_i64()]),
    }
}

fn list(db: &Connection, sql: &str, params: impl Params) -> Result<Vec<Transaction>> {
    db.prepare_cached(sql)?.query_map(params, |row| read(db, row))?.collect()
}

/// The number of entries of these transactions.
pub(super) fn legs_of(db: &Connection, transactions: &[TransactionId]) -> Result<usize> {
    let ids: Vec<String> = transactions.iter().map(|id| id.to_i64().to_string()).collect();
    db.prepare_cached(LEGS_OF)?.query_row([format!("[{}]", ids.join(","))], |row| row.get(0))
}

pub(super) fn insert(
    to: &mut RowWriter<'_>,
    transaction: &Transaction,
    receipt: CommitReceipt,
) -> Result<()> {
    entries(transaction, receipt).try_for_each(|entry| entry.insert(to))?;
    close(to, transaction, receipt)
}

/// The entries of a transaction.
pub(super) fn entries(transaction: &Transaction, receipt: CommitReceipt) -> impl Iterator<Item = Entry<'_>> {
    let legs = (0_u16..).zip(transaction.legs.as_slice());
    legs.map(move |(number, leg)| Entry { transaction: transaction.id, number, leg, receipt })
}

/// A leg with its transaction and position.
pub(super) struct Entry<'a> {
    transaction: TransactionId,
    number: u16,
    leg: &'a Leg,
    receipt: CommitReceipt,
}

impl Entry<'_> {
    /// The sort key in the index by account.
    pub(super) fn place(&self) -> (AccountId, Position, TransactionId, u16) {
        (self.leg.account, self.receipt.position, self.transaction, self.number)
    }

    pub(super) fn insert(&self, to: &mut RowWriter<'_>) -> Result<()> {
        to.write(
            INSERT_LEG,
            params![
                self.transaction.to_i64(),
                self.number,
                self.leg.account.to_i64(),
                self.leg.side.name(),
                self.leg.layer.name(),
                self.leg.amount,
                self.leg.asset.code(),
                self.receipt.position.0,
                self.receipt.at.ms(),
            ],
        )
    }
}

/// Writes the transaction row after its entries.
pub(super) fn close(to: &mut RowWriter<'_>, transaction: &Transaction, receipt: CommitReceipt) -> Result<()> {
    to.write(
        INSERT,
        params![
            transaction.id.to_i64(),
            transaction.tenant.to_i64(),
            transaction.at.ms(),
            transaction.kind.name(),
            transaction.kind.about(),
            metadata::encode(&transaction.metadata),
            transaction.legs.as_slice().len(),
            receipt.position.0,
        ],
    )
}

fn read(db: &Connection, row: &Row<'_>) -> Result<Transaction> {
    let about = row.get(4)?;
    let legs: Vec<Leg> =
        db.prepare_cached(LEGS)?.query_map([row.get::<_, i64>(0)?], read_leg)?.collect::<Result<_>>()?;
    if legs.len() != row.get::<_, usize>(6)? {
        return Err(cell::damaged(6, Type::Integer));
    }
    Ok(Transaction {
        id: cell::transaction(row, 0)?,
        tenant: cell::tenant(row, 1)?,
        at: cell::time(row, 2)?,
        kind: cell::word(row, 3, |name| TransactionKind::parse(name, about))?,
        metadata: cell::word(row, 5, metadata::decode)?,
        legs: Legs::balanced(legs).map_err(|_| cell::damaged(6, Type::Integer))?,
    })
}

fn read_leg(row: &Row<'_>) -> Result<Leg> {
    Ok(Leg {
        account: cell::account(row, 0)?,
        side: cell::word(row, 1, Side::parse)?,
        layer: cell::word(row, 2, Layer::parse)?,
        amount: row.get(3)?,
        asset: cell::asset(row, 4)?,
    })
}
