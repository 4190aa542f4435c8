//! Principals by API key, cached for half a second, so that a revocation takes effect within a
//! second.

use crate::engine::Inner;
use crate::policy::PRINCIPAL_TTL;
use crate::service::Principal;
use crate::world::World;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ReadError, Row, RowKey, Store};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Entries of the cache. A full cache is cleared.
const CACHED_MAX: usize = 10_000;

/// The cache, with the time of each read.
#[derive(Default)]
pub(crate) struct Principals(RwLock<HashMap<Digest, (Time, Arc<Principal>)>>);

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(crate) async fn principal(&self, digest: Digest) -> Result<Option<Arc<Principal>>, ReadError> {
        let now = self.store.now();
        let cached = self.principals.0.read().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        if let Some((asked_at, principal)) = cached
            && now.since(asked_at) < PRINCIPAL_TTL
        {
            return Ok(Some(principal));
        }
        let principal = self.read_principal(digest).await?.map(Arc::new);
        let mut cache = self.principals.0.write().unwrap_or_else(PoisonError::into_inner);
        match &principal {
            Some(principal) => {
                if cache.len() >= CACHED_MAX {
                    cache.clear();
                }
                cache.insert(digest, (now, Arc::clone(principal)));
            }
            None => {
                cache.remove(&digest);
            }
        }
        Ok(principal)
    }

    async fn read_principal(&self, digest: Digest) -> Result<Option<Principal>, ReadError> {
        let rows = self.store.read(vec![RowKey::ApiKey(digest)]).await?;
        let Some(Some(Row::ApiKey(key))) = rows.into_iter().next() else {
            return Ok(None);
        };
        if key.revoked_at.is_some() {
            return Ok(None);
        }
        let rows = self.store.read(vec![RowKey::Tenant(key.tenant.clone())]).await?;
        let Some(Some(Row::Tenant(tenant))) = rows.into_iter().next() else {
            return Ok(None);
        };
        Ok(Some(Principal {
            tenant: tenant.id,
            name: tenant.name.to_string(),
            scopes: key.scopes,
            key_policy: tenant.key_policy,
        }))
    }
}
