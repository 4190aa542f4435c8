//! Writes a payout. The order of members is part of the form, because replays are byte for byte.

use crate::json;
use crate::metadata;
use crate::time::Stamp;
use counterfoil_core::payments::charge::FailureCode;
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::types::reference::{ReferenceKind, References};

pub fn write(out: &mut Vec<u8>, payout: &Payout, references: &References) {
    let id = references.seal(ReferenceKind::Payout, payout.id.to_i64());
    write_as(out, payout, id.as_str(), references);
}

pub(crate) fn write_as(out: &mut Vec<u8>, payout: &Payout, id: &str, references: &References) {
    let (order, by_peer) = (&payout.order, payout.provider.peer().is_some());
    json::object(out, |all| {
        all.string("id", id)
            .string("object", "payout")
            .integer("amount", order.amount.minor())
            .string("currency", order.amount.asset().code())
            .string("status", payout.status.name())
            .string("account", references.seal(ReferenceKind::Account, order.account.to_i64()).as_str())
            .string_or_null("destination", order.destination.as_ref().map(|name| name.reveal().as_str()))
            .object("gateway", |gateway| {
                gateway
                    .string("name", payout.provider.name())
                    .string_or_null("reference", payout.provider_reference.as_deref());
            });
        match &payout.failure {
            None => all.null("failure"),
            Some(failure) => all.object("failure", |object| {
                object
                    .string("code", failure.code.name())
                    .string_or_null("decline_code", failure.decline_code.as_deref())
                    .string("message", if by_peer { peers(failure.code) } else { message(failure.code) });
            }),
        };
        all.string_or_null("description", order.description.as_ref().map(|text| text.reveal().as_str()));
        metadata::write(all, &order.metadata);
        all.string("created_at", Stamp::of(payout.created_at).as_str());
    });
}

const fn message(code: FailureCode) -> &'static str {
    match code {
        FailureCode::CardDeclined | FailureCode::PayoutFailed => {
            "The payment provider could not pay to the bank account."
        }
        FailureCode::GatewayRejected => "The payment provider did not accept the request.",
        FailureCode::GatewayUnauthorized => "The payment provider did not accept the server's credentials.",
        FailureCode::GatewayUnavailable => "The payment provider could not be reached; nothing was paid out.",
        FailureCode::MarkedFailed => "The outcome was unknown; an operator found that nothing was paid out.",
    }
}

/// The message for payouts to a peer.
const fn peers(code: FailureCode) -> &'static str {
    match code {
        FailureCode::CardDeclined | FailureCode::PayoutFailed => "An account at the peer did not allow it.",
        FailureCode::GatewayRejected => "The peer did not accept the request.",
        FailureCode::GatewayUnauthorized => "The peer did not accept the server's credentials.",
        FailureCode::GatewayUnavailable => "The peer could not be reached; nothing was paid out.",
        FailureCode::MarkedFailed => message(code),
    }
}
