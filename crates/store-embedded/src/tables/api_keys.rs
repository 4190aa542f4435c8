//! API keys, keyed by the digest of the secret.

use super::{RowWriter, cell};
use counterfoil_core::tenancy::{ApiKey, Scopes, TenantName};
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::time::Time;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

const BY_DIGEST: &str =
    "SELECT digest, id, tenant, scopes, created_at, revoked_at, revision FROM api_keys WHERE digest = ?1";
const ALL: &str =
    "SELECT digest, id, tenant, scopes, created_at, revoked_at, revision FROM api_keys ORDER BY digest";
const INSERT: &str = "INSERT INTO api_keys (digest, id, tenant, scopes, created_at, revoked_at, revision) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const UPDATE: &str = "UPDATE api_keys SET id = ?2, tenant = ?3, scopes = ?4, created_at = ?5, revoked_at = ?6, \
    revision = ?7 WHERE digest = ?1";

pub(super) fn load(db: &Connection, digest: &Digest) -> Result<Option<ApiKey>> {
    db.prepare_cached(BY_DIGEST)?.query_row([digest.as_bytes()], read).optional()
}

pub(super) fn all(db: &Connection) -> Result<Vec<ApiKey>> {
    db.prepare_cached(ALL)?.query_map([], read)?.collect()
}

pub(super) fn insert(to: &mut RowWriter<'_>, key: &ApiKey) -> Result<()> {
    write_whole(to, INSERT, key)
}

pub(super) fn replace(to: &mut RowWriter<'_>, key: &ApiKey) -> Result<()> {
    write_whole(to, UPDATE, key)
}

fn write_whole(to: &mut RowWriter<'_>, sql: &'static str, key: &ApiKey) -> Result<()> {
    to.write(
        sql,
        params![
            key.digest.as_bytes(),
            key.id,
            key.tenant.as_str(),
            key.scopes.names(),
            key.created_at.ms(),
            key.revoked_at.map(Time::ms),
            key.revision,
        ],
    )
}

fn read(row: &Row<'_>) -> Result<ApiKey> {
    Ok(ApiKey {
        digest: cell::digest(row, 0)?,
        id: row.get(1)?,
        tenant: cell::word(row, 2, |name| TenantName::parse(name).ok())?,
        scopes: cell::word(row, 3, Scopes::parse)?,
        created_at: cell::time(row, 4)?,
        revoked_at: row.get::<_, Option<i64>>(5)?.map(Time::from_ms),
        revision: row.get(6)?,
    })
}
