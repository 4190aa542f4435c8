//! The only way to write rows. A group's rows go into the log entry, and later into the database,
//! through the same statements, so that log and database cannot disagree.

use crate::log::LogEntry;
use rusqlite::{CachedStatement, Connection, Error, Result, ToSql};

/// Rows per insertion. SQLite opens the trees once for all of them.
pub(super) const ROWS_PER_INSERT: usize = 16;

/// The destination of rows.
pub(crate) enum RowWriter<'a> {
    /// The log entry of a group.
    Logging(&'a mut LogEntry),
    /// The database, row by row.
    Executing(&'a Connection),
    /// One table of the database, by one prepared insertion.
    Inserting(Insertions<'a>),
}

impl RowWriter<'_> {
    /// Writes one row. An execution fails unless exactly one row changes.
    pub(super) fn write(&mut self, sql: &'static str, values: &[&dyn ToSql]) -> Result<()> {
        match self {
            RowWriter::Logging(entry) => entry.push(sql, values),
            RowWriter::Executing(db) => expect_changes(1, db.prepare_cached(sql)?.execute(values)?),
            RowWriter::Inserting(rows) => rows.insert(sql, values),
        }
    }
}

/// Insertions into one table by one prepared statement.
pub(crate) struct Insertions<'a> {
    db: &'a Connection,
    statement: Option<CachedStatement<'a>>,
    rows_per_statement: usize,
    bound_values: usize,
}

impl<'a> Insertions<'a> {
    /// The caller inserts a multiple of [`ROWS_PER_INSERT`] rows.
    pub(super) fn many_per_statement(db: &'a Connection) -> Insertions<'a> {
        Insertions { db, statement: None, rows_per_statement: ROWS_PER_INSERT, bound_values: 0 }
    }

    pub(super) fn one_by_one(db: &'a Connection) -> Insertions<'a> {
        Insertions { db, statement: None, rows_per_statement: 1, bound_values: 0 }
    }

    fn insert(&mut self, sql: &'static str, values: &[&dyn ToSql]) -> Result<()> {
        let rows = self.rows_per_statement;
        let statement = match &mut self.statement {
            Some(statement) => statement,
            none => none.insert(self.db.prepare_cached(&insertion(sql, values.len(), rows))?),
        };
        for value in values {
            self.bound_values = self.bound_values.saturating_add(1);
            statement.raw_bind_parameter(self.bound_values, value)?;
        }
        if self.bound_values < values.len().saturating_mul(rows) {
            return Ok(());
        }
        self.bound_values = 0;
        expect_changes(rows, statement.raw_execute()?)
    }
}

fn expect_changes(expected: usize, found: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::StatementChangedRows(found)) }
}

/// Extends the insertion of one row to `rows` rows.
fn insertion(sql: &str, values: usize, rows: usize) -> String {
    let head = sql.split_once(" VALUES ").map_or(sql, |(head, _)| head);
    let row = format!("({})", vec!["?"; values].join(", "));
    format!("{head} VALUES {}", vec![row.as_str(); rows].join(", "))
}
