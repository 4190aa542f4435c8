//! The one way rows are written: first noted in the script of their group, later executed by the database. Both go through
//! the same statements, so a script and the database cannot mean different things.

use crate::redo::Script;
use rusqlite::{CachedStatement, Connection, Error, Result, ToSql};

/// Rows that are inserted with one statement. It opens its trees once for all of them.
pub(super) const TOGETHER: usize = 16;

/// Writes rows.
pub(crate) enum Pen<'a> {
    /// Into the script of a group.
    Noting(&'a mut Script),
    /// Into the database, one by one.
    Executing(&'a Connection),
    /// Into one table of the database, with one statement for all or for so many as stand together.
    Inserting(Rows<'a>),
}

impl Pen<'_> {
    /// Changes one row; executed, it fails if that row is not where the judge saw it.
    pub(super) fn write(&mut self, sql: &'static str, values: &[&dyn ToSql]) -> Result<()> {
        match self {
            Pen::Noting(script) => script.note(sql, values),
            Pen::Executing(db) => changes(1, db.prepare_cached(sql)?.execute(values)?),
            Pen::Inserting(rows) => rows.insert(sql, values),
        }
    }
}

/// Insertions of one kind that wait for each other.
pub(crate) struct Rows<'a> {
    db: &'a Connection,
    statement: Option<CachedStatement<'a>>,
    /// How many stand together.
    at_once: usize,
    /// Values that are bound.
    bound: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn together(db: &'a Connection) -> Rows<'a> {
        Rows { db, statement: None, at_once: TOGETHER, bound: 0 }
    }

    pub(super) fn one_by_one(db: &'a Connection) -> Rows<'a> {
        Rows { db, statement: None, at_once: 1, bound: 0 }
    }

    fn insert(&mut self, sql: &'static str, values: &[&dyn ToSql]) -> Result<()> {
        let statement = match &mut self.statement {
            Some(statement) => statement,
            none => none.insert(self.db.prepare_cached(&insertion(sql, values.len(), self.at_once))?),
        };
        for value in values {
            self.bound = self.bound.saturating_add(1);
            statement.raw_bind_parameter(self.bound, value)?;
        }
        if self.bound < values.len().saturating_mul(self.at_once) {
            return Ok(());
        }
        self.bound = 0;
        changes(self.at_once, statement.raw_execute()?)
    }
}

fn changes(expected: usize, found: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::StatementChangedRows(found)) }
}

/// The insertion of one row, for many.
fn insertion(sql: &str, values: usize, rows: usize) -> String {
    let head = sql.split_once(" VALUES ").map_or(sql, |(head, _)| head);
    let row = format!("({})", vec!["?"; values].join(", "));
    format!("{head} VALUES {}", vec![row.as_str(); rows].join(", "))
}
