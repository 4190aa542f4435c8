//! Charges, keyed by sequential id, with an index by tenant for lists.

use super::{RowWriter, cell};
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::charge::{
    Charge, ChargeOrder, ChargeStatus, ChargeSums, FailureCode, PaymentFailure, Wallet,
};
use counterfoil_core::types::id::{AccountId, ChargeId, OperationId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_store::codec::metadata;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::sync::Arc;

macro_rules! columns {
    () => {
        "id, tenant, amount_minor, asset, payment_method, capture, destination, description, metadata, status, \
         provider, provider_reference, failure, decline_code, created_at, revision, captured, refunded, refunding, \
         working, endpoint, wallet_account, wallet_amount"
    };
}

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM charges WHERE id = ?1");
const AFTER: &str = concat!("SELECT ", columns!(), " FROM charges WHERE id > ?1 ORDER BY id LIMIT ?2");
const OF_TENANT: &str =
    concat!("SELECT ", columns!(), " FROM charges WHERE tenant = ?1 ORDER BY id DESC LIMIT ?2");
const OF_TENANT_BEFORE: &str =
    concat!("SELECT ", columns!(), " FROM charges WHERE tenant = ?1 AND id < ?3 ORDER BY id DESC LIMIT ?2");
const INSERT: &str = concat!(
    "INSERT OR FAIL INTO charges (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)"
);
/// The order and the provider never change.
const UPDATE: &str = "UPDATE OR FAIL charges SET status = ?2, provider_reference = ?3, failure = ?4, \
    decline_code = ?5, created_at = ?6, revision = ?7, captured = ?8, refunded = ?9, refunding = ?10, working = ?11 \
    WHERE id = ?1";

pub(super) fn load(db: &Connection, id: ChargeId) -> Result<Option<Charge>> {
    db.prepare_cached(BY_ID)?.query_row([id.to_i64()], read).optional()
}

pub(super) fn after(db: &Connection, after: Option<ChargeId>, limit: i64) -> Result<Vec<Charge>> {
    let mut statement = db.prepare_cached(AFTER)?;
    let after = after.map_or(i64::MIN, ChargeId::to_i64);
    statement.query_map(params![after, limit], read)?.collect()
}

pub(super) fn of_tenant(
    db: &Connection,
    tenant: TenantId,
    before: Option<ChargeId>,
    limit: i64,
) -> Result<Vec<Charge>> {
    match before {
        None => db.prepare_cached(OF_TENANT)?.query_map(params![tenant.to_i64(), limit], read)?.collect(),
        Some(before) => db
            .prepare_cached(OF_TENANT_BEFORE)?
            .query_map(params![tenant.to_i64(), limit, before.to_i64()], read)?
            .collect(),
    }
}

pub(super) fn insert(to: &mut RowWriter<'_>, charge: &Charge) -> Result<()> {
    let order = &charge.order;
    to.write(
        INSERT,
        params![
            charge.id.to_i64(),
            charge.tenant.to_i64(),
            order.amount.minor(),
            order.amount.asset().code(),
            order.payment_method.reveal(),
            order.capture,
            order.destination.to_i64(),
            order.description.as_ref().map(Masked::reveal),
            metadata::encode(&order.metadata),
            charge.status.name(),
            charge.provider.profile,
            charge.provider_reference,
            charge.failure.as_ref().map(|failure| failure.code.name()),
            charge.failure.as_ref().and_then(|failure| failure.decline_code.as_deref()),
            charge.created_at.ms(),
            charge.revision,
            charge.sums.captured,
            charge.sums.refunded,
            charge.sums.refunding,
            charge.working.map(OperationId::to_i64),
            charge.provider.endpoint,
            order.wallet.map(|wallet| wallet.account.to_i64()),
            order.wallet.map(|wallet| wallet.amount),
        ],
    )
}

pub(super) fn replace(to: &mut RowWriter<'_>, charge: &Charge) -> Result<()> {
    to.write(
        UPDATE,
        params![
            charge.id.to_i64(),
            charge.status.name(),
            charge.provider_reference,
            charge.failure.as_ref().map(|failure| failure.code.name()),
            charge.failure.as_ref().and_then(|failure| failure.decline_code.as_deref()),
            charge.created_at.ms(),
            charge.revision,
            charge.sums.captured,
            charge.sums.refunded,
            charge.sums.refunding,
            charge.working.map(OperationId::to_i64),
        ],
    )
}

fn read(row: &Row<'_>) -> Result<Charge> {
    let asset = cell::asset(row, 3)?;
    let failure = cell::optional_word(row, 12, FailureCode::parse)?;
    Ok(Charge {
        id: cell::charge(row, 0)?,
        tenant: cell::tenant(row, 1)?,
        order: Arc::new(ChargeOrder {
            amount: Money::new(row.get(2)?, asset).map_err(|_| cell::damaged(2, Type::Integer))?,
            payment_method: Masked::new(row.get(4)?),
            capture: row.get(5)?,
            destination: cell::account(row, 6)?,
            wallet: read_wallet(row)?,
            description: row.get::<_, Option<String>>(7)?.map(Masked::new),
            metadata: cell::word(row, 8, metadata::decode)?,
        }),
        status: cell::word(row, 9, ChargeStatus::parse)?,
        sums: ChargeSums { captured: row.get(16)?, refunded: row.get(17)?, refunding: row.get(18)? },
        working: row.get::<_, Option<i64>>(19)?.map(OperationId::from_i64),
        provider: ProviderBinding { profile: row.get(10)?, endpoint: row.get(20)? },
        provider_reference: row.get(11)?,
        failure: match failure {
            None => None,
            Some(code) => Some(PaymentFailure { code, decline_code: row.get(13)? }),
        },
        created_at: cell::time(row, 14)?,
        revision: row.get(15)?,
    })
}

fn read_wallet(row: &Row<'_>) -> Result<Option<Wallet>> {
    Ok(match row.get(21)? {
        None => None,
        Some(account) => Some(Wallet { account: AccountId::from_i64(account), amount: row.get(22)? }),
    })
}
