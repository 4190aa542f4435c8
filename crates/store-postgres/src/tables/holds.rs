//! Held transfers.

use super::Kind::{Int, Json, Text};
use super::{Batch, Damage, RowReader, Stored, Table, fixed, metadata, moves};
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::types::id::{AccountId, HoldId, TenantId, TransactionId};

impl Stored for Hold {
    const TABLE: Table = Table {
        name: "holds",
        key: 2,
        columns: &[
            fixed("tenant", Int),
            fixed("id", Int),
            fixed("from_account", Int),
            fixed("to_account", Int),
            fixed("amount", Int),
            fixed("asset", Text),
            fixed("expires_at", Int),
            moves("state", Text),
            moves("posted_amount", Int),
            moves("ended_by", Int),
            fixed("metadata", Json),
            fixed("created_at", Int),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        let (posted, by) = match self.state {
            HoldState::Pending => (None, None),
            HoldState::Posted { amount, by } => (Some(amount), Some(by)),
            HoldState::Voided { by } | HoldState::Lapsed { by } => (None, Some(by)),
        };
        batch.int(self.tenant.to_i64());
        batch.int(self.id.to_i64());
        batch.int(self.from.to_i64());
        batch.int(self.to.to_i64());
        batch.int(self.amount);
        batch.text(self.asset.code());
        batch.int(self.expires_at.ms());
        batch.text(self.state.name());
        batch.int(posted);
        batch.int(by.map(TransactionId::to_i64));
        metadata::put(&self.metadata, batch);
        batch.int(self.created_at.ms());
        batch.number(self.revision);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Hold, Damage> {
        Ok(Hold {
            tenant: TenantId::from_i64(reader.int()?),
            id: HoldId::from_i64(reader.int()?),
            from: AccountId::from_i64(reader.int()?),
            to: AccountId::from_i64(reader.int()?),
            amount: reader.int()?,
            asset: reader.asset()?,
            expires_at: reader.time()?,
            state: take_state(reader)?,
            metadata: metadata::take(reader)?,
            created_at: reader.time()?,
            revision: reader.number()?,
        })
    }
}

fn take_state(reader: &mut RowReader<'_>) -> Result<HoldState, Damage> {
    let name: &str = reader.raw()?;
    let amount: Option<i64> = reader.raw()?;
    let by = reader.raw::<Option<i64>>()?.map(TransactionId::from_i64);
    match (name, amount, by) {
        ("pending", None, None) => Ok(HoldState::Pending),
        ("posted", Some(amount), Some(by)) => Ok(HoldState::Posted { amount, by }),
        ("voided", None, Some(by)) => Ok(HoldState::Voided { by }),
        ("lapsed", None, Some(by)) => Ok(HoldState::Lapsed { by }),
        _ => Err(reader.damage("the state and its columns do not fit")),
    }
}
