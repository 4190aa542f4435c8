//! Work to be done, by charge, with an index of what is due and one of what is parked.

use super::{cell, one_row};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::outbox::{History, Outbox, Park, Pinned};
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::Tally;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

macro_rules! columns {
    () => {
        "charge, claim, tenant, profile, endpoint, due_at, created_at, generation, idle_calls, unknown, \
         server_errors, first_sent_at, last_sent_at, parked, revision"
    };
}

/// How late work must be to count as stuck.
const STUCK_AFTER: Span = Span::from_ms(60_000);

const BY_CHARGE: &str = concat!("SELECT ", columns!(), " FROM outbox WHERE charge = ?1");
const AFTER: &str = concat!("SELECT ", columns!(), " FROM outbox WHERE charge > ?1 ORDER BY charge LIMIT ?2");
const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM outbox WHERE parked IS NULL AND due_at <= ?1 ORDER BY due_at, charge LIMIT ?2"
);
const INSERT: &str = concat!(
    "INSERT INTO outbox (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
);
const UPDATE: &str = "UPDATE outbox SET claim = ?2, tenant = ?3, profile = ?4, endpoint = ?5, due_at = ?6, \
    created_at = ?7, generation = ?8, idle_calls = ?9, unknown = ?10, server_errors = ?11, first_sent_at = ?12, \
    last_sent_at = ?13, parked = ?14, revision = ?15 WHERE charge = ?1";
/// Answered from the two indexes alone.
const TALLY: &str = "SELECT (SELECT count(*) FROM outbox WHERE parked IS NULL), \
    (SELECT count(*) FROM outbox WHERE parked IS NOT NULL), \
    (SELECT count(*) FROM outbox WHERE parked IS NULL AND due_at < ?1), \
    (SELECT min(due_at) FROM outbox WHERE parked IS NULL)";

pub(super) fn load(db: &Connection, charge: ChargeId) -> Result<Option<Outbox>> {
    db.prepare_cached(BY_CHARGE)?.query_row([charge.to_i64()], read).optional()
}

pub(super) fn after(db: &Connection, after: Option<ChargeId>, limit: i64) -> Result<Vec<Outbox>> {
    let mut statement = db.prepare_cached(AFTER)?;
    let after = after.map_or(i64::MIN, ChargeId::to_i64);
    statement.query_map(params![after, limit], read)?.collect()
}

pub(super) fn due(db: &Connection, now: Time, limit: i64) -> Result<Vec<Outbox>> {
    let mut statement = db.prepare_cached(DUE)?;
    statement.query_map(params![now.ms(), limit], read)?.collect()
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

pub(super) fn insert(db: &Connection, outbox: &Outbox) -> Result<()> {
    write_whole(db, INSERT, outbox)
}

pub(super) fn replace(db: &Connection, outbox: &Outbox) -> Result<()> {
    write_whole(db, UPDATE, outbox)
}

pub(super) fn remove(db: &Connection, charge: ChargeId) -> Result<()> {
    one_row(db.prepare_cached("DELETE FROM outbox WHERE charge = ?1")?.execute([charge.to_i64()])?)
}

fn write_whole(db: &Connection, sql: &str, outbox: &Outbox) -> Result<()> {
    let history = &outbox.history;
    one_row(db.prepare_cached(sql)?.execute(params![
        outbox.charge.to_i64(),
        outbox.claim.digest().as_bytes(),
        outbox.tenant.to_i64(),
        outbox.provider.profile,
        outbox.provider.endpoint,
        outbox.due_at.ms(),
        outbox.created_at.ms(),
        history.generation,
        history.idle_calls,
        history.unknown,
        history.server_errors,
        history.first_sent_at.ms(),
        history.last_sent_at.ms(),
        outbox.parked.map(Park::name),
        outbox.revision,
    ])?)
}

fn read(row: &Row<'_>) -> Result<Outbox> {
    Ok(Outbox {
        charge: cell::charge(row, 0)?,
        claim: ClaimId::from_digest(cell::digest(row, 1)?),
        tenant: cell::tenant(row, 2)?,
        provider: Pinned { profile: row.get(3)?, endpoint: row.get(4)? },
        due_at: cell::time(row, 5)?,
        created_at: cell::time(row, 6)?,
        history: History {
            generation: row.get(7)?,
            idle_calls: row.get(8)?,
            unknown: row.get(9)?,
            server_errors: row.get(10)?,
            first_sent_at: cell::time(row, 11)?,
            last_sent_at: cell::time(row, 12)?,
        },
        parked: cell::optional_word(row, 13, Park::parse)?,
        revision: row.get(14)?,
    })
}
