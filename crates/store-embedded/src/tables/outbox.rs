//! Outbox rows, keyed by the subject of the claim, with indexes of due, parked and doubtful work.

use super::{RowWriter, cell};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::outbox::{Flow, History, Outbox, ParkReason, Payment, ProviderBinding, Saga};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::types::id::{ChargeId, HoldId, PayoutId, SubjectId, TenantId};
use counterfoil_core::types::time::Time;
use counterfoil_store::{STUCK_AFTER, Tally};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

macro_rules! columns {
    () => {
        "id, charge, payout, flow, version, profile, endpoint, step, way, hold, claim, tenant, due_at, created_at, \
         generation, idle_calls, unknown, server_errors, first_sent_at, last_sent_at, parked, revision"
    };
}

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM outbox WHERE id = ?1");
const AFTER: &str = concat!("SELECT ", columns!(), " FROM outbox WHERE id > ?1 ORDER BY id LIMIT ?2");
const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM outbox WHERE parked IS NULL AND due_at <= ?1 ORDER BY due_at, id LIMIT ?2"
);
const DOUBT_ON_CHARGE: &str =
    concat!("SELECT ", columns!(), " FROM outbox WHERE charge = ?1 AND unknown = 1 ORDER BY id LIMIT ?2");
const DOUBT_ON_PAYOUT: &str =
    concat!("SELECT ", columns!(), " FROM outbox WHERE payout = ?1 AND unknown = 1 ORDER BY id LIMIT ?2");
const PARKED_OF: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM outbox WHERE tenant = ?1 AND parked IS NOT NULL ORDER BY id DESC LIMIT ?2"
);
const PARKED_OF_BEFORE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM outbox WHERE tenant = ?1 AND parked IS NOT NULL AND id < ?3 ORDER BY id DESC LIMIT ?2"
);
const INSERT: &str = concat!(
    "INSERT OR FAIL INTO outbox (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)"
);
/// The payment, the saga and the provider never change.
const UPDATE: &str = "UPDATE OR FAIL outbox SET step = ?2, way = ?3, hold = ?4, claim = ?5, tenant = ?6, \
    due_at = ?7, created_at = ?8, generation = ?9, idle_calls = ?10, unknown = ?11, server_errors = ?12, \
    first_sent_at = ?13, last_sent_at = ?14, parked = ?15, revision = ?16 WHERE id = ?1";
/// Counted in the two indexes alone.
const TALLY: &str = "SELECT (SELECT count(*) FROM outbox WHERE parked IS NULL), \
    (SELECT count(*) FROM outbox WHERE parked IS NOT NULL), \
    (SELECT count(*) FROM outbox WHERE parked IS NULL AND due_at < ?1), \
    (SELECT min(due_at) FROM outbox WHERE parked IS NULL)";

pub(super) fn load(db: &Connection, id: SubjectId) -> Result<Option<Outbox>> {
    db.prepare_cached(BY_ID)?.query_row([id.to_i64()], read).optional()
}

pub(super) fn after(db: &Connection, after: Option<SubjectId>, limit: i64) -> Result<Vec<Outbox>> {
    let mut statement = db.prepare_cached(AFTER)?;
    let after = after.map_or(i64::MIN, SubjectId::to_i64);
    statement.query_map(params![after, limit], read)?.collect()
}

pub(super) fn due(db: &Connection, now: Time, limit: i64) -> Result<Vec<Outbox>> {
    let mut statement = db.prepare_cached(DUE)?;
    statement.query_map(params![now.ms(), limit], read)?.collect()
}

pub(super) fn doubt_on(db: &Connection, payment: Payment, limit: i64) -> Result<Vec<Outbox>> {
    let (sql, id) = match payment {
        Payment::Charge(charge) => (DOUBT_ON_CHARGE, charge.to_i64()),
        Payment::Payout(payout) => (DOUBT_ON_PAYOUT, payout.to_i64()),
    };
    db.prepare_cached(sql)?.query_map([id, limit], read)?.collect()
}

pub(super) fn parked_of(
    db: &Connection,
    tenant: TenantId,
    before: Option<SubjectId>,
    limit: i64,
) -> Result<Vec<Outbox>> {
    match before {
        None => db.prepare_cached(PARKED_OF)?.query_map([tenant.to_i64(), limit], read)?.collect(),
        Some(before) => db
            .prepare_cached(PARKED_OF_BEFORE)?
            .query_map([tenant.to_i64(), limit, before.to_i64()], read)?
            .collect(),
    }
}

