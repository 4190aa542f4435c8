//! Audit records, clustered by subject: a timeline is one range. Records are never rewritten.

use super::{RowWriter, cell};
use counterfoil_core::audit::{AuditKind, AuditRecord};
use counterfoil_core::types::id::SubjectId;
use counterfoil_core::types::ulid::Ulid;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

macro_rules! columns {
    () => {
        "subject, id, tenant, at, fence, kind, detail"
    };
}

const BY_KEY: &str = concat!("SELECT ", columns!(), " FROM audit_log WHERE subject = ?1 AND id = ?2");
/// The empty id sorts before all others: it reads from the beginning.
const TIMELINE: &str =
    concat!("SELECT ", columns!(), " FROM audit_log WHERE subject = ?1 AND id > ?2 ORDER BY id LIMIT ?3");
const INSERT: &str =
    concat!("INSERT OR FAIL INTO audit_log (", columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");

pub(super) fn load(db: &Connection, subject: SubjectId, id: Ulid) -> Result<Option<AuditRecord>> {
    db.prepare_cached(BY_KEY)?.query_row(params![subject.to_i64(), id.to_bytes()], read).optional()
}

pub(super) fn timeline(
    db: &Connection,
    subject: SubjectId,
    after: Option<Ulid>,
    limit: i64,
) -> Result<Vec<AuditRecord>> {
    let after = after.map(Ulid::to_bytes);
    let after = after.as_ref().map_or(&[][..], <[u8; 16]>::as_slice);
    db.prepare_cached(TIMELINE)?.query_map(params![subject.to_i64(), after, limit], read)?.collect()
}

pub(super) fn insert(to: &mut RowWriter<'_>, record: &AuditRecord) -> Result<()> {
    to.write(
        INSERT,
        params![
            record.subject.to_i64(),
            record.id.to_bytes(),
            record.tenant.to_i64(),
            record.at.ms(),
            record.fence,
            record.kind.name(),
            record.detail,
        ],
    )
}

fn read(row: &Row<'_>) -> Result<AuditRecord> {
    Ok(AuditRecord {
        subject: cell::subject(row, 0)?,
        id: cell::ulid(row, 1)?,
        tenant: cell::tenant(row, 2)?,
        at: cell::time(row, 3)?,
        fence: row.get(4)?,
        kind: cell::word(row, 5, AuditKind::parse)?,
        detail: row.get(6)?,
    })
}
