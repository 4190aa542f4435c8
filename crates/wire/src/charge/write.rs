//! Writes a charge. The order of members is part of the form, because replays are byte for byte.

use crate::json;
use crate::metadata;
use crate::time::Stamp;
use counterfoil_core::payments::charge::{Charge, FailureCode};
use counterfoil_core::types::reference::{ReferenceKind, References};

pub fn write(out: &mut Vec<u8>, charge: &Charge, references: &References) {
    let id = references.seal(ReferenceKind::Charge, charge.id.to_i64());
    write_as(out, charge, id.as_str(), references);
}

pub(crate) fn write_as(out: &mut Vec<u8>, charge: &Charge, id: &str, references: &References) {
    let order = &charge.order;
    let destination = references.seal(ReferenceKind::Account, order.destination.to_i64());
    json::object(out, |all| {
        all.string("id", id)
            .string("object", "charge")
            .integer("amount", order.amount.minor())
            .string("currency", order.amount.asset().code())
            .string("status", charge.status.name())
            .boolean("captured", charge.status.is_captured())
            .integer("amount_refunded", charge.sums.refunded)
            .integer("amount_captured", amount_captured(charge));
        match order.wallet {
            None => all.null("wallet"),
            Some(wallet) => all.object("wallet", |object| {
                let account = references.seal(ReferenceKind::Account, wallet.account.to_i64());
                object.string("account", account.as_str()).integer("amount", wallet.amount);
            }),
        };
        all.string("payment_method", order.payment_method.reveal())
            .string("destination", destination.as_str())
            .object("gateway", |gateway| {
                gateway
                    .string("name", &charge.provider.profile)
                    .string_or_null("reference", charge.provider_reference.as_deref());
            });
        match &charge.failure {
            None => all.null("failure"),
            Some(failure) => all.object("failure", |object| {
                object
                    .string("code", failure.code.name())
                    .string_or_null("decline_code", failure.decline_code.as_deref())
                    .string("message", message(failure.code));
            }),
        };
        all.string_or_null("description", order.description.as_ref().map(|text| text.reveal().as_str()));
        metadata::write(all, &order.metadata);
        all.string("created_at", Stamp::of(charge.created_at).as_str());
    });
}

/// The amount captured, from card and wallet together.
fn amount_captured(charge: &Charge) -> i64 {
    let wallet = charge.order.wallet.filter(|_| charge.status.is_captured());
    charge.sums.captured.saturating_add(wallet.map_or(0, |wallet| wallet.amount))
}

const fn message(code: FailureCode) -> &'static str {
    match code {
        FailureCode::CardDeclined | FailureCode::PayoutFailed => "The card was declined.",
        FailureCode::GatewayRejected => "The payment provider did not accept the request.",
        FailureCode::GatewayUnauthorized => "The payment provider did not accept the server's credentials.",
        FailureCode::GatewayUnavailable => "The payment provider could not be reached; nothing was charged.",
        FailureCode::MarkedFailed => "The outcome was unknown; an operator found that nothing was charged.",
    }
}