pub(crate) fn tally(db: &Connection, now: Time) -> Result<Tally> {
    db.prepare_cached(TALLY)?.query_row([now.minus(STUCK_AFTER).ms()], |row| {
        let first_due: Option<i64> = row.get(3)?;
        Ok(Tally {
            pending: row.get(0)?,
            parked: row.get(1)?,
            stuck: row.get(2)?,
            lag_ms: first_due.map_or(0, |due| now.since(Time::from_ms(due)).ms()),
        })
    })
}

pub(super) fn insert(to: &mut RowWriter<'_>, outbox: &Outbox) -> Result<()> {
    let Outbox { saga, history, .. } = outbox;
    let (charge, payout) = match outbox.payment {
        Payment::Charge(charge) => (Some(charge.to_i64()), None),
        Payment::Payout(payout) => (None, Some(payout.to_i64())),
    };
    to.write(
        INSERT,
        params![
            outbox.id.to_i64(),
            charge,
            payout,
            saga.flow.name(),
            saga.version,
            outbox.provider.profile,
            outbox.provider.endpoint,
            saga.progress.step,
            saga.progress.way.name(),
            outbox.hold.map(HoldId::to_i64),
            outbox.claim.digest().as_bytes(),
            outbox.tenant.to_i64(),
            outbox.due_at.ms(),
            outbox.created_at.ms(),
            history.generation,
            history.idle_calls,
            history.unknown,
            history.server_errors,
            history.first_sent_at.ms(),
            history.last_sent_at.ms(),
            outbox.parked.map(ParkReason::name),
            outbox.revision,
        ],
    )
}

pub(super) fn replace(to: &mut RowWriter<'_>, outbox: &Outbox) -> Result<()> {
    let Outbox { saga, history, .. } = outbox;
    to.write(
        UPDATE,
        params![
            outbox.id.to_i64(),
            saga.progress.step,
            saga.progress.way.name(),
            outbox.hold.map(HoldId::to_i64),
            outbox.claim.digest().as_bytes(),
            outbox.tenant.to_i64(),
            outbox.due_at.ms(),
            outbox.created_at.ms(),
            history.generation,
            history.idle_calls,
            history.unknown,
            history.server_errors,
            history.first_sent_at.ms(),
            history.last_sent_at.ms(),
            outbox.parked.map(ParkReason::name),
            outbox.revision,
        ],
    )
}

pub(super) fn remove(to: &mut RowWriter<'_>, id: SubjectId) -> Result<()> {
    to.write("DELETE FROM outbox WHERE id = ?1", params![id.to_i64()])
}

fn read(row: &Row<'_>) -> Result<Outbox> {
    Ok(Outbox {
        id: cell::subject(row, 0)?,
        payment: payment(row)?,
        saga: Saga {
            flow: cell::word(row, 3, Flow::parse)?,
            version: row.get(4)?,
            progress: SagaProgress { step: row.get(7)?, way: cell::word(row, 8, Direction::parse)? },
        },
        hold: row.get::<_, Option<i64>>(9)?.map(HoldId::from_i64),
        claim: ClaimId::from_digest(cell::digest(row, 10)?),
        tenant: cell::tenant(row, 11)?,
        provider: ProviderBinding { profile: row.get(5)?, endpoint: row.get(6)? },
        due_at: cell::time(row, 12)?,
        created_at: cell::time(row, 13)?,
        history: History {
            generation: row.get(14)?,
            idle_calls: row.get(15)?,
            unknown: row.get(16)?,
            server_errors: row.get(17)?,
            first_sent_at: cell::time(row, 18)?,
            last_sent_at: cell::time(row, 19)?,
        },
        parked: cell::optional_word(row, 20, ParkReason::parse)?,
        revision: row.get(21)?,
    })
}

fn payment(row: &Row<'_>) -> Result<Payment> {
    Ok(match (row.get(1)?, row.get(2)?) {
        (Some(charge), None) => Payment::Charge(ChargeId::from_i64(charge)),
        (None, Some(payout)) => Payment::Payout(PayoutId::from_i64(payout)),
        (Some(_), Some(_)) | (None, None) => return Err(cell::damaged(1, Type::Integer)),
    })
}
