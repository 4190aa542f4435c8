//! Captures, voids and refunds.

use super::Kind::{Int, Text};
use super::charges::take_failure;
use super::{Batch, Damage, RowReader, Stored, Table, fixed, moves};
use counterfoil_core::payments::operation::{Operation, OperationKind, OperationStatus};
use counterfoil_core::types::id::{ChargeId, OperationId, TenantId};
use counterfoil_core::types::money::Money;

impl Stored for Operation {
    const TABLE: Table = Table {
        name: "operations",
        key: 2,
        columns: &[
            fixed("tenant", Int),
            fixed("id", Int),
            fixed("charge", Int),
            fixed("kind", Text),
            fixed("amount_minor", Int),
            fixed("asset", Text),
            moves("status", Text),
            moves("provider_reference", Text),
            moves("failure", Text),
            moves("decline_code", Text),
            fixed("created_at", Int),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        let failure = self.failure.as_ref();
        batch.int(self.tenant.to_i64());
        batch.int(self.id.to_i64());
        batch.int(self.charge.to_i64());
        batch.text(self.kind.name());
        batch.int(self.amount.minor());
        batch.text(self.amount.asset().code().to_owned());
        batch.text(self.status.name());
        batch.text_if(self.provider_reference.as_deref());
        batch.text_if(failure.map(|failure| failure.code.name()));
        batch.text_if(failure.and_then(|failure| failure.decline_code.as_deref()));
        batch.int(self.created_at.ms());
        batch.number(self.revision);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Operation, Damage> {
        let (tenant, id) = (TenantId::from_i64(reader.int()?), OperationId::from_i64(reader.int()?));
        let charge = ChargeId::from_i64(reader.int()?);
        let kind = reader.word(OperationKind::parse)?;
        let minor = reader.int()?;
        let asset = reader.asset()?;
        Ok(Operation {
            id,
            tenant,
            charge,
            kind,
            amount: Money::new(minor, asset).map_err(|_| reader.damage("the amount is invalid"))?,
            status: reader.word(OperationStatus::parse)?,
            provider_reference: reader.raw()?,
            failure: take_failure(reader)?,
            created_at: reader.time()?,
            revision: reader.number()?,
        })
    }
}
