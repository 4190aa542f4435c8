//! Accounts, their names, tenants' own assets, and guarded balances.

use super::Kind::{Int, Json, Text};
use super::{Batch, Damage, RowReader, Stored, Table, fixed, metadata, moves};
use counterfoil_core::ledger::account::{Account, AccountCode, AccountName, Guard, Side};
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::types::id::{AccountId, TenantId};

impl Stored for Account {
    const TABLE: Table = Table {
        name: "accounts",
        key: 2,
        columns: &[
            fixed("tenant", Int),
            fixed("id", Int),
            fixed("code", Text),
            fixed("asset", Text),
            fixed("normal", Text),
            fixed("floor", Int),
            fixed("cap", Int),
            moves("shards", Int),
            moves("widest", Int),
            fixed("metadata", Json),
            fixed("created_at", Int),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.int(self.tenant.to_i64());
        batch.int(self.id.to_i64());
        batch.text(self.code.as_str());
        batch.text(self.asset.code());
        batch.text(self.normal.name());
        batch.int(self.guard.floor);
        batch.int(self.guard.cap);
        batch.int(i64::from(self.shards));
        batch.int(i64::from(self.widest));
        metadata::put(&self.metadata, batch);
        batch.int(self.created_at.ms());
        batch.number(self.revision);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Account, Damage> {
        Ok(Account {
            tenant: TenantId::from_i64(reader.int()?),
            id: AccountId::from_i64(reader.int()?),
            code: reader.word(|code| AccountCode::parse(code).ok())?,
            asset: reader.asset()?,
            normal: reader.word(Side::parse)?,
            guard: Guard { floor: reader.raw()?, cap: reader.raw()? },
            shards: reader.number()?,
            widest: reader.number()?,
            metadata: metadata::take(reader)?,
            created_at: reader.time()?,
            revision: reader.number()?,
        })
    }
}

impl Stored for AccountName {
    const TABLE: Table = Table {
        name: "account_names",
        key: 2,
        columns: &[fixed("tenant", Int), fixed("code", Text), fixed("account", Int)],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.int(self.tenant.to_i64());
        batch.text(self.code.as_str());
        batch.int(self.account.to_i64());
    }

    fn take(reader: &mut RowReader<'_>) -> Result<AccountName, Damage> {
        Ok(AccountName {
            tenant: TenantId::from_i64(reader.int()?),
            code: reader.word(|code| AccountCode::parse(code).ok())?,
            account: AccountId::from_i64(reader.int()?),
        })
    }
}

impl Stored for AssetDefinition {
    const TABLE: Table = Table {
        name: "assets",
        key: 2,
        columns: &[
            fixed("tenant", Int),
            fixed("asset", Text),
            fixed("exponent", Int),
            fixed("created_at", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.int(self.tenant.to_i64());
        batch.text(self.asset.code());
        batch.int(i64::from(self.exponent));
        batch.int(self.created_at.ms());
    }

    fn take(reader: &mut RowReader<'_>) -> Result<AssetDefinition, Damage> {
        Ok(AssetDefinition {
            tenant: TenantId::from_i64(reader.int()?),
            asset: reader.asset()?,
            exponent: reader.number()?,
            created_at: reader.time()?,
        })
    }
}

impl Stored for Balance {
    const TABLE: Table = Table {
        name: "balances",
        key: 3,
        columns: &[
            fixed("tenant", Int),
            fixed("account", Int),
            fixed("shard", Int),
            moves("posted", Int),
            moves("outgoing", Int),
            moves("incoming", Int),
            moves("floor", Int),
            moves("cap", Int),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        batch.int(self.tenant.to_i64());
        batch.int(self.account.to_i64());
        batch.int(i64::from(self.shard));
        batch.int(self.posted);
        batch.int(self.outgoing);
        batch.int(self.incoming);
        batch.int(self.floor);
        batch.int(self.cap);
        batch.number(self.revision);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Balance, Damage> {
        Ok(Balance {
            tenant: TenantId::from_i64(reader.int()?),
            account: AccountId::from_i64(reader.int()?),
            shard: reader.number()?,
            posted: reader.int()?,
            outgoing: reader.int()?,
            incoming: reader.int()?,
            floor: reader.raw()?,
            cap: reader.raw()?,
            revision: reader.number()?,
        })
    }
}
