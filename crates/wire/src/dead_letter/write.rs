//! Writing a dead letter, and what came of resolving one. The order of members is part of the form.

use crate::time::Stamp;
use crate::{charge, json, refund};
use counterfoil_core::outbox::{Flow, Park};
use counterfoil_core::payments::flow;
use counterfoil_core::payments::operation::{Kind as Asked, Operation};
use counterfoil_core::payments::provider::Step;
use counterfoil_core::types::reference::{Kind, Reference, References};
use counterfoil_engine::service::{DeadLetter, Resolution};

/// The dead letter's own reference.
pub fn id(letter: &DeadLetter, references: &References) -> Reference {
    references.seal(Kind::DeadLetter, letter.outbox.id.to_i64())
}

/// Appends a dead letter.
pub fn write(out: &mut Vec<u8>, letter: &DeadLetter, references: &References) {
    let DeadLetter { outbox, charge, .. } = letter;
    let of = references.seal(Kind::Charge, charge.id.to_i64());
    let refund = refund_of(letter).map(|refund| references.seal(Kind::Refund, refund.id.to_i64()));
    let amount = letter.operation.as_ref().map_or(charge.order.amount, |operation| operation.amount);
    json::object(out, |all| {
        all.string("id", id(letter, references).as_str())
            .string("object", "dead_letter")
            .string("flow", outbox.saga.flow.name())
            .string_or_null("step", flow::step(outbox.saga).map(Step::name))
            .string_or_null("reason", outbox.parked.map(Park::name))
            .string("charge", of.as_str())
            .string_or_null("refund", refund.as_ref().map(Reference::as_str))
            .integer("amount", amount.minor())
            .string("currency", amount.asset().code())
            .integer("money_at_risk", money_at_risk(letter))
            .object("gateway", |gateway| {
                let reference = letter.operation.as_ref().and_then(|one| one.provider_reference.as_deref());
                gateway
                    .string("name", &outbox.provider.profile)
                    .string("endpoint", &outbox.provider.endpoint)
                    .string_or_null("reference", reference.or(charge.provider_reference.as_deref()));
            })
            .object("attempts", |attempts| {
                let known = &outbox.history;
                attempts
                    .count("generation", u64::from(known.generation))
                    .count("idle", u64::from(known.idle_calls))
                    .count("server_errors", u64::from(known.server_errors))
                    .boolean("unknown", known.unknown)
                    .string("first_sent_at", Stamp::of(known.first_sent_at).as_str())
                    .string("last_sent_at", Stamp::of(known.last_sent_at).as_str());
            })
            .array("suggestions", suggestions(letter), json::string)
            .string("timeline", &format!("/v1/charges/{of}/timeline"))
            .string("created_at", Stamp::of(outbox.created_at).as_str());
    });
}

/// Appends what came of resolving `letter`, which stands as it was left.
pub fn write_resolved(
    out: &mut Vec<u8>,
    letter: &DeadLetter,
    resolution: &Resolution,
    references: &References,
) {
    json::object(out, |all| {
        all.string("object", "dead_letter_resolution")
            .string("dead_letter", id(letter, references).as_str())
            .string("resolution", resolution.name())
            .value("charge", |out| charge::write::write(out, &letter.charge, references));
        match refund_of(letter) {
            Some(one) => all.value("refund", |out| refund::write(out, one, &letter.charge, references)),
            None => all.null("refund"),
        };
    });
}

/// What the provider may have moved without our knowing; of a split charge only the card's part.
fn money_at_risk(letter: &DeadLetter) -> i64 {
    letter.operation.as_ref().map_or(letter.charge.order.card(), |operation| operation.amount.minor())
}

fn refund_of(letter: &DeadLetter) -> Option<&Operation> {
    letter.operation.as_ref().filter(|operation| operation.kind == Asked::Refund)
}

/// Resolutions that can lead somewhere, the likeliest first.
fn suggestions(letter: &DeadLetter) -> Vec<&'static str> {
    // Only what is held can be undone at the provider; what was taken is adopted and refunded.
    let holds = match letter.outbox.saga.flow {
        Flow::Authorize | Flow::Split => true,
        Flow::Charge | Flow::Capture | Flow::Void | Flow::Refund => false,
    };
    let all: &[&str] = match letter.outbox.parked {
        Some(Park::AnswerDiffers | Park::Contradiction) => &["adopt", "void"],
        Some(Park::NoEvidence) => &["adopt", "void", "fail"],
        Some(Park::CannotUndo) => &["retry", "adopt", "fail"],
        None => &[],
    };
    all.iter().copied().filter(|word| holds || *word != "void").collect()
}
