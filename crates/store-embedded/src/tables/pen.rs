//! The one way rows are written: into the database, and at once into the script of their group.

use crate::redo::Script;
use rusqlite::{Connection, Error, Result, ToSql};

/// Writes the rows of one group.
pub(crate) struct Pen<'a> {
    db: &'a Connection,
    script: &'a mut Script,
}

impl<'a> Pen<'a> {
    pub(crate) fn new(db: &'a Connection, script: &'a mut Script) -> Pen<'a> {
        Pen { db, script }
    }

    /// Changes one row; it fails if that row is not where the judge saw it.
    pub(super) fn write(&mut self, sql: &'static str, values: &[&dyn ToSql]) -> Result<()> {
        if self.try_write(sql, values)? { Ok(()) } else { Err(Error::StatementChangedRows(0)) }
    }

    /// Changes one row or none, and tells which.
    pub(super) fn try_write(&mut self, sql: &'static str, values: &[&dyn ToSql]) -> Result<bool> {
        match self.db.prepare_cached(sql)?.execute(values)? {
            0 => Ok(false),
            1 => self.script.note(sql, values).map(|()| true),
            more => Err(Error::StatementChangedRows(more)),
        }
    }
}
