//! Payouts.

use super::Kind::{Int, Json, Text};
use super::charges::take_failure;
use super::{Batch, Damage, RowReader, Stored, Table, fixed, metadata, moves};
use counterfoil_core::payments::payout::{Payout, PayoutOrder, PayoutStatus};
use counterfoil_core::types::id::{AccountId, PayoutId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use std::sync::Arc;

impl Stored for Payout {
    const TABLE: Table = Table {
        name: "payouts",
        key: 2,
        columns: &[
            fixed("tenant", Int),
            fixed("id", Int),
            fixed("amount_minor", Int),
            fixed("asset", Text),
            fixed("account", Int),
            fixed("destination", Text),
            fixed("description", Text),
            fixed("metadata", Json),
            moves("status", Text),
            fixed("provider", Text),
            fixed("endpoint", Text),
            moves("provider_reference", Text),
            moves("failure", Text),
            moves("decline_code", Text),
            fixed("created_at", Int),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        let (order, failure) = (&self.order, self.failure.as_ref());
        batch.int(self.tenant.to_i64());
        batch.int(self.id.to_i64());
        batch.int(order.amount.minor());
        batch.text(order.amount.asset().code().to_owned());
        batch.int(order.account.to_i64());
        batch.text_if(order.destination.as_ref().map(Masked::reveal));
        batch.text_if(order.description.as_ref().map(Masked::reveal));
        metadata::put(&order.metadata, batch);
        batch.text(self.status.name());
        batch.text(&*self.provider.profile);
        batch.text(&*self.provider.endpoint);
        batch.text_if(self.provider_reference.as_deref());
        batch.text_if(failure.map(|failure| failure.code.name()));
        batch.text_if(failure.and_then(|failure| failure.decline_code.as_deref()));
        batch.int(self.created_at.ms());
        batch.number(self.revision);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Payout, Damage> {
        let (tenant, id) = (TenantId::from_i64(reader.int()?), PayoutId::from_i64(reader.int()?));
        let minor = reader.int()?;
        let asset = reader.asset()?;
        let order = PayoutOrder {
            amount: Money::new(minor, asset).map_err(|_| reader.damage("the amount is invalid"))?,
            account: AccountId::from_i64(reader.int()?),
            destination: reader.raw::<Option<String>>()?.map(Masked::new),
            description: reader.raw::<Option<String>>()?.map(Masked::new),
            metadata: metadata::take(reader)?,
        };
        Ok(Payout {
            id,
            tenant,
            order: Arc::new(order),
            status: reader.word(PayoutStatus::parse)?,
            provider: reader.provider()?,
            provider_reference: reader.raw()?,
            failure: take_failure(reader)?,
            created_at: reader.time()?,
            revision: reader.number()?,
        })
    }
}
