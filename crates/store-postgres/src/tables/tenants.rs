//! Tenants, their API keys, and the slots of workers.

use super::Kind::{Bytes, Int, Text};
use super::{Batch, Damage, RowReader, Stored, Table, fixed, moves};
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

    fn take(reader: &mut RowReader<'_>) -> Result<Tenant, Damage> {
        Ok(Tenant {
            name: reader.word(|name| TenantName::parse(name).ok())?,
            id: TenantId::from_i64(reader.int()?),
            key_policy: reader.word_if(KeyPolicy::parse)?,
            created_at: reader.time()?,
            revision: reader.number()?,
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

    fn take(reader: &mut RowReader<'_>) -> Result<ApiKey, Damage> {
        Ok(ApiKey {
            digest: reader.digest()?,
            id: reader.raw()?,
            tenant: reader.word(|name| TenantName::parse(name).ok())?,
            scopes: reader.word(Scopes::parse)?,
            created_at: reader.time()?,
            revoked_at: reader.time_if()?,
            revision: reader.number()?,
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

    fn take(reader: &mut RowReader<'_>) -> Result<Slot, Damage> {
        Ok(Slot {
            number: reader.number()?,
            epoch: reader.number()?,
            lease_until: reader.time()?,
            revision: reader.number()?,
        })
    }
}
