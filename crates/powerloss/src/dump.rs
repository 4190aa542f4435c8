//! Reads a database directly: SQLite's integrity check, and a digest of every row.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// The content of a database.
#[derive(Debug)]
pub(crate) struct Dump {
    /// A digest of all rows except those of `meta`, which each opening writes.
    pub(crate) digest: u64,
    /// Rows per table.
    pub(crate) counts: BTreeMap<String, usize>,
}

/// Reads everything, or returns the damage.
pub(crate) fn dump(dir: &Path) -> Result<Dump, String> {
    read(dir).map_err(|error| format!("the database cannot be read: {error}"))?
}

fn read(dir: &Path) -> rusqlite::Result<Result<Dump, String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(dir.join("counterfoil.db"), flags)?;
    let verdict: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Ok(Err(format!("SQLite finds damage: {verdict}")));
    }
    let mut tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut hasher = DefaultHasher::new();
    let mut counts = BTreeMap::new();
    for table in tables.into_iter().filter(|table| table != "meta") {
        let mut statement = db.prepare(&format!("SELECT * FROM {table}"))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            for column in 0..columns {
                digest(row.get_ref(column)?, &mut hasher);
            }
        }
        (&table, count).hash(&mut hasher);
        counts.insert(table, count);
    }
    Ok(Ok(Dump { digest: hasher.finish(), counts }))
}

fn digest(value: ValueRef<'_>, hasher: &mut DefaultHasher) {
    match value {
        ValueRef::Null => 0_u8.hash(hasher),
        ValueRef::Integer(number) => (1_u8, number).hash(hasher),
        // No column has this type.
        ValueRef::Real(number) => (2_u8, number.to_bits()).hash(hasher),
        ValueRef::Text(bytes) => (3_u8, bytes).hash(hasher),
        ValueRef::Blob(bytes) => (4_u8, bytes).hash(hasher),
    }
}
