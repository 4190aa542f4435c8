//! Payouts, keyed by sequential id, with an index by tenant for lists.

use super::{RowWriter, cell};
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::charge::{FailureCode, PaymentFailure};
use counterfoil_core::payments::payout::{Payout, PayoutOrder, PayoutStatus};
use counterfoil_core::types::id::{PayoutId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_store::codec::metadata;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::sync::Arc;

macro_rules! columns {
    () => {
        "id, tenant, amount_minor, asset, account, destination, description, metadata, status, provider, endpoint, \
         provider_reference, failure, decline_code, created_at, revision"
    };
}

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM payouts WHERE id = ?1");
const AFTER: &str = concat!("SELECT ", columns!(), " FROM payouts WHERE id > ?1 ORDER BY id LIMIT ?2");
const OF_TENANT: &str =
    concat!("SELECT ", columns!(), " FROM payouts WHERE tenant = ?1 ORDER BY id DESC LIMIT ?2");
const OF_TENANT_BEFORE: &str =
    concat!("SELECT ", columns!(), " FROM payouts WHERE tenant = ?1 AND id < ?3 ORDER BY id DESC LIMIT ?2");
const INSERT: &str = concat!(
    "INSERT OR FAIL INTO payouts (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
);
/// The request never changes.
const UPDATE: &str = "UPDATE OR FAIL payouts SET status = ?2, provider_reference = ?3, failure = ?4, \
    decline_code = ?5, revision = ?6 WHERE id = ?1";

pub(super) fn load(db: &Connection, id: PayoutId) -> Result<Option<Payout>> {
    db.prepare_cached(BY_ID)?.query_row([id.to_i64()], read).optional()
}

pub(super) fn after(db: &Connection, after: Option<PayoutId>, limit: i64) -> Result<Vec<Payout>> {
    let after = after.map_or(i64::MIN, PayoutId::to_i64);
    db.prepare_cached(AFTER)?.query_map([after, limit], read)?.collect()
}

pub(super) fn of_tenant(
    db: &Connection,
    tenant: TenantId,
    before: Option<PayoutId>,
    limit: i64,
) -> Result<Vec<Payout>> {
    match before {
        None => db.prepare_cached(OF_TENANT)?.query_map([tenant.to_i64(), limit], read)?.collect(),
        Some(before) => db
            .prepare_cached(OF_TENANT_BEFORE)?
            .query_map([tenant.to_i64(), limit, before.to_i64()], read)?
            .collect(),
    }
}

pub(super) fn insert(to: &mut RowWriter<'_>, payout: &Payout) -> Result<()> {
    let order = &payout.order;
    to.write(
        INSERT,
        params![
            payout.id.to_i64(),
            payout.tenant.to_i64(),
            order.amount.minor(),
            order.amount.asset().code(),
            order.account.to_i64(),
            order.destination.as_ref().map(Masked::reveal),
            order.description.as_ref().map(Masked::reveal),
            metadata::encode(&order.metadata),
            payout.status.name(),
            payout.provider.profile,
            payout.provider.endpoint,
            payout.provider_reference,
            payout.failure.as_ref().map(|failure| failure.code.name()),
            payout.failure.as_ref().and_then(|failure| failure.decline_code.as_deref()),
            payout.created_at.ms(),
            payout.revision,
        ],
    )
}

pub(super) fn replace(to: &mut RowWriter<'_>, payout: &Payout) -> Result<()> {
    to.write(
        UPDATE,
        params![
            payout.id.to_i64(),
            payout.status.name(),
            payout.provider_reference,
            payout.failure.as_ref().map(|failure| failure.code.name()),
            payout.failure.as_ref().and_then(|failure| failure.decline_code.as_deref()),
            payout.revision,
        ],
    )
}

fn read(row: &Row<'_>) -> Result<Payout> {
    let asset = cell::asset(row, 3)?;
    let failure = cell::optional_word(row, 12, FailureCode::parse)?;
    Ok(Payout {
        id: row.get(0).map(PayoutId::from_i64)?,
        tenant: cell::tenant(row, 1)?,
        order: Arc::new(PayoutOrder {
            amount: Money::new(row.get(2)?, asset).map_err(|_| cell::damaged(2, Type::Integer))?,
            account: cell::account(row, 4)?,
            destination: row.get::<_, Option<String>>(5)?.map(Masked::new),
            description: row.get::<_, Option<String>>(6)?.map(Masked::new),
            metadata: cell::word(row, 7, metadata::decode)?,
        }),
        status: cell::word(row, 8, PayoutStatus::parse)?,
        provider: ProviderBinding { profile: row.get(9)?, endpoint: row.get(10)? },
        provider_reference: row.get(11)?,
        failure: match failure {
            None => None,
            Some(code) => Some(PaymentFailure { code, decline_code: row.get(13)? }),
        },
        created_at: cell::time(row, 14)?,
        revision: row.get(15)?,
    })
}
