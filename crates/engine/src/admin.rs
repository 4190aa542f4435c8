//! Administration of tenants and their API keys, through ordinary commits. Only a store
//! and ids are needed, so the command line can do without an engine.

use crate::mint::IdMint;
use crate::service::{AdminError, NewKey, NewTenant};
use counterfoil_core::tenancy::{ApiKey, Tenant, TenantName};
use counterfoil_core::types::id::{SetId, TenantId};
use counterfoil_store::{ChangeSet, CommitError, ReadError, Row, RowKey, Scan, Store};

/// The register of tenants in one store.
pub struct Register<'a, S> {
    pub store: &'a S,
    pub ids: &'a IdMint,
}

impl<S: Store> Register<'_, S> {
    /// Creates a tenant and its first API key.
    pub async fn create_tenant(&self, new: NewTenant) -> Result<Tenant, AdminError> {
        let name = TenantName::parse(&new.name).map_err(|_| AdminError::BadName)?;
        let now = self.store.now();
        let tenant = Tenant {
            id: TenantId::from_i64(self.mint()?),
            name: name.clone(),
            key_policy: new.key_policy,
            created_at: now,
            revision: 1,
        };
        let key = ApiKey {
            digest: new.digest,
            id: new.key_id,
            tenant: name,
            scopes: new.scopes,
            created_at: now,
            revoked_at: None,
            revision: 1,
        };
        self.apply(ChangeSet::new(SetId::from_i64(self.mint()?)).insert(tenant.clone()).insert(key)).await?;
        Ok(tenant)
    }

    /// Adds an API key to a tenant.
    pub async fn create_key(&self, new: NewKey) -> Result<ApiKey, AdminError> {
        let name = TenantName::parse(&new.tenant).map_err(|_| AdminError::BadName)?;
        let rows = self.store.read(vec![RowKey::Tenant(name.clone())]).await.map_err(store)?;
        if rows.into_iter().flatten().next().is_none() {
            return Err(AdminError::NotFound);
        }
        let key = ApiKey {
            digest: new.digest,
            id: new.key_id,
            tenant: name,
            scopes: new.scopes,
            created_at: self.store.now(),
            revoked_at: None,
            revision: 1,
        };
        self.apply(ChangeSet::new(SetId::from_i64(self.mint()?)).insert(key.clone())).await?;
        Ok(key)
    }

    /// Revokes an API key. Idempotent.
    pub async fn revoke_key(&self, id: &str) -> Result<ApiKey, AdminError> {
        let key = self
            .keys()
            .await
            .map_err(store)?
            .into_iter()
            .find(|key| key.id == id)
            .ok_or(AdminError::NotFound)?;
        if key.revoked_at.is_some() {
            return Ok(key);
        }
        let revoked = ApiKey {
            revoked_at: Some(self.store.now()),
            revision: key.revision.saturating_add(1),
            ..key.clone()
        };
        let set = ChangeSet::new(SetId::from_i64(self.mint()?)).replace(revoked.clone(), key.revision);
        self.apply(set).await?;
        Ok(revoked)
    }

    /// All tenants with their API keys, by name.
    pub async fn tenants(&self) -> Result<Vec<(Tenant, Vec<ApiKey>)>, ReadError> {
        let keys = self.keys().await?;
        let rows = self.store.scan(Scan::Tenants).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| if let Row::Tenant(tenant) = row { Some(tenant) } else { None })
            .map(|tenant| {
                let own = keys.iter().filter(|key| key.tenant == tenant.name).cloned().collect();
                (tenant, own)
            })
            .collect())
    }

    async fn keys(&self) -> Result<Vec<ApiKey>, ReadError> {
        let rows = self.store.scan(Scan::ApiKeys).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| if let Row::ApiKey(key) = row { Some(key) } else { None })
            .collect())
    }

    fn mint(&self) -> Result<i64, AdminError> {
        self.ids
            .next(self.store.now())
            .map_err(|error| AdminError::Store(format!("no id can be minted: {error:?}")))
    }

    async fn apply(&self, set: ChangeSet) -> Result<(), AdminError> {
        match self.store.commit(set).await {
            Ok(_) => Ok(()),
            Err(CommitError::Refused(_)) => Err(AdminError::Exists),
            Err(CommitError::Unavailable(why)) => Err(AdminError::Store(why)),
            Err(CommitError::Conflict | CommitError::Throttled) => {
                Err(AdminError::Store("it is busy; try again".into()))
            }
            Err(CommitError::InDoubt(_)) => {
                Err(AdminError::Store("it is not known whether it was changed; look, then repeat".into()))
            }
        }
    }
}

fn store(error: ReadError) -> AdminError {
    AdminError::Store(error.0)
}
