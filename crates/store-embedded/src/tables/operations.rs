//! Captures, voids and refunds, keyed by sequential id, with indexes by charge and of refunds by
//! tenant.

use super::{RowWriter, cell};
use counterfoil_core::payments::charge::{FailureCode, PaymentFailure};
use counterfoil_core::payments::operation::{Operation, OperationKind, OperationStatus};
use counterfoil_core::types::id::{ChargeId, OperationId, TenantId};
use counterfoil_core::types::money::Money;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

macro_rules! columns {
    () => {
        "id, tenant, charge, kind, amount_minor, asset, status, provider_reference, failure, decline_code, \
         created_at, revision"
    };
}

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM operations WHERE id = ?1");
const AFTER: &str = concat!("SELECT ", columns!(), " FROM operations WHERE id > ?1 ORDER BY id LIMIT ?2");
const ON_CHARGE: &str =
    concat!("SELECT ", columns!(), " FROM operations WHERE charge = ?1 AND id > ?2 ORDER BY id LIMIT ?3");
const REFUNDS_OF: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM operations WHERE tenant = ?1 AND kind = 'refund' ORDER BY id DESC LIMIT ?2"
);
const REFUNDS_OF_BEFORE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM operations WHERE tenant = ?1 AND kind = 'refund' AND id < ?3 ORDER BY id DESC LIMIT ?2"
);
const INSERT: &str = concat!(
    "INSERT OR FAIL INTO operations (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
);
/// The request never changes.
const UPDATE: &str = "UPDATE OR FAIL operations SET status = ?2, provider_reference = ?3, failure = ?4, \
    decline_code = ?5, revision = ?6 WHERE id = ?1";

pub(super) fn load(db: &Connection, id: OperationId) -> Result<Option<Operation>> {
    db.prepare_cached(BY_ID)?.query_row([id.to_i64()], read).optional()
}

pub(super) fn after(db: &Connection, after: Option<OperationId>, limit: i64) -> Result<Vec<Operation>> {
    let after = after.map_or(i64::MIN, OperationId::to_i64);
    db.prepare_cached(AFTER)?.query_map([after, limit], read)?.collect()
}

pub(super) fn on_charge(
    db: &Connection,
    charge: ChargeId,
    after: Option<OperationId>,
    limit: i64,
) -> Result<Vec<Operation>> {
    let after = after.map_or(i64::MIN, OperationId::to_i64);
    db.prepare_cached(ON_CHARGE)?.query_map([charge.to_i64(), after, limit], read)?.collect()
}

pub(super) fn refunds_of(
    db: &Connection,
    tenant: TenantId,
    before: Option<OperationId>,
    limit: i64,
) -> Result<Vec<Operation>> {
    match before {
        None => db.prepare_cached(REFUNDS_OF)?.query_map([tenant.to_i64(), limit], read)?.collect(),
        Some(before) => db
            .prepare_cached(REFUNDS_OF_BEFORE)?
            .query_map([tenant.to_i64(), limit, before.to_i64()], read)?
            .collect(),
    }
}

pub(super) fn insert(to: &mut RowWriter<'_>, operation: &Operation) -> Result<()> {
    to.write(
        INSERT,
        params![
            operation.id.to_i64(),
            operation.tenant.to_i64(),
            operation.charge.to_i64(),
            operation.kind.name(),
            operation.amount.minor(),
            operation.amount.asset().code(),
            operation.status.name(),
            operation.provider_reference,
            operation.failure.as_ref().map(|failure| failure.code.name()),
            operation.failure.as_ref().and_then(|failure| failure.decline_code.as_deref()),
            operation.created_at.ms(),
            operation.revision,
        ],
    )
}

pub(super) fn replace(to: &mut RowWriter<'_>, operation: &Operation) -> Result<()> {
    to.write(
        UPDATE,
        params![
            operation.id.to_i64(),
            operation.status.name(),
            operation.provider_reference,
            operation.failure.as_ref().map(|failure| failure.code.name()),
            operation.failure.as_ref().and_then(|failure| failure.decline_code.as_deref()),
            operation.revision,
        ],
    )
}

fn read(row: &Row<'_>) -> Result<Operation> {
    let asset = cell::asset(row, 5)?;
    let failure = cell::optional_word(row, 8, FailureCode::parse)?;
    Ok(Operation {
        id: cell::operation(row, 0)?,
        tenant: cell::tenant(row, 1)?,
        charge: cell::charge(row, 2)?,
        kind: cell::word(row, 3, OperationKind::parse)?,
        amount: Money::new(row.get(4)?, asset).map_err(|_| cell::damaged(4, Type::Integer))?,
        status: cell::word(row, 6, OperationStatus::parse)?,
        provider_reference: row.get(7)?,
        failure: match failure {
            None => None,
            Some(code) => Some(PaymentFailure { code, decline_code: row.get(9)? }),
        },
        created_at: cell::time(row, 10)?,
        revision: row.get(11)?,
    })
}
