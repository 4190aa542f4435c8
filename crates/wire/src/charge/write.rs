//! Writing a charge, and the stored answers made of it. The order of members is part of the form: replays are
//! byte for byte.

use crate::json;
use crate::problem::{Code, Problem};
use crate::time::Stamp;
use bytes::Bytes;
use counterfoil_core::idempotency::reply::{Media, Reply};
use counterfoil_core::payments::charge::{Charge, Failure, FailureCode, Status};
use counterfoil_core::types::reference::{Kind, References};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::present::Present;

/// Renders charges under the store's references.
#[derive(Clone, Debug)]
pub struct Presenter {
    references: References,
}

impl Presenter {
    /// With the references of the store the charges are in.
    pub const fn new(references: References) -> Presenter {
        Presenter { references }
    }
}

impl Present for Presenter {
    fn charge(&self, charge: &Charge) -> Reply {
        let id = self.references.seal(Kind::Charge, charge.id.to_i64());
        let mut body = Vec::with_capacity(512);
        write_as(&mut body, charge, id.as_str(), &self.references);
        Reply {
            status: 201,
            media: Media::Json,
            location: Some(format!("/v1/charges/{id}")),
            body: Bytes::from(body),
        }
    }

    fn failure(&self, charge: &Charge, request: Ulid) -> Reply {
        let id = self.references.seal(Kind::Charge, charge.id.to_i64());
        let problem = match &charge.failure {
            Some(Failure { code, decline_code }) => match code {
                FailureCode::CardDeclined => {
                    Problem::new(Code::CardDeclined).decline_code(decline_code.clone()).charge(id)
                }
                FailureCode::GatewayRejected => {
                    Problem::new(Code::GatewayRejected).charge(id).safe_new_key(true)
                }
                FailureCode::GatewayUnauthorized => {
                    Problem::new(Code::GatewayUnauthorized).charge(id).safe_new_key(true)
                }
                FailureCode::GatewayUnavailable => {
                    Problem::new(Code::GatewayUnavailable).charge(id).safe_new_key(true)
                }
            },
            // A failed charge always says why; should it not, its owner still gets an answer that names it.
            None => Problem::new(Code::InternalError).charge(id),
        };
        Reply {
            status: problem.code().status(),
            media: Media::Problem,
            location: None,
            body: problem.body(request),
        }
    }
}

/// Appends a charge.
pub fn write(out: &mut Vec<u8>, charge: &Charge, references: &References) {
    let id = references.seal(Kind::Charge, charge.id.to_i64());
    write_as(out, charge, id.as_str(), references);
}

fn write_as(out: &mut Vec<u8>, charge: &Charge, id: &str, references: &References) {
    let order = &charge.order;
    let destination = references.seal(Kind::Account, order.destination.to_i64());
    json::object(out, |all| {
        all.string("id", id)
            .string("object", "charge")
            .integer("amount", order.amount.minor())
            .string("currency", order.amount.asset().code())
            .string("status", charge.status.name())
            .boolean("captured", charge.status == Status::Succeeded)
            .integer("amount_refunded", 0)
            .string("payment_method", order.payment_method.reveal())
            .string("destination", destination.as_str())
            .object("gateway", |gateway| {
                gateway
                    .string("name", &charge.provider)
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
        all.string_or_null("description", order.description.as_ref().map(|text| text.reveal().as_str()))
            .object("metadata", |metadata| {
                for (name, value) in &order.metadata {
                    metadata.string(name, value.reveal());
                }
            })
            .string("created_at", Stamp::of(charge.created_at).as_str());
    });
}

const fn message(code: FailureCode) -> &'static str {
    match code {
        FailureCode::CardDeclined => "The card was declined.",
        FailureCode::GatewayRejected => "The payment provider did not accept the request.",
        FailureCode::GatewayUnauthorized => "The payment provider did not accept the server's credentials.",
        FailureCode::GatewayUnavailable => "The payment provider could not be reached; nothing was charged.",
    }
}
