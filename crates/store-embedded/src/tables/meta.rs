//! Facts of the store: its secret, the digest of its schema, the clock's anchor, the current
//! lineage.

use crate::clock::Anchor;
use crate::log::Lineage;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::mask::Masked;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Result, ToSql, params};

const GET: &str = "SELECT value FROM meta WHERE key = ?1";
const PUT: &str =
    "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";

pub(crate) fn secret(db: &Connection) -> Result<Masked<[u8; 32]>> {
    db.query_row(GET, ["secret"], |row| row.get(0)).map(Masked::new)
}

/// The clock's anchor; none before the first opening is complete.
pub(crate) fn anchor(db: &Connection) -> Result<Option<Anchor>> {
    let (Some(boottime_ms), Some(store_ms)) = (get(db, "clock_boottime_ms")?, get(db, "clock_store_ms")?)
    else {
        return Ok(None);
    };
    Ok(Some(Anchor { boot_id: get(db, "clock_boot_id")?, boottime_ms, store_ms }))
}

/// The digest of the schema that the file was made with.
pub(crate) fn schema_digest(db: &Connection) -> Result<Option<Digest>> {
    get(db, "schema_digest").map(|found| found.map(Digest::from_bytes))
}

pub(crate) fn put_schema_digest(db: &Connection, digest: Digest) -> Result<()> {
    put(db, "schema_digest", digest.as_bytes())
}

/// The lineage of the log that belongs to this database; none before the first opening is complete.
pub(crate) fn lineage(db: &Connection) -> Result<Option<Lineage>> {
    get(db, "redo_lineage").map(|found| found.map(Lineage))
}

/// Begins an opening: stores the clock's anchor and a new lineage.
pub(crate) fn put_opening(db: &mut Connection, anchor: &Anchor, lineage: Lineage) -> Result<()> {
    let transaction = db.transaction()?;
    put(&transaction, "clock_boot_id", &anchor.boot_id.as_deref().unwrap_or(""))?;
    put(&transaction, "clock_boottime_ms", &anchor.boottime_ms)?;
    put(&transaction, "clock_store_ms", &anchor.store_ms)?;
    put(&transaction, "redo_lineage", &lineage.0)?;
    transaction.commit()
}

fn get<T: FromSql>(db: &Connection, key: &str) -> Result<Option<T>> {
    db.query_row(GET, [key], |row| row.get(0)).optional()
}

fn put(db: &Connection, key: &str, value: &dyn ToSql) -> Result<()> {
    db.execute(PUT, params![key, value]).map(|_| ())
}
