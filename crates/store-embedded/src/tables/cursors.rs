//! Positions of the readers of the feed.

use super::{RowWriter, cell};
use counterfoil_core::ledger::snapshot::{Cursor, FeedReader};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

const BY_READER: &str = "SELECT reader, position, at, revision FROM cursors WHERE reader = ?1";
const INSERT: &str = "INSERT INTO cursors (reader, position, at, revision) VALUES (?1, ?2, ?3, ?4)";
const UPDATE: &str = "UPDATE cursors SET position = ?2, at = ?3, revision = ?4 WHERE reader = ?1";

pub(super) fn load(db: &Connection, reader: FeedReader) -> Result<Option<Cursor>> {
    db.prepare_cached(BY_READER)?.query_row([reader.name()], read).optional()
}

pub(super) fn insert(to: &mut RowWriter<'_>, cursor: &Cursor) -> Result<()> {
    write_whole(to, INSERT, cursor)
}

pub(super) fn replace(to: &mut RowWriter<'_>, cursor: &Cursor) -> Result<()> {
    write_whole(to, UPDATE, cursor)
}

fn write_whole(to: &mut RowWriter<'_>, sql: &'static str, cursor: &Cursor) -> Result<()> {
    to.write(sql, params![cursor.reader.name(), cursor.position.0, cursor.at.ms(), cursor.revision,])
}

fn read(row: &Row<'_>) -> Result<Cursor> {
    Ok(Cursor {
        reader: cell::word(row, 0, FeedReader::parse)?,
        position: cell::position(row, 1)?,
        at: cell::time(row, 2)?,
        revision: row.get(3)?,
    })
}
