//! One module per table: its columns, and how a row of it is written and read. Nothing here decides anything.
//!
//! Statements are made from the columns, the same five for every table, all over arrays: find, lock, insert, update,
//! delete; and some that write several tables. Keys stand first among a table's columns, and every statement goes through its rows in the order of their
//! keys: that order, and the order of [`Place`], is the one in which all processes take locks.

mod accounts;
mod batch;
mod charges;
mod claims;
pub(crate) mod commits;
mod holds;
pub(crate) mod journal;
mod line;
mod looks;
mod metadata;
mod operations;
pub(crate) mod outbox;
mod payouts;
mod people;
pub(crate) mod ranges;
mod reckoning;
mod sql;

pub(crate) use batch::Batch;
pub(crate) use line::{Damage, Line};
pub(crate) use looks::Looks;
pub(crate) use sql::{Part, Verb, alone, most_of, mostly_empty, statements, turn};

use counterfoil_core::audit::AuditRecord;
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::ledger::account::{Account, AccountName};
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::ledger::snapshot::{Cursor, Snapshot};
use counterfoil_core::ledger::transaction::{Reversal, Transaction};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::operation::Operation;
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::tenancy::{ApiKey, Tenant};
use counterfoil_core::types::id::Slot;
use counterfoil_store::{Change, Row, RowKey};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Bool,
    Text,
    Bytes,
    /// Written and read as text.
    Json,
    /// 128 bits; written and read as text.
    Sum,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether an update writes it.
    pub(crate) moves: bool,
}

const fn fixed(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, moves: false }
}

const fn moves(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, moves: true }
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// How many of the columns are its key.
    pub(crate) key: usize,
    pub(crate) columns: &'static [Column],
    /// What a read needs beyond the columns, as SQL over `t`.
    pub(crate) more: &'static str,
}

/// A row type that has a table.
trait Stored: Sized {
    const TABLE: Table;
    fn put<'a>(&'a self, batch: &mut Batch<'a>);
    fn take(line: &mut Line<'_>) -> Result<Self, Damage>;
}

/// The tables, in the order in which they are locked and written: that of [`RowKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    Claim,
    Charge,
    Operation,
    Payout,
    Outbox,
    Audit,
    Tenant,
    ApiKey,
    Slot,
    Account,
    Name,
    Asset,
    Balance,
    Transaction,
    Reversal,
    Hold,
    Snapshot,
    Cursor,
}

impl Place {
    pub(crate) const ALL: [Place; 18] = [
        Place::Claim,
        Place::Charge,
        Place::Operation,
        Place::Payout,
        Place::Outbox,
        Place::Audit,
        Place::Tenant,
        Place::ApiKey,
        Place::Slot,
        Place::Account,
        Place::Name,
        Place::Asset,
        Place::Balance,
        Place::Transaction,
        Place::Reversal,
        Place::Hold,
        Place::Snapshot,
        Place::Cursor,
    ];

    /// Where the row of that key is.
    pub(crate) const fn of(key: &RowKey) -> Place {
        match key {
            RowKey::Claim(..) => Place::Claim,
            RowKey::Charge(..) => Place::Charge,
            RowKey::Operation(..) => Place::Operation,
            RowKey::Payout(..) => Place::Payout,
            RowKey::Outbox(..) => Place::Outbox,
            RowKey::Audit(..) => Place::Audit,
            RowKey::Tenant(_) => Place::Tenant,
            RowKey::ApiKey(_) => Place::ApiKey,
            RowKey::Slot(_) => Place::Slot,
            RowKey::Account(..) => Place::Account,
            RowKey::Name(..) => Place::Name,
            RowKey::Asset(..) => Place::Asset,
            RowKey::Balance(..) => Place::Balance,
            RowKey::Transaction(..) => Place::Transaction,
            RowKey::Reversal(..) => Place::Reversal,
            RowKey::Hold(..) => Place::Hold,
            RowKey::Snapshot(..) => Place::Snapshot,
            RowKey::Cursor(_) => Place::Cursor,
        }
    }

