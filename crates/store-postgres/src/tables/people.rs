//! Tenants, their API keys, and the slots of workers.

use super::Kind::{Bytes, Int, Text};
use super::{Batch, Damage, Line, Stored, Table, fixed, moves};
use counterfoil_core::tenancy::{ApiKey, KeyPolicy, Scopes, Tenant, TenantName};
use counterfoil_core::types::id::{Slot, TenantId};
use counterfoil_core::types::time::Time;

impl Stored for Tenant {
    const TABLE: Table = Table {
        name: "tenants",
        key: 1,
        columns: &[
            fixed("name", Text),
            moves("id", Int),
            moves("key_policy", Text),
            moves("created_at", Int),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.text(self.name.as_str());
        batch.int(self.id.to_i64());
        batch.text_if(self.key_policy.map(KeyPolicy::name));
        batch.int(self.created_at.ms());
        batch.number(self.revision);
    }

    fn take(line: &mut Line<'_>) -> Result<Tenant, Damage> {
        Ok(Tenant {
            name: line.word(|name| TenantName::parse(name).ok())?,
            id: TenantId::from_i64(line.int()?),
            key_policy: line.word_if(KeyPolicy::parse)?,
            created_at: line.time()?,
            revision: line.number()?,
        })
    }
}

impl Stored for ApiKey {
    const TABLE: Table = Table {
        name: "api_keys",
        key: 1,
        columns: &[
            fixed("digest", Bytes),
            moves("id", Text),
            moves("tenant", Text),
            moves("scopes", Text),
            moves("created_at", Int),
            moves("revoked_at", Int),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.bytes(self.digest.as_bytes().as_slice());
        batch.text(&self.id);
        batch.text(self.tenant.as_str());
        batch.text(self.scopes.names());
        batch.int(self.created_at.ms());
        batch.int(self.revoked_at.map(Time::ms));
        batch.number(self.revision);
    }

    fn take(line: &mut Line<'_>) -> Result<ApiKey, Damage> {
        Ok(ApiKey {
            digest: line.digest()?,
            id: line.raw()?,
            tenant: line.word(|name| TenantName::parse(name).ok())?,
            scopes: line.word(Scopes::parse)?,
            created_at: line.time()?,
            revoked_at: line.time_if()?,
            revision: line.number()?,
        })
    }
}

impl Stored for Slot {
    const TABLE: Table = Table {
        name: "slots",
        key: 1,
        columns: &[
            fixed("number", Int),
            moves("epoch", Int),
            moves("lease_until", Int),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.int(i64::from(self.number));
        batch.int(i64::from(self.epoch));
        batch.int(self.lease_until.ms());
        batch.number(self.revision);
    }

    fn take(line: &mut Line<'_>) -> Result<Slot, Damage> {
        Ok(Slot {
            number: line.number()?,
            epoch: line.number()?,
            lease_until: line.time()?,
            revision: line.number()?,
        })
    }
}
