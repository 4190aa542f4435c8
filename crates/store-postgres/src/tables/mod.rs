//! One module per table: columns, and the encoding and decoding of rows. Decisions are made
//! elsewhere.
//!
//! The SQL of a table (find, lock, insert, update, delete) is generated from its columns and works
//! on arrays; some statements write several tables. Keys are a table's first columns. Every
//! statement processes its rows in key order. Key order within the order of [`TableId`] is the lock
//! order of all processes.

mod accounts;
mod batch;
mod charges;
mod claims;
pub(crate) mod commits;
mod holds;
pub(crate) mod journal;
mod metadata;
mod operations;
pub(crate) mod outbox;
mod payouts;
pub(crate) mod ranges;
mod row_reader;
pub(crate) mod seal;
mod snapshots;
mod sql;
mod sweep_schedule;
mod tenants;

pub(crate) use batch::Batch;
pub(crate) use row_reader::{Damage, RowReader};
pub(crate) use sql::{Part, Verb, largest_combination, single, statements, write_order};
pub(crate) use sweep_schedule::SweepSchedule;

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

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Bool,
    Text,
    Bytes,
    /// JSONB, written and read as text.
    Json,
    /// A sum of 128 bits, written and read as text.
    Sum,
}

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// How many columns are the key.
    pub(crate) key: usize,
    pub(crate) columns: &'static [Column],
    /// Further expressions that a read selects, as SQL over `t`.
    pub(crate) more: &'static str,
}

/// A row type with a table.
trait Stored: Sized {
    const TABLE: Table;
    fn put<'a>(&'a self, batch: &mut Batch<'a>);
    fn take(reader: &mut RowReader<'_>) -> Result<Self, Damage>;
}

/// The tables, in the order in which they are locked and written (the order of [`RowKey`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TableId {
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

impl TableId {
    pub(crate) const ALL: [TableId; 18] = [
        TableId::Claim,
        TableId::Charge,
        TableId::Operation,
        TableId::Payout,
        TableId::Outbox,
        TableId::Audit,
        TableId::Tenant,
        TableId::ApiKey,
        TableId::Slot,
        TableId::Account,
        TableId::Name,
        TableId::Asset,
        TableId::Balance,
        TableId::Transaction,
        TableId::Reversal,
        TableId::Hold,
        TableId::Snapshot,
        TableId::Cursor,
    ];

    /// The table of a key.
    pub(crate) const fn of(key: &RowKey) -> TableId {
        match key {
            RowKey::Claim(..) => TableId::Claim,
            RowKey::Charge(..) => TableId::Charge,
            RowKey::Operation(..) => TableId::Operation,
            RowKey::Payout(..) => TableId::Payout,
            RowKey::Outbox(..) => TableId::Outbox,
            RowKey::Audit(..) => TableId::Audit,
            RowKey::Tenant(_) => TableId::Tenant,
            RowKey::ApiKey(_) => TableId::ApiKey,
            RowKey::Slot(_) => TableId::Slot,
            RowKey::Account(..) => TableId::Account,
            RowKey::Name(..) => TableId::Name,
            RowKey::Asset(..) => TableId::Asset,
            RowKey::Balance(..) => TableId::Balance,
            RowKey::Transaction(..) => TableId::Transaction,
            RowKey::Reversal(..) => TableId::Reversal,
            RowKey::Hold(..) => TableId::Hold,
            RowKey::Snapshot(..) => TableId::Snapshot,
            RowKey::Cursor(_) => TableId::Cursor,
        }
    }

    /// The table of a row.
    pub(crate) const fn of_row(row: &Row) -> TableId {
        match row {
            Row::Claim(_) => TableId::Claim,
            Row::Charge(_) => TableId::Charge,
            Row::Operation(_) => TableId::Operation,
            Row::Payout(_) => TableId::Payout,
            Row::Outbox(_) => TableId::Outbox,
            Row::Audit(_) => TableId::Audit,
            Row::Tenant(_) => TableId::Tenant,
            Row::ApiKey(_) => TableId::ApiKey,
            Row::Slot(_) => TableId::Slot,
            Row::Account(_) => TableId::Account,
            Row::Name(_) => TableId::Name,
            Row::Asset(_) => TableId::Asset,
            Row::Balance(_) => TableId::Balance,
            Row::Transaction(_) => TableId::Transaction,
            Row::Reversal(_) => TableId::Reversal,
            Row::Hold(_) => TableId::Hold,
            Row::Snapshot(_) => TableId::Snapshot,
            Row::Cursor(_) => TableId::Cursor,
        }
    }