    /// Where a row is.
    pub(crate) const fn of_row(row: &Row) -> Place {
        match row {
            Row::Claim(_) => Place::Claim,
            Row::Charge(_) => Place::Charge,
            Row::Operation(_) => Place::Operation,
            Row::Payout(_) => Place::Payout,
            Row::Outbox(_) => Place::Outbox,
            Row::Audit(_) => Place::Audit,
            Row::Tenant(_) => Place::Tenant,
            Row::ApiKey(_) => Place::ApiKey,
            Row::Slot(_) => Place::Slot,
            Row::Account(_) => Place::Account,
            Row::Name(_) => Place::Name,
            Row::Asset(_) => Place::Asset,
            Row::Balance(_) => Place::Balance,
            Row::Transaction(_) => Place::Transaction,
            Row::Reversal(_) => Place::Reversal,
            Row::Hold(_) => Place::Hold,
            Row::Snapshot(_) => Place::Snapshot,
            Row::Cursor(_) => Place::Cursor,
        }
    }

    /// Where the row is that a change is about.
    pub(crate) fn of_change(change: &Change) -> Place {
        match change {
            Change::Insert(row) | Change::Replace { row, .. } => Place::of_row(row),
            Change::Remove { key, .. } => Place::of(key),
            Change::Move(_) => Place::Balance,
        }
    }

    pub(crate) const fn table(self) -> Table {
        match self {
            Place::Claim => Claim::TABLE,
            Place::Charge => Charge::TABLE,
            Place::Operation => Operation::TABLE,
            Place::Payout => Payout::TABLE,
            Place::Outbox => Outbox::TABLE,
            Place::Audit => AuditRecord::TABLE,
            Place::Tenant => Tenant::TABLE,
            Place::ApiKey => ApiKey::TABLE,
            Place::Slot => Slot::TABLE,
            Place::Account => Account::TABLE,
            Place::Name => AccountName::TABLE,
            Place::Asset => AssetDefinition::TABLE,
            Place::Balance => Balance::TABLE,
            Place::Transaction => Transaction::TABLE,
            Place::Reversal => Reversal::TABLE,
            Place::Hold => Hold::TABLE,
            Place::Snapshot => Snapshot::TABLE,
            Place::Cursor => Cursor::TABLE,
        }
    }

    /// Whether its rows are never changed, so that there is nothing to hold still by a lock.
    pub(crate) const fn lasts(self) -> bool {
        match self {
            Place::Audit | Place::Name | Place::Asset | Place::Transaction | Place::Reversal => true,
            Place::Claim
            | Place::Charge
            | Place::Operation
            | Place::Payout
            | Place::Outbox
            | Place::Tenant
            | Place::ApiKey
            | Place::Slot
            | Place::Account
            | Place::Balance
            | Place::Hold
            | Place::Snapshot
            | Place::Cursor => false,
        }
    }

    /// Whether its rows come with ids that were minted for them: looking for a new one would find nothing, and nobody else
    /// can be about to write it.
    pub(crate) const fn is_minted(self) -> bool {
        match self {
            Place::Charge
            | Place::Operation
            | Place::Payout
            | Place::Outbox
            | Place::Audit
            | Place::Account
            | Place::Transaction
            | Place::Hold => true,
            Place::Claim
            | Place::Tenant
            | Place::ApiKey
            | Place::Slot
            | Place::Name
            | Place::Asset
            | Place::Balance
            | Place::Reversal
            | Place::Snapshot
            | Place::Cursor => false,
        }
    }

