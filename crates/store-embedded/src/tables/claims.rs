//! The idempotency records, keyed by the sequential id of the resource that the claim makes.
//!
//! The random digest of the key is only in an index, so large answers never pass through a tree in
//! random order. The index is partitioned by arrival.

use super::{RowWriter, cell};
use crate::key_index::Partition;
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Custody, Lease, Resource, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::types::id::{Holder, SubjectId};
use counterfoil_core::types::time::Time;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, ToSql, params};

macro_rules! columns {
    () => {
        "subject, id, tenant, fingerprint, request, created_at, fence, revision, attempts, state, holder, \
         lease_until, lease_ceiling, not_before, replay_until, tombstone_until, status, media, location, body, makes"
    };
}

/// A key has one record, in any partition.
const BY_ID: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM claim_partitions CROSS JOIN claims ON claims.partition = claim_partitions.partition WHERE id = ?1 LIMIT 1"
);
const AFTER: &str =
    concat!("SELECT ", columns!(), " FROM claims WHERE subject > ?1 ORDER BY subject LIMIT ?2");
const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM claims WHERE sweep_at IS NOT NULL AND sweep_at <= ?1 ORDER BY sweep_at LIMIT ?2"
);
const INSERT: &str = concat!(
    "INSERT OR FAIL INTO claims (",
    columns!(),
    ", sweep_at, partition) VALUES \
     (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)"
);
/// The id is left out, so that its index is not touched. The other missing columns never change.
const UPDATE: &str = "UPDATE OR FAIL claims SET request = ?3, fence = ?4, revision = ?5, attempts = ?6, state = ?7, \
    holder = ?8, lease_until = ?9, lease_ceiling = ?10, not_before = ?11, replay_until = ?12, \
    tombstone_until = ?13, status = ?14, media = ?15, location = ?16, body = ?17, sweep_at = ?18 \
    WHERE subject = ?1 AND id = ?2";
/// A reused key: the row moves to its new subject and to the youngest partition.
const REUSE: &str = "UPDATE OR FAIL claims SET subject = ?1, tenant = ?3, fingerprint = ?4, request = ?5, created_at = ?6, \
    fence = ?7, revision = ?8, attempts = ?9, state = ?10, holder = ?11, lease_until = ?12, lease_ceiling = ?13, \
    not_before = ?14, replay_until = ?15, tombstone_until = ?16, status = ?17, media = ?18, location = ?19, \
    body = ?20, makes = ?21, sweep_at = ?22, partition = ?23 WHERE subject = ?24 AND id = ?2";

pub(crate) fn load(db: &Connection, id: ClaimId) -> Result<Option<Claim>> {
    db.prepare_cached(BY_ID)?.query_row([id.digest().as_bytes()], read).optional()
}

pub(super) fn after(db: &Connection, after: Option<SubjectId>, limit: i64) -> Result<Vec<Claim>> {
    let mut statement = db.prepare_cached(AFTER)?;
    let after = after.map_or(i64::MIN, SubjectId::to_i64);
    statement.query_map(params![after, limit], read)?.collect()
}

pub(super) fn due(db: &Connection, now: Time, limit: i64) -> Result<Vec<Claim>> {
    let mut statement = db.prepare_cached(DUE)?;
    statement.query_map(params![now.ms(), limit], read)?.collect()
}

pub(super) fn insert(to: &mut RowWriter<'_>, claim: &Claim, partition: Partition) -> Result<()> {
    write_whole(to, INSERT, claim, &[&partition.number()])
}

pub(super) fn replace(to: &mut RowWriter<'_>, claim: &Claim) -> Result<()> {
    let cells = Cells::of(&claim.state);
    to.write(
        UPDATE,
        params![
            claim.subject.to_i64(),
            claim.id.digest().as_bytes(),
            claim.request.to_bytes(),
            claim.fence,
            claim.revision,
            claim.attempts,
            claim.state.name(),
            cells.holder,
            cells.lease_until,
            cells.lease_ceiling,
            cells.not_before,
            cells.replay_until,
            cells.tombstone_until,
            cells.status,
            cells.media,
            cells.location,
            cells.body,
            claim.sweep_at().map(Time::ms),
        ],
    )
}

pub(super) fn reuse(
    to: &mut RowWriter<'_>,
    claim: &Claim,
    left: SubjectId,
    partition: Partition,
) -> Result<()> {
    write_whole(to, REUSE, claim, &[&partition.number(), &left.to_i64()])
}

pub(super) fn remove(to: &mut RowWriter<'_>, claim: &Claim) -> Result<()> {
    let place = params![claim.subject.to_i64(), claim.id.digest().as_bytes()];
    to.write("DELETE FROM claims WHERE subject = ?1 AND id = ?2", place)
}

