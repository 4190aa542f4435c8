//! Writes a refund. The order of members is part of the form, because replays are byte for byte.

use crate::json;
use crate::time::Stamp;
use counterfoil_core::payments::charge::{Charge, FailureCode};
use counterfoil_core::payments::operation::Operation;
use counterfoil_core::types::reference::{ReferenceKind, References};

pub fn write(out: &mut Vec<u8>, refund: &Operation, charge: &Charge, references: &References) {
    let id = references.seal(ReferenceKind::Refund, refund.id.to_i64());
    write_as(out, refund, charge, id.as_str(), references);
}

pub(crate) fn write_as(
    out: &mut Vec<u8>,
    refund: &Operation,
    charge: &Charge,
    id: &str,
    references: &References,
) {
    json::object(out, |all| {
        all.string("id", id)
            .string("object", "refund")
            .integer("amount", refund.amount.minor())
            .string("currency", refund.amount.asset().code())
            .string("charge", references.seal(ReferenceKind::Charge, refund.charge.to_i64()).as_str())
            .string("status", refund.status.name())
            .object("gateway", |gateway| {
                gateway
                    .string("name", &charge.provider.profile)
                    .string_or_null("reference", refund.provider_reference.as_deref());
            });
        match &refund.failure {
            None => all.null("failure"),
            Some(failure) => all.object("failure", |object| {
                object
                    .string("code", failure.code.name())
                    .string_or_null("decline_code", failure.decline_code.as_deref())
                    .string("message", message(failure.code));
            }),
        };
        all.string("created_at", Stamp::of(refund.created_at).as_str());
    });
}

const fn message(code: FailureCode) -> &'static str {
    match code {
        FailureCode::CardDeclined | FailureCode::PayoutFailed => "The refund was declined.",
        FailureCode::GatewayRejected => "The payment provider did not accept the request.",
        FailureCode::GatewayUnauthorized => "The payment provider did not accept the server's credentials.",
        FailureCode::GatewayUnavailable => {
            "The payment provider could not be reached; nothing was given back."
        }
        FailureCode::MarkedFailed => {
            "The outcome was unknown; an operator found that nothing was given back."
        }
    }
}
