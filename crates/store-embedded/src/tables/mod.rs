//! One module per table: its statements, and how a row of it is written and read. Nothing here decides anything.
//!
//! Insertions into tables with triggers say `OR FAIL`: it spares SQLite a copy of every page for the undoing of one
//! statement, which nobody needs, because a group is undone as a whole.

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
mod pen;
mod reversals;
mod slots;
mod snapshots;
mod tenants;
pub(crate) mod volumes;
mod write;

pub(crate) use pen::Pen;
use pen::{Rows, TOGETHER};
pub(crate) use write::{Origin, Write};

use counterfoil_core::types::id::{SubjectId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::time::Time;
use counterfoil_store::{Due, Position, Row, RowKey, Scan};
use rusqlite::{Connection, Error, Result};
use volumes::Volume;

/// The row of `key`; nothing if it is another tenant's.
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

/// Whether what was not found as this tenant's is another's: the tables know rows by their numbers alone.
pub(crate) fn is_anothers(db: &Connection, key: &RowKey) -> Result<bool> {
    match (key, key.tenant()) {
        // Its digest is made of the tenant's name.
        (RowKey::Claim(..), _) | (_, None) => Ok(false),
        (_, Some(tenant)) => Ok(owners::of_row(db, key)?.is_some_and(|owner| owner != tenant)),
    }
}

/// Writes a change that was judged.
pub(crate) fn apply(pen: &mut Pen<'_>, write: &Write) -> Result<()> {
    match write {
        Write::Insert(row, origin) => insert(pen, row, *origin),
        Write::Replace(row) => replace(pen, row),
        Write::Reuse(row, left, volume) => reuse(pen, row, *left, *volume),
        Write::Remove(row) => remove(pen, row),
        Write::Commit(receipt, set, touched) => commits::insert(pen, *receipt, *set, touched),
    }
}

/// Executes what many groups wrote: first what changes or removes rows, then what adds most of them, table by table, many rows
/// with one statement. A row is added once, and as it ended, so nothing that comes first is about it. Rows come in the order of their
/// keys, in which a tree only grows at its end; but the entries account by account: in any other order each would go to another page
/// of the index by account. Claims come one by one: a statement that adds several rows to a table with numbers for keys keeps a copy of
/// every page it touches, in case it must be undone, and each claim goes to another page of its volume's index.
pub(crate) fn apply_all<'a>(db: &Connection, writes: impl Iterator<Item = &'a Write>) -> Result<()> {
    let (mut claims, mut charges) = (Vec::new(), Vec::new());
    let (mut posted, mut records, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    let mut pen = Pen::Executing(db);
    for write in writes {
        match write {
            Write::Insert(row, origin) => match &**row {
                Row::Claim(claim) => claims.push((claim, origin.volume)),
                Row::Charge(charge) => charges.push(charge),
                Row::Transaction(transaction) => posted.push((transaction, origin.receipt)),
                Row::Audit(record) => records.push(record),
                _ => insert(&mut pen, row, *origin)?,
            },
            Write::Commit(..) => commits.push(write),
            Write::Replace(_) | Write::Reuse(..) | Write::Remove(_) => apply(&mut pen, write)?,
        }
    }
    claims.sort_unstable_by_key(|(claim, _)| claim.subject);
    charges.sort_unstable_by_key(|charge| charge.id);
    posted.sort_unstable_by_key(|(transaction, _)| transaction.id);
    records.sort_unstable_by_key(|record| (record.subject, record.id));
    let mut pen = Pen::Inserting(Rows::one_by_one(db));
    claims.iter().try_for_each(|(claim, volume)| claims::insert(&mut pen, claim, *volume))?;
    together(db, &charges, |pen, charge| charges::insert(pen, charge))?;
    let legs = posted.iter().flat_map(|(transaction, receipt)| journal::entries(transaction, *receipt));
    let mut legs: Vec<journal::Entry<'_>> = legs.collect();
    legs.sort_unstable_by_key(journal::Entry::place);
    together(db, &legs, |pen, entry| entry.insert(pen))?;
    together(db, &posted, |pen, (transaction, receipt)| journal::close(pen, transaction, *receipt))?;
    together(db, &records, |pen, record| audit_log::insert(pen, record))?;
    together(db, &commits, |pen, write| apply(pen, write))
}

/// Inserts rows into one table.
fn together<T>(db: &Connection, rows: &[T], insert: impl Fn(&mut Pen<'_>, &T) -> Result<()>) -> Result<()> {
    let (whole, rest) = rows.as_chunks::<TOGETHER>();
    let mut pen = Pen::Inserting(Rows::together(db));
    whole.as_flattened().iter().try_for_each(|row| insert(&mut pen, row))?;
    let mut pen = Pen::Executing(db);
    rest.iter().try_for_each(|row| insert(&mut pen, row))
}

fn insert(pen: &mut Pen<'_>, row: &Row, origin: Origin) -> Result<()> {
    match row {
        Row::Claim(claim) => claims::insert(pen, claim, origin.volume),
        Row::Charge(charge) => charges::insert(pen, charge),
        Row::Operation(operation) => operations::insert(pen, operation),
        Row::Payout(payout) => payouts::insert(pen, payout),
        Row::Outbox(outbox) => outbox::insert(pen, outbox),
        Row::Audit(record) => audit_log::insert(pen, record),
        Row::Tenant(tenant) => tenants::insert(pen, tenant),
        Row::ApiKey(key) => api_keys::insert(pen, key),
        Row::Slot(slot) => slots::insert(pen, slot),
        Row::Account(account) => accounts::insert(pen, account),
        Row::Name(name) => account_names::insert(pen, name),
        Row::Asset(definition) => assets::insert(pen, definition),
        Row::Balance(balance) => balances::insert(pen, balance),
        Row::Transaction(transaction) => journal::insert(pen, transaction, origin.receipt),
        Row::Reversal(reversal) => reversals::insert(pen, reversal),
        Row::Hold(hold) => holds::insert(pen, hold),
        Row::Snapshot(snapshot) => snapshots::insert(pen, snapshot),
        Row::Cursor(cursor) => cursors::insert(pen, cursor),
    }
}

fn replace(pen: &mut Pen<'_>, row: &Row) -> Result<()> {
    match row {
        Row::Claim(claim) => claims::replace(pen, claim),
        Row::Charge(charge) => charges::replace(pen, charge),
        Row::Operation(operation) => operations::replace(pen, operation),
        Row::Payout(payout) => payouts::replace(pen, payout),
        Row::Outbox(outbox) => outbox::replace(pen, outbox),
        Row::Tenant(tenant) => tenants::replace(pen, tenant),
        Row::ApiKey(key) => api_keys::replace(pen, key),
        Row::Slot(slot) => slots::replace(pen, slot),
        Row::Account(account) => accounts::replace(pen, account),
        Row::Hold(hold) => holds::replace(pen, hold),
        Row::Balance(balance) => balances::replace(pen, balance),
        Row::Cursor(cursor) => cursors::replace(pen, cursor),
        // The judge lets nothing replace these.
        Row::Audit(_)
        | Row::Name(_)
        | Row::Asset(_)
        | Row::Transaction(_)
        | Row::Reversal(_)
        | Row::Snapshot(_) => Err(Error::StatementChangedRows(0)),
    }
}

/// The key of a claim means a new request.
fn reuse(pen: &mut Pen<'_>, row: &Row, left: SubjectId, volume: Volume) -> Result<()> {
    match row {
        Row::Claim(claim) => claims::reuse(pen, claim, left, volume),
        // Nothing else is made anew under its key.
        _ => Err(Error::StatementChangedRows(0)),
    }
}

fn remove(pen: &mut Pen<'_>, row: &Row) -> Result<()> {
    match row {
        Row::Claim(claim) => claims::remove(pen, claim),
        Row::Outbox(outbox) => outbox::remove(pen, outbox.id),
        Row::Snapshot(snapshot) => snapshots::remove(pen, snapshot.account, snapshot.position),
        // The judge lets nothing else be removed.
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

/// A range of rows.
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

/// What the tables here go by: ids are unique over all tenants.
fn id<T>(after: Option<(TenantId, T)>) -> Option<T> {
    after.map(|(_, id)| id)
}

/// Rows whose time has come, most overdue first.
pub(crate) fn due(db: &Connection, due: Due, now: Time, limit: usize) -> Result<Vec<Row>> {
    Ok(match due {
        Due::Outbox => rows(outbox::due(db, now, bound(limit))?),
        Due::Claims => rows(claims::due(db, now, bound(limit))?),
        Due::Holds => rows(holds::due(db, now, bound(limit))?),
    })
}

/// A caller's limit, as SQLite takes it and never above the bound of scans.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit.min(SCAN_MAX)).unwrap_or(0)
}

fn rows<T: Into<Row>>(items: Vec<T>) -> Vec<Row> {
    items.into_iter().map(Into::into).collect()
}

/// A position as SQLite takes it. No commit has a higher one.
fn place(position: Position) -> i64 {
    i64::try_from(position.0).unwrap_or(i64::MAX)
}
