//! One module per table: its statements, and how a row of it is written and read. Nothing here decides anything.

pub(crate) mod api_keys;
pub(crate) mod audit_log;
mod cell;
pub(crate) mod charges;
pub(crate) mod claims;
pub(crate) mod commits;
pub(crate) mod meta;
pub(crate) mod outbox;
pub(crate) mod slots;
pub(crate) mod tenants;

use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::time::Time;
use counterfoil_store::{Change, Due, Row, RowKey, Scan};
use rusqlite::{Connection, Error, Result};

/// The row of `key`.
pub(crate) fn load(db: &Connection, key: &RowKey) -> Result<Option<Row>> {
    Ok(match key {
        RowKey::Claim(id) => claims::load(db, *id)?.map(Row::Claim),
        RowKey::Charge(id) => charges::load(db, *id)?.map(Row::Charge),
        RowKey::Outbox(charge) => outbox::load(db, *charge)?.map(Row::Outbox),
        RowKey::Audit(subject, id) => audit_log::load(db, *subject, *id)?.map(Row::Audit),
        RowKey::Tenant(name) => tenants::load(db, name)?.map(Row::Tenant),
        RowKey::ApiKey(digest) => api_keys::load(db, digest)?.map(Row::ApiKey),
        RowKey::Slot(number) => slots::load(db, *number)?.map(Row::Slot),
    })
}

/// Writes a change that was judged; it fails if the row is not where the judge saw it.
pub(crate) fn apply(db: &Connection, change: &Change) -> Result<()> {
    match change {
        Change::Insert(row) => match &**row {
            Row::Claim(claim) => claims::insert(db, claim),
            Row::Charge(charge) => charges::insert(db, charge),
            Row::Outbox(outbox) => outbox::insert(db, outbox),
            Row::Audit(record) => audit_log::insert(db, record),
            Row::Tenant(tenant) => tenants::insert(db, tenant),
            Row::ApiKey(key) => api_keys::insert(db, key),
            Row::Slot(slot) => slots::insert(db, slot),
        },
        Change::Replace { row, .. } => match &**row {
            Row::Claim(claim) => claims::replace(db, claim),
            Row::Charge(charge) => charges::replace(db, charge),
            Row::Outbox(outbox) => outbox::replace(db, outbox),
            // The judge lets nothing replace an audit record.
            Row::Audit(_) => Err(Error::StatementChangedRows(0)),
            Row::Tenant(tenant) => tenants::replace(db, tenant),
            Row::ApiKey(key) => api_keys::replace(db, key),
            Row::Slot(slot) => slots::replace(db, slot),
        },
        Change::Remove { key, .. } => match key {
            RowKey::Claim(id) => claims::remove(db, *id),
            RowKey::Outbox(charge) => outbox::remove(db, *charge),
            // The judge lets nothing else be removed.
            RowKey::Charge(_)
            | RowKey::Audit(..)
            | RowKey::Tenant(_)
            | RowKey::ApiKey(_)
            | RowKey::Slot(_) => Err(Error::StatementChangedRows(0)),
        },
    }
}

/// A range of rows.
pub(crate) fn scan(db: &Connection, scan: &Scan) -> Result<Vec<Row>> {
    Ok(match scan {
        Scan::ChargesOf { tenant, before, limit } => {
            rows(charges::of_tenant(db, *tenant, *before, bound(*limit))?)
        }
        Scan::Timeline { charge, after, limit } => {
            rows(audit_log::timeline(db, *charge, *after, bound(*limit))?)
        }
        Scan::Claims { after, limit } => rows(claims::after(db, *after, bound(*limit))?),
        Scan::Charges { after, limit } => rows(charges::after(db, *after, bound(*limit))?),
        Scan::Outbox { after, limit } => rows(outbox::after(db, *after, bound(*limit))?),
        Scan::Tenants => rows(tenants::all(db)?),
        Scan::ApiKeys => rows(api_keys::all(db)?),
        Scan::Slots => rows(slots::all(db)?),
    })
}

/// Rows whose time has come, most overdue first.
pub(crate) fn due(db: &Connection, due: Due, now: Time, limit: usize) -> Result<Vec<Row>> {
    Ok(match due {
        Due::Outbox => rows(outbox::due(db, now, bound(limit))?),
        Due::Claims => rows(claims::due(db, now, bound(limit))?),
    })
}

/// A caller's limit, as SQLite takes it and never above the bound of scans.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit.min(SCAN_MAX)).unwrap_or(0)
}

fn rows<T: Into<Row>>(items: Vec<T>) -> Vec<Row> {
    items.into_iter().map(Into::into).collect()
}

fn one_row(changed: usize) -> Result<()> {
    if changed == 1 { Ok(()) } else { Err(Error::StatementChangedRows(changed)) }
}
