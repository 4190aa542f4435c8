//! The journal: transactions, their entries by account, and reversals.

use super::Kind::{Int, Json, Text};
use super::{Batch, Column, Damage, RowReader, Stored, Table, fixed, metadata, sql};
use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::totals::{AccountEntry, Totals};
use counterfoil_core::ledger::transaction::{Layer, Leg, Legs, Reversal, Transaction, TransactionKind};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, TenantId, TransactionId};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::Time;
use counterfoil_store::{CommitReceipt, Folded, Upto};
use tokio_postgres::Row;

impl Stored for Transaction {
    const TABLE: Table = Table {
        name: "journal_transactions",
        key: 2,
        columns: &[
            fixed("tenant", Int),
            fixed("id", Int),
            fixed("kind", Text),
            fixed("about", Int),
            fixed("legs", Int),
            fixed("metadata", Json),
            fixed("at", Int),
        ],
        more: "ARRAY(SELECT concat_ws(' ', e.account, e.side, e.layer, e.amount, e.asset) \
               FROM journal_entries AS e WHERE e.tenant = t.tenant AND e.transaction = t.id ORDER BY e.leg) AS entries",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.int(self.tenant.to_i64());
        batch.int(self.id.to_i64());
        batch.text(self.kind.name());
        batch.int(self.kind.about());
        batch.number(u64::try_from(self.legs.as_slice().len()).unwrap_or(u64::MAX));
        metadata::put(&self.metadata, batch);
        batch.int(self.at.ms());
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Transaction, Damage> {
        let (tenant, id) = (TenantId::from_i64(reader.int()?), TransactionId::from_i64(reader.int()?));
        let name: &str = reader.raw()?;
        let about: Option<i64> = reader.raw()?;
        let kind = TransactionKind::parse(name, about).ok_or_else(|| reader.damage("the kind is unknown"))?;
        let count: usize = reader.number()?;
        let metadata = metadata::take(reader)?;
        let at = reader.time()?;
        let entries: Vec<&str> = reader.raw()?;
        let legs: Option<Vec<Leg>> = entries.into_iter().map(leg).collect();
        let legs = legs.filter(|legs| legs.len() == count).and_then(|legs| Legs::balanced(legs).ok());
        let legs = legs.ok_or_else(|| reader.damage("the entries are incomplete or do not balance"))?;
        Ok(Transaction { id, tenant, kind, legs, metadata, at })
    }
}

/// Parses an entry as [`Transaction::TABLE`] selects it.
fn leg(words: &str) -> Option<Leg> {
    let mut words = words.split(' ');
    Some(Leg {
        account: AccountId::from_i64(words.next()?.parse().ok()?),
        side: Side::parse(words.next()?)?,
        layer: Layer::parse(words.next()?)?,
        amount: words.next()?.parse().ok()?,
        asset: Asset::parse(words.next()?).ok()?,
    })
}

impl Stored for Reversal {
    const TABLE: Table = Table {
        name: "reversals",
        key: 2,
        columns: &[fixed("tenant", Int), fixed("original", Int), fixed("undone_by", Int)],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.int(self.tenant.to_i64());
        batch.int(self.original.to_i64());
        batch.int(self.by.to_i64());
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Reversal, Damage> {
        Ok(Reversal {
            tenant: TenantId::from_i64(reader.int()?),
            original: TransactionId::from_i64(reader.int()?),
            by: TransactionId::from_i64(reader.int()?),
        })
    }
}

/// The parameters of an inserted entry. `turn` is the index of its set in the group, from 1.
pub(crate) const ENTRY: [Column; 9] = [
    fixed("tenant", Int),
    fixed("transaction", Int),
    fixed("leg", Int),
    fixed("turn", Int),
    fixed("account", Int),
    fixed("side", Text),
    fixed("layer", Text),
    fixed("amount", Int),
    fixed("asset", Text),
];

/// Inserts entries under the positions that the CTE `moved` took from `head`. `first` is the number
/// of the first parameter.
pub(super) fn insert_entries(first: usize) -> String {
    format!(
        "INSERT INTO journal_entries (tenant, transaction, leg, position, at, account, side, layer, amount, asset) \
         SELECT u.tenant, u.transaction, u.leg, moved.base + u.turn, moved.at, u.account, u.side, u.layer, u.amount, u.asset \
         FROM moved, {} AS u",
        sql::rows(ENTRY.iter(), first),
    )
}

/// Adds the entries of a transaction.
pub(crate) fn put_entries<'a>(transaction: &'a Transaction, turn: i64, batch: &mut Batch<'a>) {
    for (number, leg) in (0_i64..).zip(transaction.legs.as_slice()) {
        batch.int(transaction.tenant.to_i64());
        batch.int(transaction.id.to_i64());
        batch.int(number);
        batch.int(turn);
        batch.int(leg.account.to_i64());
        batch.text(leg.side.name());
        batch.text(leg.layer.name());
        batch.int(leg.amount);
        batch.text(leg.asset.code());
    }
}

macro_rules! entry_columns {
    () => {
        "e.transaction, e.leg, e.position, e.at, e.account, e.side, e.layer, e.amount, e.asset"
    };
}

/// Entries of an account after a position, oldest first.
pub(crate) const ENTRIES_AFTER: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM journal_entries AS e WHERE e.tenant = $1 AND e.account = $2 AND e.position > $3 \
     ORDER BY e.position, e.transaction, e.leg LIMIT $4"
);
/// Entries of an account, newest first.
pub(crate) const ENTRIES_NEWEST: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM journal_entries AS e WHERE e.tenant = $1 AND e.account = $2 \
     ORDER BY e.position DESC, e.transaction DESC, e.leg DESC LIMIT $3"
);
/// Entries of an account before one of its entries, newest first.
pub(crate) const ENTRIES_BEFORE: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM journal_entries AS e WHERE e.tenant = $1 AND e.account = $2 AND (e.position, e.transaction, e.leg) < \
      ((SELECT mark.position FROM journal_entries AS mark WHERE mark.tenant = $1 AND mark.transaction = $3 \
        AND mark.leg = $4 AND mark.account = $2), $3, $4) \
      ORDER BY e.position DESC, e.transaction DESC, e.leg DESC LIMIT $5"
);