    /// Reads a row that a statement over this table returned.
    pub(crate) fn take(self, row: &tokio_postgres::Row) -> Result<Row, Damage> {
        let line = &mut Line::new(row, self.table().name);
        Ok(match self {
            Place::Claim => Claim::take(line)?.into(),
            Place::Charge => Charge::take(line)?.into(),
            Place::Operation => Operation::take(line)?.into(),
            Place::Payout => Payout::take(line)?.into(),
            Place::Outbox => Outbox::take(line)?.into(),
            Place::Audit => AuditRecord::take(line)?.into(),
            Place::Tenant => Tenant::take(line)?.into(),
            Place::ApiKey => ApiKey::take(line)?.into(),
            Place::Slot => Slot::take(line)?.into(),
            Place::Account => Account::take(line)?.into(),
            Place::Name => AccountName::take(line)?.into(),
            Place::Asset => AssetDefinition::take(line)?.into(),
            Place::Balance => Balance::take(line)?.into(),
            Place::Transaction => Transaction::take(line)?.into(),
            Place::Reversal => Reversal::take(line)?.into(),
            Place::Hold => Hold::take(line)?.into(),
            Place::Snapshot => Snapshot::take(line)?.into(),
            Place::Cursor => Cursor::take(line)?.into(),
        })
    }
}

/// Adds a row to a batch over all columns of its table.
pub(crate) fn put<'a>(row: &'a Row, batch: &mut Batch<'a>) {
    match row {
        Row::Claim(claim) => claim.put(batch),
        Row::Charge(charge) => charge.put(batch),
        Row::Operation(operation) => operation.put(batch),
        Row::Payout(payout) => payout.put(batch),
        Row::Outbox(outbox) => outbox.put(batch),
        Row::Audit(record) => record.put(batch),
        Row::Tenant(tenant) => tenant.put(batch),
        Row::ApiKey(key) => key.put(batch),
        Row::Slot(slot) => slot.put(batch),
        Row::Account(account) => account.put(batch),
        Row::Name(name) => name.put(batch),
        Row::Asset(definition) => definition.put(batch),
        Row::Balance(balance) => balance.put(batch),
        Row::Transaction(transaction) => transaction.put(batch),
        Row::Reversal(reversal) => reversal.put(batch),
        Row::Hold(hold) => hold.put(batch),
        Row::Snapshot(snapshot) => snapshot.put(batch),
        Row::Cursor(cursor) => cursor.put(batch),
    }
}

/// Adds a key to a batch over the key columns of its table.
pub(crate) fn put_key<'a>(key: &'a RowKey, batch: &mut Batch<'a>) {
    if let Some(tenant) = key.tenant() {
        batch.int(tenant.to_i64());
    }
    match key {
        RowKey::Claim(_, id) => batch.bytes(id.digest().as_bytes().as_slice()),
        RowKey::Charge(_, id) => batch.int(id.to_i64()),
        RowKey::Operation(_, id) => batch.int(id.to_i64()),
        RowKey::Payout(_, id) => batch.int(id.to_i64()),
        RowKey::Outbox(_, id) => batch.int(id.to_i64()),
        RowKey::Audit(_, subject, id) => {
            batch.int(subject.to_i64());
            batch.bytes(id.to_bytes().to_vec());
        }
        RowKey::Tenant(name) => batch.text(name.as_str()),
        RowKey::ApiKey(digest) => batch.bytes(digest.as_bytes().as_slice()),
        RowKey::Slot(number) => batch.int(i64::from(*number)),
        RowKey::Account(_, id) => batch.int(id.to_i64()),
        RowKey::Name(_, code) => batch.text(code.as_str()),
        RowKey::Asset(_, asset) => batch.text(asset.code()),
        RowKey::Balance(_, account, shard) => {
            batch.int(account.to_i64());
            batch.int(i64::from(*shard));
        }
        RowKey::Transaction(_, id) | RowKey::Reversal(_, id) => batch.int(id.to_i64()),
        RowKey::Hold(_, id) => batch.int(id.to_i64()),
        RowKey::Snapshot(_, account, position) => {
            batch.int(account.to_i64());
            batch.number(position.0);
        }
        RowKey::Cursor(reader) => batch.text(reader.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stand_in_their_own_order_and_keys_come_first() {
        assert!(Place::ALL.is_sorted());
        for place in Place::ALL {
            let table = place.table();
            assert!(table.key >= 1 && table.key < table.columns.len(), "{}", table.name);
            assert!(table.columns.iter().take(table.key).all(|column| !column.moves), "{}", table.name);
        }
    }
}