    /// The table of a changed row.
    pub(crate) fn of_change(change: &Change) -> TableId {
        match change {
            Change::Insert(row) | Change::Replace { row, .. } => TableId::of_row(row),
            Change::Remove { key, .. } => TableId::of(key),
            Change::Move(_) => TableId::Balance,
        }
    }

    pub(crate) const fn table(self) -> Table {
        match self {
            TableId::Claim => Claim::TABLE,
            TableId::Charge => Charge::TABLE,
            TableId::Operation => Operation::TABLE,
            TableId::Payout => Payout::TABLE,
            TableId::Outbox => Outbox::TABLE,
            TableId::Audit => AuditRecord::TABLE,
            TableId::Tenant => Tenant::TABLE,
            TableId::ApiKey => ApiKey::TABLE,
            TableId::Slot => Slot::TABLE,
            TableId::Account => Account::TABLE,
            TableId::Name => AccountName::TABLE,
            TableId::Asset => AssetDefinition::TABLE,
            TableId::Balance => Balance::TABLE,
            TableId::Transaction => Transaction::TABLE,
            TableId::Reversal => Reversal::TABLE,
            TableId::Hold => Hold::TABLE,
            TableId::Snapshot => Snapshot::TABLE,
            TableId::Cursor => Cursor::TABLE,
        }
    }

    /// Whether rows of this table never change and need no locks.
    pub(crate) const fn is_immutable(self) -> bool {
        match self {
            TableId::Audit | TableId::Name | TableId::Asset | TableId::Transaction | TableId::Reversal => {
                true
            }
            TableId::Claim
            | TableId::Charge
            | TableId::Operation
            | TableId::Payout
            | TableId::Outbox
            | TableId::Tenant
            | TableId::ApiKey
            | TableId::Slot
            | TableId::Account
            | TableId::Balance
            | TableId::Hold
            | TableId::Snapshot
            | TableId::Cursor => false,
        }
    }

    /// Whether a new row of this table has a freshly minted id. A lookup before the insertion would
    /// find nothing, and no second process can insert the same id.
    pub(crate) const fn is_minted(self) -> bool {
        match self {
            TableId::Charge
            | TableId::Operation
            | TableId::Payout
            | TableId::Outbox
            | TableId::Audit
            | TableId::Account
            | TableId::Transaction
            | TableId::Hold => true,
            TableId::Claim
            | TableId::Tenant
            | TableId::ApiKey
            | TableId::Slot
            | TableId::Name
            | TableId::Asset
            | TableId::Balance
            | TableId::Reversal
            | TableId::Snapshot
            | TableId::Cursor => false,
        }
    }

    /// Decodes a row that a statement over this table returned.
    pub(crate) fn take(self, row: &tokio_postgres::Row) -> Result<Row, Damage> {
        let reader = &mut RowReader::new(row, self.table().name);
        Ok(match self {
            TableId::Claim => Claim::take(reader)?.into(),
            TableId::Charge => Charge::take(reader)?.into(),
            TableId::Operation => Operation::take(reader)?.into(),
            TableId::Payout => Payout::take(reader)?.into(),
            TableId::Outbox => Outbox::take(reader)?.into(),
            TableId::Audit => AuditRecord::take(reader)?.into(),
            TableId::Tenant => Tenant::take(reader)?.into(),
            TableId::ApiKey => ApiKey::take(reader)?.into(),
            TableId::Slot => Slot::take(reader)?.into(),
            TableId::Account => Account::take(reader)?.into(),
            TableId::Name => AccountName::take(reader)?.into(),
            TableId::Asset => AssetDefinition::take(reader)?.into(),
            TableId::Balance => Balance::take(reader)?.into(),
            TableId::Transaction => Transaction::take(reader)?.into(),
            TableId::Reversal => Reversal::take(reader)?.into(),
            TableId::Hold => Hold::take(reader)?.into(),
            TableId::Snapshot => Snapshot::take(reader)?.into(),
            TableId::Cursor => Cursor::take(reader)?.into(),
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
    fn tables_are_in_lock_order_and_keys_come_first() {
        assert!(TableId::ALL.is_sorted());
        for id in TableId::ALL {
            let table = id.table();
            assert!(table.key >= 1 && table.key < table.columns.len(), "{}", table.name);
            assert!(table.columns.iter().take(table.key).all(|column| !column.moves), "{}", table.name);
        }
    }
}
