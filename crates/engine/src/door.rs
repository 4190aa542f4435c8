//! The engine behind its object-safe door.

use crate::admin::Register;
use crate::engine::Engine;
use crate::service::{
    AdminError, Answer, KeyView, NewKey, NewTenant, Principal, Service, Submitted, TenantView,
};
use crate::world::World;
use counterfoil_core::audit::Record;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::tenancy::{ApiKey, Tenant};
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{ChargeId, TenantId};
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store, Tally};
use std::sync::Arc;

impl<S: Store, G: Gateway, W: World> Service for Engine<S, G, W> {
    fn now(&self) -> Time {
        self.inner.store.now()
    }

    fn request_id(&self) -> Ulid {
        Ulid::new(self.inner.store.now(), self.inner.world.chance())
    }

    fn references(&self) -> &References {
        &self.inner.references
    }

    fn submit(&self, command: CreateCharge) -> Answer<'_, Submitted> {
        Box::pin(self.inner.submit(command))
    }

    fn charge(&self, tenant: TenantId, id: ChargeId) -> Answer<'_, Result<Option<Charge>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.read(vec![RowKey::Charge(id)]).await?;
            Ok(rows.into_iter().flatten().filter_map(charge_of).find(|charge| charge.tenant == tenant))
        })
    }

    fn charges(
        &self,
        tenant: TenantId,
        before: Option<ChargeId>,
        limit: usize,
    ) -> Answer<'_, Result<Vec<Charge>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.scan(Scan::ChargesOf { tenant, before, limit }).await?;
            Ok(rows.into_iter().filter_map(charge_of).collect())
        })
    }

    fn timeline(
        &self,
        tenant: TenantId,
        id: ChargeId,
        after: Option<Ulid>,
        limit: usize,
    ) -> Answer<'_, Result<Option<Vec<Record>>, ReadError>> {
        Box::pin(async move {
            if self.charge(tenant, id).await?.is_none() {
                return Ok(None);
            }
            let rows = self.inner.store.scan(Scan::Timeline { charge: id, after, limit }).await?;
            Ok(Some(
                rows.into_iter()
                    .filter_map(|row| if let Row::Audit(record) = row { Some(record) } else { None })
                    .collect(),
            ))
        })
    }

    fn claim(&self, id: ClaimId) -> Answer<'_, Result<Option<KeyView>, ReadError>> {
        Box::pin(async move {
            let rows = self.inner.store.read(vec![RowKey::Claim(id)]).await?;
            let Some(Some(Row::Claim(claim))) = rows.into_iter().next() else {
                return Ok(None);
            };
            let rows = self.inner.store.read(vec![RowKey::Outbox(claim.subject)]).await?;
            let parked = rows
                .into_iter()
                .flatten()
                .find_map(|row| if let Row::Outbox(outbox) = row { outbox.parked } else { None });
            Ok(Some((claim, parked)))
        })
    }

    fn principal(&self, key: Digest) -> Answer<'_, Result<Option<Arc<Principal>>, ReadError>> {
        Box::pin(self.inner.principal(key))
    }

    fn tally(&self) -> Answer<'_, Result<Tally, ReadError>> {
        Box::pin(self.inner.store.tally(self.inner.store.now()))
    }

    fn ready(&self) -> Answer<'_, Result<(), String>> {
        Box::pin(async move {
            if self.inner.is_draining() {
                return Err("the server is shutting down".into());
            }
            self.inner.store.tally(self.inner.store.now()).await.map_err(|error| error.to_string())?;
            self.inner
                .ids
                .next(self.inner.store.now())
                .map_err(|error| format!("no id can be minted: {error:?}"))?;
            Ok(())
        })
    }

    fn create_tenant(&self, tenant: NewTenant) -> Answer<'_, Result<Tenant, AdminError>> {
        Box::pin(async move { self.register().create_tenant(tenant).await })
    }

    fn create_key(&self, key: NewKey) -> Answer<'_, Result<ApiKey, AdminError>> {
        Box::pin(async move { self.register().create_key(key).await })
    }

    fn revoke_key(&self, id: String) -> Answer<'_, Result<ApiKey, AdminError>> {
        Box::pin(async move { self.register().revoke_key(&id).await })
    }

    fn tenants(&self) -> Answer<'_, Result<Vec<TenantView>, ReadError>> {
        Box::pin(async move { self.register().tenants().await })
    }
}

impl<S: Store, G: Gateway, W: World> Engine<S, G, W> {
    fn register(&self) -> Register<'_, S> {
        Register { store: &self.inner.store, ids: &self.inner.ids }
    }
}

fn charge_of(row: Row) -> Option<Charge> {
    if let Row::Charge(charge) = row { Some(charge) } else { None }
}
