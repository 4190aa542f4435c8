//! Worker slots, keyed by number.

use super::{RowWriter, cell};
use counterfoil_core::types::id::Slot;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

const BY_NUMBER: &str = "SELECT number, epoch, lease_until, revision FROM slots WHERE number = ?1";
const ALL: &str = "SELECT number, epoch, lease_until, revision FROM slots ORDER BY number";
const INSERT: &str = "INSERT INTO slots (number, epoch, lease_until, revision) VALUES (?1, ?2, ?3, ?4)";
const UPDATE: &str = "UPDATE slots SET epoch = ?2, lease_until = ?3, revision = ?4 WHERE number = ?1";

pub(super) fn load(db: &Connection, number: u16) -> Result<Option<Slot>> {
    db.prepare_cached(BY_NUMBER)?.query_row([number], read).optional()
}

pub(super) fn all(db: &Connection) -> Result<Vec<Slot>> {
    db.prepare_cached(ALL)?.query_map([], read)?.collect()
}

pub(super) fn insert(to: &mut RowWriter<'_>, slot: &Slot) -> Result<()> {
    write_whole(to, INSERT, slot)
}

pub(super) fn replace(to: &mut RowWriter<'_>, slot: &Slot) -> Result<()> {
    write_whole(to, UPDATE, slot)
}

fn write_whole(to: &mut RowWriter<'_>, sql: &'static str, slot: &Slot) -> Result<()> {
    to.write(sql, params![slot.number, slot.epoch, slot.lease_until.ms(), slot.revision,])
}

fn read(row: &Row<'_>) -> Result<Slot> {
    Ok(Slot {
        number: row.get(0)?,
        epoch: row.get(1)?,
        lease_until: cell::time(row, 2)?,
        revision: row.get(3)?,
    })
}