pub(crate) fn entry(row: &Row) -> Result<AccountEntry, Damage> {
    let mut reader = RowReader::new(row, "journal_entries");
    Ok(AccountEntry {
        transaction: TransactionId::from_i64(reader.int()?),
        leg: reader.number()?,
        position: Position(reader.number()?),
        at: reader.time()?,
        account: AccountId::from_i64(reader.int()?),
        side: reader.word(Side::parse)?,
        layer: reader.word(Layer::parse)?,
        amount: reader.int()?,
        asset: reader.asset()?,
    })
}

/// Sums of an account's entries after one position and up to another and a time.
pub(crate) const FOLD: &str = "SELECT \
    coalesce(sum(amount) FILTER (WHERE side = 'debit' AND layer = 'posted'), 0)::text, \
    coalesce(sum(amount) FILTER (WHERE side = 'credit' AND layer = 'posted'), 0)::text, \
    coalesce(sum(CASE layer WHEN 'pending' THEN amount ELSE -amount END) \
        FILTER (WHERE side = 'debit' AND layer <> 'posted'), 0)::text, \
    coalesce(sum(CASE layer WHEN 'pending' THEN amount ELSE -amount END) \
        FILTER (WHERE side = 'credit' AND layer <> 'posted'), 0)::text, \
    count(*), max(position), max(at) \
    FROM journal_entries WHERE tenant = $1 AND account = $2 AND position > $3 AND position <= $4 AND at <= $5";

/// The last two parameters of [`FOLD`].
pub(crate) fn limits(upto: Upto) -> (i64, i64) {
    match upto {
        Upto::Now => (i64::MAX, i64::MAX),
        Upto::Position(position) => (i64::try_from(position.0).unwrap_or(i64::MAX), i64::MAX),
        Upto::Time(time) => (i64::MAX, time.ms()),
    }
}

pub(crate) fn folded(row: &Row) -> Result<Folded, Damage> {
    let mut reader = RowReader::new(row, "journal_entries");
    let totals = Totals {
        debits: reader.sum()?,
        credits: reader.sum()?,
        debits_pending: reader.sum()?,
        credits_pending: reader.sum()?,
        entries: reader.number()?,
    };
    let (position, at): (Option<i64>, Option<Time>) = (reader.raw()?, reader.time_if()?);
    let position = position.and_then(|position| u64::try_from(position).ok()).map(Position);
    // Time never decreases along positions, so the latest time is that of the last entry.
    Ok(Folded { totals, last: position.zip(at).map(|(position, at)| CommitReceipt { position, at }) })
}
