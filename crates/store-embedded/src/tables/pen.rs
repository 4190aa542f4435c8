//! The one way rows are written: first noted in the script of their group, later executed by the database. Both go through
//! the same statements, so a script and the database cannot mean different things.

use crate::redo::Script;
use rusqlite::{Connection, Error, Result, ToSql};

/// Writes rows.
pub(crate) enum Pen<'a> {
    /// Into the script of a group.
    Noting(&'a mut Script),
    /// Into the database.
    Executing(&'a Connection),
}

impl Pen<'_> {
    /// Changes one row; executed, it fails if that row is not where the judge saw it.
    pub(super) fn write(&mut self, sql: &'static str, values: &[&dyn ToSql]) -> Result<()> {
        match self {
            Pen::Noting(script) => script.note(sql, values),
            Pen::Executing(db) => match db.prepare_cached(sql)?.execute(values)? {
                1 => Ok(()),
                other => Err(Error::StatementChangedRows(other)),
            },
        }
    }
}