/// Writes all columns of a claim, then `more`.
fn write_whole(to: &mut RowWriter<'_>, sql: &'static str, claim: &Claim, more: &[&dyn ToSql]) -> Result<()> {
    let cells = Cells::of(&claim.state);
    let claim: &[&dyn ToSql] = params![
        claim.subject.to_i64(),
        claim.id.digest().as_bytes(),
        claim.tenant.to_i64(),
        claim.fingerprint.digest().as_bytes(),
        claim.request.to_bytes(),
        claim.created_at.ms(),
        claim.fence,
        claim.revision,
        claim.attempts,
        claim.state.name(),
        cells.holder,
        cells.lease_until,
        cells.lease_ceiling,
        cells.not_before,
        cells.replay_until,
        cells.tombstone_until,
        cells.status,
        cells.media,
        cells.location,
        cells.body,
        claim.makes.name(),
        claim.sweep_at().map(Time::ms),
    ];
    to.write(sql, &[claim, more].concat())
}

/// Columns of some states only.
#[derive(Default)]
struct Cells<'a> {
    holder: Option<i64>,
    lease_until: Option<i64>,
    lease_ceiling: Option<i64>,
    not_before: Option<i64>,
    replay_until: Option<i64>,
    tombstone_until: Option<i64>,
    status: Option<u16>,
    media: Option<&'static str>,
    location: Option<&'a str>,
    body: Option<&'a [u8]>,
}

impl Cells<'_> {
    fn of(state: &ClaimState) -> Cells<'_> {
        match state {
            ClaimState::InFlight(lease) | ClaimState::Uncertain(Custody::Held(lease)) => Cells {
                holder: Some(lease.holder.to_i64()),
                lease_until: Some(lease.until.ms()),
                lease_ceiling: Some(lease.ceiling.ms()),
                ..Cells::default()
            },
            ClaimState::FailedRetry { not_before }
            | ClaimState::Uncertain(Custody::Waiting { not_before }) => {
                Cells { not_before: Some(not_before.ms()), ..Cells::default() }
            }
            ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) => Cells {
                replay_until: Some(settled.windows.replay_until.ms()),
                tombstone_until: Some(settled.windows.tombstone_until.ms()),
                status: Some(settled.reply.status),
                media: Some(settled.reply.media.name()),
                location: settled.reply.location.as_deref(),
                body: Some(&settled.reply.body),
                ..Cells::default()
            },
            ClaimState::Expired { tombstone_until } => {
                Cells { tombstone_until: Some(tombstone_until.ms()), ..Cells::default() }
            }
        }
    }
}

pub(super) fn read(row: &Row<'_>) -> Result<Claim> {
    Ok(Claim {
        subject: cell::subject(row, 0)?,
        makes: cell::word(row, 20, Resource::parse)?,
        id: ClaimId::from_digest(cell::digest(row, 1)?),
        tenant: cell::tenant(row, 2)?,
        fingerprint: Fingerprint::from_digest(cell::digest(row, 3)?),
        request: cell::ulid(row, 4)?,
        created_at: cell::time(row, 5)?,
        fence: row.get(6)?,
        revision: row.get(7)?,
        attempts: row.get(8)?,
        state: read_state(row)?,
    })
}

fn read_state(row: &Row<'_>) -> Result<ClaimState> {
    let name = row.get_ref(9)?.as_str().unwrap_or_default();
    Ok(match name {
        "in_flight" => ClaimState::InFlight(read_lease(row)?),
        "failed_retry" => ClaimState::FailedRetry { not_before: cell::time(row, 13)? },
        "uncertain" if row.get_ref(10)?.data_type() == Type::Null => {
            ClaimState::Uncertain(Custody::Waiting { not_before: cell::time(row, 13)? })
        }
        "uncertain" => ClaimState::Uncertain(Custody::Held(read_lease(row)?)),
        "completed" => ClaimState::Completed(read_settled(row)?),
        "failed_terminal" => ClaimState::FailedTerminal(read_settled(row)?),
        "expired" => ClaimState::Expired { tombstone_until: cell::time(row, 15)? },
        _ => return Err(cell::damaged(9, Type::Text)),
    })
}

fn read_lease(row: &Row<'_>) -> Result<Lease> {
    Ok(Lease {
        holder: Holder::from_i64(row.get(10)?),
        until: cell::time(row, 11)?,
        ceiling: cell::time(row, 12)?,
    })
}

fn read_settled(row: &Row<'_>) -> Result<Settled> {
    Ok(Settled {
        reply: Reply {
            status: row.get(16)?,
            media: cell::word(row, 17, ReplyMedia::parse)?,
            location: row.get(18)?,
            body: row.get::<_, Vec<u8>>(19)?.into(),
        },
        windows: Windows { replay_until: cell::time(row, 14)?, tombstone_until: cell::time(row, 15)? },
    })
}
