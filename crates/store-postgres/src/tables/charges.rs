//! Charges.

use super::Kind::{Bool, Int, Json, Text};
use super::{Batch, Damage, RowReader, Stored, Table, fixed, metadata, moves};
use counterfoil_core::payments::charge::{
    Charge, ChargeOrder, ChargeStatus, ChargeSums, FailureCode, PaymentFailure, Wallet,
};
use counterfoil_core::types::id::{AccountId, ChargeId, OperationId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use std::sync::Arc;

impl Stored for Charge {
    const TABLE: Table = Table {
        name: "charges",
        key: 2,
        columns: &[
            fixed("tenant", Int),
            fixed("id", Int),
            fixed("amount_minor", Int),
            fixed("asset", Text),
            fixed("payment_method", Text),
            fixed("capture", Bool),
            fixed("destination", Int),
            fixed("wallet_account", Int),
            fixed("wallet_amount", Int),
            fixed("description", Text),
            fixed("metadata", Json),
            moves("status", Text),
            moves("captured", Int),
            moves("refunded", Int),
            moves("refunding", Int),
            moves("working", Int),
            fixed("provider", Text),
            fixed("endpoint", Text),
            moves("provider_reference", Text),
            moves("failure", Text),
            moves("decline_code", Text),
            moves("created_at", Int),
            moves("revision", Int),
        ],
        more: "",
    };

    fn put<'a>(&'a self, batch: &mut Batch<'a>) {
        let (order, sums, failure) = (&self.order, &self.sums, self.failure.as_ref());
        batch.int(self.tenant.to_i64());
        batch.int(self.id.to_i64());
        batch.int(order.amount.minor());
        batch.text(order.amount.asset().code().to_owned());
        batch.text(order.payment_method.reveal());
        batch.bool(order.capture);
        batch.int(order.destination.to_i64());
        batch.int(order.wallet.map(|wallet| wallet.account.to_i64()));
        batch.int(order.wallet.map(|wallet| wallet.amount));
        batch.text_if(order.description.as_ref().map(Masked::reveal));
        metadata::put(&order.metadata, batch);
        batch.text(self.status.name());
        batch.int(sums.captured);
        batch.int(sums.refunded);
        batch.int(sums.refunding);
        batch.int(self.working.map(OperationId::to_i64));
        batch.text(&*self.provider.profile);
        batch.text(&*self.provider.endpoint);
        batch.text_if(self.provider_reference.as_deref());
        batch.text_if(failure.map(|failure| failure.code.name()));
        batch.text_if(failure.and_then(|failure| failure.decline_code.as_deref()));
        batch.int(self.created_at.ms());
        batch.number(self.revision);
    }

    fn take(reader: &mut RowReader<'_>) -> Result<Charge, Damage> {
        let (tenant, id) = (TenantId::from_i64(reader.int()?), ChargeId::from_i64(reader.int()?));
        let minor = reader.int()?;
        let asset = reader.asset()?;
        let order = ChargeOrder {
            amount: Money::new(minor, asset).map_err(|_| reader.damage("the amount is invalid"))?,
            payment_method: Masked::new(reader.raw()?),
            capture: reader.raw()?,
            destination: AccountId::from_i64(reader.int()?),
            wallet: take_wallet(reader)?,
            description: reader.raw::<Option<String>>()?.map(Masked::new),
            metadata: metadata::take(reader)?,
        };
        let status = reader.word(ChargeStatus::parse)?;
        let sums = ChargeSums { captured: reader.int()?, refunded: reader.int()?, refunding: reader.int()? };
        let working = reader.raw::<Option<i64>>()?.map(OperationId::from_i64);
        let provider = reader.provider()?;
        let provider_reference = reader.raw()?;
        Ok(Charge {
            id,
            tenant,
            order: Arc::new(order),
            status,
            sums,
            working,
            provider,
            provider_reference,
            failure: take_failure(reader)?,
            created_at: reader.time()?,
            revision: reader.number()?,
        })
    }
}

fn take_wallet(reader: &mut RowReader<'_>) -> Result<Option<Wallet>, Damage> {
    match (reader.raw::<Option<i64>>()?, reader.raw::<Option<i64>>()?) {
        (None, None) => Ok(None),
        (Some(account), Some(amount)) => Ok(Some(Wallet { account: AccountId::from_i64(account), amount })),
        (Some(_), None) | (None, Some(_)) => Err(reader.damage("a wallet has an account and an amount")),
    }
}

/// Takes a failure's code and the issuer's reason.
pub(super) fn take_failure(reader: &mut RowReader<'_>) -> Result<Option<PaymentFailure>, Damage> {
    let code = reader.word_if(FailureCode::parse)?;
    let decline_code = reader.raw()?;
    Ok(code.map(|code| PaymentFailure { code, decline_code }))
}
