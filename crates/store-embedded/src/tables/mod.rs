//! SQLite tables: one module per table with its statements and its mapping of rows to columns.
//!
//! These modules decide nothing; the judge has decided. [`apply`] writes one change, either into a
//! log entry or into the database, with the same statement. [`apply_all`] executes a flush in an
//! order that suits the trees. [`new_rows`] checks the insertion rules of the schema once per
//! flush.
//!
//! Insertions into tables with triggers say `OR FAIL`: SQLite then keeps no copy of each page for
//! undoing one statement. Only whole flushes are undone.

mod account_names;
mod accounts;
mod api_keys;
mod assets;
mod audit_log;
mod balances;
mod cell;
mod charges;
mod claims;
pub(crate) mod commits;
mod cursors;
pub(crate) mod entries;
mod holds;
mod journal;
pub(crate) mod meta;
pub(crate) mod new_rows;
mod operations;
pub(crate) mod outbox;
pub(crate) mod owners;
mod payouts;
mod reversals;
mod row_writer;
mod slots;
mod snapshots;
mod tenants;
mod write;

pub(crate) use row_writer::RowWriter;
use row_writer::{Insertions, ROWS_PER_INSERT};
pub(crate) use write::{Origin, Write};

use crate::key_index::Partition;
use counterfoil_core::types::id::{SubjectId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::time::Time;
use counterfoil_store::{Due, Position, Row, RowKey, Scan};
use rusqlite::{Connection, Error, Result};

/// The row of `key`; none if there is no such row, or if another tenant owns it.
pub(crate) fn load(db: &Connection, key: &RowKey) -> Result<Option<Row>> {
    let row = match key {
        RowKey::Claim(_, id) => claims::load(db, *id)?.map(Row::Claim),
        RowKey::Charge(_, id) => charges::load(db, *id)?.map(Row::Charge),
        RowKey::Operation(_, id) => operations::load(db, *id)?.map(Row::Operation),
        RowKey::Payout(_, id) => payouts::load(db, *id)?.map(Row::Payout),
        RowKey::Outbox(_, id) => outbox::load(db, *id)?.map(Row::Outbox),
        RowKey::Audit(_, subject, id) => audit_log::load(db, *subject, *id)?.map(Row::Audit),
        RowKey::Tenant(name) => tenants::load(db, name)?.map(Row::Tenant),
        RowKey::ApiKey(digest) => api_keys::load(db, digest)?.map(Row::ApiKey),
        RowKey::Slot(number) => slots::load(db, *number)?.map(Row::Slot),
        RowKey::Account(_, id) => accounts::load(db, *id)?.map(Row::Account),
        RowKey::Name(tenant, code) => account_names::load(db, *tenant, code)?.map(Row::Name),
        RowKey::Asset(tenant, asset) => assets::load(db, *tenant, *asset)?.map(Row::Asset),
        RowKey::Balance(tenant, account, shard) => {
            balances::load(db, *tenant, *account, *shard)?.map(Row::Balance)
        }
        RowKey::Transaction(_, id) => journal::load(db, *id)?.map(Row::Transaction),
        RowKey::Reversal(tenant, original) => reversals::load(db, *tenant, *original)?.map(Row::Reversal),
        RowKey::Hold(_, id) => holds::load(db, *id)?.map(Row::Hold),
        RowKey::Snapshot(tenant, account, position) => {
            snapshots::load(db, *tenant, *account, *position)?.map(Row::Snapshot)
        }
        RowKey::Cursor(reader) => cursors::load(db, *reader)?.map(Row::Cursor),
    };
    Ok(row.filter(|row| row.key() == *key))
}

/// Whether another tenant has a row with this number. The tables key rows by numbers alone.
pub(crate) fn is_of_another_tenant(db: &Connection, key: &RowKey) -> Result<bool> {
    match (key, key.tenant()) {
        // The digest of a claim includes the tenant.
        (RowKey::Claim(..), _) | (_, None) => Ok(false),
        (_, Some(tenant)) => Ok(owners::of_row(db, key)?.is_some_and(|owner| owner != tenant)),
    }
}

/// Writes one judged change.
pub(crate) fn apply(to: &mut RowWriter<'_>, write: &Write) -> Result<()> {
    match write {
        Write::Insert(row, origin) => insert(to, row, *origin),
        Write::Replace(row) => replace(to, row),
        Write::Reuse(row, left, partition) => reuse(to, row, *left, *partition),
        Write::Remove(row) => remove(to, row),
        Write::Commit(receipt, set, touched) => commits::insert(to, *receipt, *set, touched),
    }
}

/// Executes a flush: first updates, removals and rare insertions, then the frequent insertions
/// table by table, many rows per statement.
///
/// A flush inserts a row at most once, in its last version, so earlier updates concern other rows.
/// Rows are sorted by key, so that trees grow at their right edge. Entries are sorted by account,
/// because in any other order each would touch its own page of the index by account. Claims are
/// inserted one by one: SQLite copies every page that a statement for several rows of a rowid table
/// touches, and each claim touches its own page of the key index.
pub(crate) fn apply_all<'a>(db: &Connection, writes: impl Iterator<Item = &'a Write>) -> Result<()> {
    let (mut claims, mut charges) = (Vec::new(), Vec::new());
    let (mut posted, mut records, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    let mut to = RowWriter::Executing(db);
    for write in writes {
        match write {
            Write::Insert(row, origin) => match &**row {
                Row::Claim(claim) => claims.push((claim, origin.partition)),
                Row::Charge(charge) => charges.push(charge),
                Row::Transaction(transaction) => posted.push((transaction, origin.receipt)),
                Row::Audit(record) => records.push(record),
                _ => insert(&mut to, row, *origin)?,
            },
            Write::Commit(..) => commits.push(write),
            Write::Replace(_) | Write::Reuse(..) | Write::Remove(_) => apply(&mut to, write)?,
        }
    }
    claims.sort_unstable_by_key(|(claim, _)| claim.subject);
    charges.sort_unstable_by_key(|charge| charge.id);
    posted.sort_unstable_by_key(|(transaction, _)| transaction.id);
    records.sort_unstable_by_key(|record| (record.subject, record.id));
    let mut to = RowWriter::Inserting(Insertions::one_by_one(db));
    claims.iter().try_for_each(|(claim, partition)| claims::insert(&mut to, claim, *partition))?;
    insert_many(db, &charges, |to, charge| charges::insert(to, charge))?;
    let legs = posted.iter().flat_map(|(transaction, receipt)| journal::entries(transaction, *receipt));
    let mut legs: Vec<journal::Entry<'_>> = legs.collect();
    legs.sort_unstable_by_key(journal::Entry::place);
    insert_many(db, &legs, |to, entry| entry.insert(to))?;
    insert_many(db, &posted, |to, (transaction, receipt)| journal::close(to, transaction, *receipt))?;
    insert_many(db, &records, |to, record| audit_log::insert(to, record))?;
    insert_many(db, &commits, |to, write| apply(to, write))
}

/// Inserts rows into one table, many per statement.
fn insert_many<T>(
    db: &Connection,
    rows: &[T],
    insert: impl Fn(&mut RowWriter<'_>, &T) -> Result<()>,
) -> Result<()> {
    let (whole, rest) = rows.as_chunks::<ROWS_PER_INSERT>();
    let mut to = RowWriter::Inserting(Insertions::many_per_statement(db));
    whole.as_flattened().iter().try_for_each(|row| insert(&mut to, row))?;
    let mut to = RowWriter::Executing(db);
    rest.iter().try_for_each(|row| insert(&mut to, row))
}

fn insert(to: &mut RowWriter<'_>, row: &Row, origin: Origin) -> Result<()> {
    match row {
        Row::Claim(claim) => claims::insert(to, claim, origin.partition),
        Row::Charge(charge) => charges::insert(to, charge),
        Row::Operation(operation) => operations::insert(to, operation),
        Row::Payout(payout) => payouts::insert(to, payout),
        Row::Outbox(outbox) => outbox::insert(to, outbox),
        Row::Audit(record) => audit_log::insert(to, record),
        Row::Tenant(tenant) => tenants::insert(to, tenant),
        Row::ApiKey(key) => api_keys::insert(to, key),
        Row::Slot(slot) => slots::insert(to, slot),
        Row::Account(account) => accounts::insert(to, account),
        Row::Name(name) => account_names::insert(to, name),
        Row::Asset(definition) => assets::insert(to, definition),
        Row::Balance(balance) => balances::insert(to, balance),
        Row::Transaction(transaction) => journal::insert(to, transaction, origin.receipt),
        Row::Reversal(reversal) => reversals::insert(to, reversal),
        Row::Hold(hold) => holds::insert(to, hold),
        Row::Snapshot(snapshot) => snapshots::insert(to, snapshot),
        Row::Cursor(cursor) => cursors::insert(to, cursor),
    }
}

fn replace(to: &mut RowWriter<'_>, row: &Row) -> Result<()> {
    match row {
        Row::Claim(claim) => claims::replace(to, claim),
        Row::Charge(charge) => charges::replace(to, charge),
        Row::Operation(operation) => operations::replace(to, operation),
        Row::Payout(payout) => payouts::replace(to, payout),
        Row::Outbox(outbox) => outbox::replace(to, outbox),
        Row::Tenant(tenant) => tenants::replace(to, tenant),
        Row::ApiKey(key) => api_keys::replace(to, key),
        Row::Slot(slot) => slots::replace(to, slot),
        Row::Account(account) => accounts::replace(to, account),
        Row::Hold(hold) => holds::replace(to, hold),
        Row::Balance(balance) => balances::replace(to, balance),
        Row::Cursor(cursor) => cursors::replace(to, cursor),
        // The judge refuses to replace these rows.
        Row::Audit(_)
        | Row::Name(_)
        | Row::Asset(_)
        | Row::Transaction(_)
        | Row::Reversal(_)
        | Row::Snapshot(_) => Err(Error::StatementChangedRows(0)),
    }
}

/// Replaces an expired claim by one for a new request under the same key.
fn reuse(to: &mut RowWriter<'_>, row: &Row, left: SubjectId, partition: Partition) -> Result<()> {
    match row {
        Row::Claim(claim) => claims::reuse(to, claim, left, partition),
        // Only claims are reused.
        _ => Err(Error::StatementChangedRows(0)),
    }
}

fn remove(to: &mut RowWriter<'_>, row: &Row) -> Result<()> {
    match row {
        Row::Claim(claim) => claims::remove(to, claim),
        Row::Outbox(outbox) => outbox::remove(to, outbox.id),
        Row::Snapshot(snapshot) => snapshots::remove(to, snapshot.account, snapshot.position),
        // The judge refuses to remove these rows.
        Row::Charge(_)
        | Row::Operation(_)
        | Row::Payout(_)
        | Row::Audit(_)
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
        | Row::Cursor(_) => Err(Error::StatementChangedRows(0)),
    }
}

/// The rows of a range.
pub(crate) fn scan(db: &Connection, scan: &Scan) -> Result<Vec<Row>> {
    Ok(match scan {
        Scan::ChargesOf { tenant, before, limit } => {
            rows(charges::of_tenant(db, *tenant, *before, bound(*limit))?)
        }
        Scan::Timeline { tenant, subject, after, limit } => {
            let mut records = audit_log::timeline(db, *subject, *after, bound(*limit))?;
            records.retain(|record| record.tenant == *tenant);
            rows(records)
        }
        Scan::Claims { after, limit } => {
            rows(claims::after(db, after.map(|(.., subject)| subject), bound(*limit))?)
        }
        Scan::Charges { after, limit } => rows(charges::after(db, id(*after), bound(*limit))?),
        Scan::OperationsOn { tenant, charge, after, limit } => {
            let mut operations = operations::on_charge(db, *charge, *after, bound(*limit))?;
            operations.retain(|operation| operation.tenant == *tenant);
            rows(operations)
        }
        Scan::RefundsOf { tenant, before, limit } => {
            rows(operations::refunds_of(db, *tenant, *before, bound(*limit))?)
        }
        Scan::Operations { after, limit } => rows(operations::after(db, id(*after), bound(*limit))?),
        Scan::PayoutsOf { tenant, before, limit } => {
            rows(payouts::of_tenant(db, *tenant, *before, bound(*limit))?)
        }
        Scan::Payouts { after, limit } => rows(payouts::after(db, id(*after), bound(*limit))?),
        Scan::Outbox { after, limit } => rows(outbox::after(db, id(*after), bound(*limit))?),
        Scan::DoubtOn { payment, limit } => rows(outbox::doubt_on(db, *payment, bound(*limit))?),
        Scan::ParkedOf { tenant, before, limit } => {
            rows(outbox::parked_of(db, *tenant, *before, bound(*limit))?)
        }
        Scan::AccountsOf { tenant, before, limit } => {
            rows(accounts::of_tenant(db, *tenant, *before, bound(*limit))?)
        }
        Scan::AssetsOf { tenant } => rows(assets::of_tenant(db, *tenant)?),
        Scan::TransactionsOf { tenant, before, limit } => {
            rows(journal::of_tenant(db, *tenant, *before, bound(*limit))?)
        }
        Scan::Snapshots { tenant, account, upto, limit } => {
            rows(snapshots::upto(db, *tenant, *account, *upto, bound(*limit))?)
        }
        Scan::Accounts { after, limit } => rows(accounts::after(db, id(*after), bound(*limit))?),
        Scan::Transactions { after, limit } => rows(journal::after(db, id(*after), bound(*limit))?),
        Scan::Balances { after, limit } => {
            rows(balances::after(db, after.map(|(_, account, shard)| (account, shard)), bound(*limit))?)
        }
        Scan::Holds { after, limit } => rows(holds::after(db, id(*after), bound(*limit))?),
        Scan::Tenants => rows(tenants::all(db)?),
        Scan::ApiKeys => rows(api_keys::all(db)?),
        Scan::Slots => rows(slots::all(db)?),
    })
}

/// The id of a scan's cursor. Ids are unique across tenants, so the tables need no more.
fn id<T>(after: Option<(TenantId, T)>) -> Option<T> {
    after.map(|(_, id)| id)
}

/// Rows that are due, most overdue first.
pub(crate) fn due(db: &Connection, due: Due, now: Time, limit: usize) -> Result<Vec<Row>> {
    Ok(match due {
        Due::Outbox => rows(outbox::due(db, now, bound(limit))?),
        Due::Claims => rows(claims::due(db, now, bound(limit))?),
        Due::Holds => rows(holds::due(db, now, bound(limit))?),
    })
}

/// A caller's limit for SQLite, capped at the bound of scans.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit.min(SCAN_MAX)).unwrap_or(0)
}

fn rows<T: Into<Row>>(items: Vec<T>) -> Vec<Row> {
    items.into_iter().map(Into::into).collect()
}

/// A position for SQLite; positions never exceed `i64::MAX`.
fn to_i64(position: Position) -> i64 {
    i64::try_from(position.0).unwrap_or(i64::MAX)
}
