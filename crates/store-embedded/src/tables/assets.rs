//! Assets of tenants, keyed by tenant and code.

use super::{RowWriter, cell};
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::TenantId;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

const BY_KEY: &str = "SELECT tenant, code, exponent, created_at FROM assets WHERE tenant = ?1 AND code = ?2";
const OF_TENANT: &str =
    "SELECT tenant, code, exponent, created_at FROM assets WHERE tenant = ?1 ORDER BY code";
const INSERT: &str =
    "INSERT OR FAIL INTO assets (tenant, code, exponent, created_at) VALUES (?1, ?2, ?3, ?4)";

pub(super) fn load(db: &Connection, tenant: TenantId, asset: Asset) -> Result<Option<AssetDefinition>> {
    db.prepare_cached(BY_KEY)?.query_row(params![tenant.to_i64(), asset.code()], read).optional()
}

pub(super) fn of_tenant(db: &Connection, tenant: TenantId) -> Result<Vec<AssetDefinition>> {
    db.prepare_cached(OF_TENANT)?.query_map([tenant.to_i64()], read)?.collect()
}

pub(super) fn insert(to: &mut RowWriter<'_>, definition: &AssetDefinition) -> Result<()> {
    to.write(
        INSERT,
        params![
            definition.tenant.to_i64(),
            definition.asset.code(),
            definition.exponent,
            definition.created_at.ms(),
        ],
    )
}

fn read(row: &Row<'_>) -> Result<AssetDefinition> {
    Ok(AssetDefinition {
        tenant: cell::tenant(row, 0)?,
        asset: cell::asset(row, 1)?,
        exponent: row.get(2)?,
        created_at: cell::time(row, 3)?,
    })
}
