//! Tenants, keyed by name.

use super::{RowWriter, cell};
use counterfoil_core::tenancy::{KeyPolicy, Tenant, TenantName};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

const BY_NAME: &str = "SELECT name, id, key_policy, created_at, revision FROM tenants WHERE name = ?1";
const ALL: &str = "SELECT name, id, key_policy, created_at, revision FROM tenants ORDER BY name";
const INSERT: &str =
    "INSERT INTO tenants (name, id, key_policy, created_at, revision) VALUES (?1, ?2, ?3, ?4, ?5)";
const UPDATE: &str =
    "UPDATE tenants SET id = ?2, key_policy = ?3, created_at = ?4, revision = ?5 WHERE name = ?1";

pub(super) fn load(db: &Connection, name: &TenantName) -> Result<Option<Tenant>> {
    db.prepare_cached(BY_NAME)?.query_row([name.as_str()], read).optional()
}

pub(super) fn all(db: &Connection) -> Result<Vec<Tenant>> {
    db.prepare_cached(ALL)?.query_map([], read)?.collect()
}

pub(super) fn insert(to: &mut RowWriter<'_>, tenant: &Tenant) -> Result<()> {
    write_whole(to, INSERT, tenant)
}

pub(super) fn replace(to: &mut RowWriter<'_>, tenant: &Tenant) -> Result<()> {
    write_whole(to, UPDATE, tenant)
}

fn write_whole(to: &mut RowWriter<'_>, sql: &'static str, tenant: &Tenant) -> Result<()> {
    to.write(
        sql,
        params![
            tenant.name.as_str(),
            tenant.id.to_i64(),
            tenant.key_policy.map(KeyPolicy::name),
            tenant.created_at.ms(),
            tenant.revision,
        ],
    )
}

fn read(row: &Row<'_>) -> Result<Tenant> {
    Ok(Tenant {
        name: cell::word(row, 0, |name| TenantName::parse(name).ok())?,
        id: cell::tenant(row, 1)?,
        key_policy: cell::optional_word(row, 2, KeyPolicy::parse)?,
        created_at: cell::time(row, 3)?,
        revision: row.get(4)?,
    })
}
