//! Writes dead letters and their resolutions. The order of members is part of the form.

use crate::time::Stamp;
use crate::{charge, json, payout, refund};
use counterfoil_core::outbox::{ParkReason, Payment};
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::operation::{Operation, OperationKind};
use counterfoil_core::payments::provider::ProviderStep;
use counterfoil_core::payments::{PaymentSubject, flow};
use counterfoil_core::types::money::Money;
use counterfoil_core::types::reference::{Reference, ReferenceKind, References};
use counterfoil_engine::service::{DeadLetter, Resolution};

pub fn id(letter: &DeadLetter, references: &References) -> Reference {
    references.seal(ReferenceKind::DeadLetter, letter.outbox.id.to_i64())
}

pub fn write(out: &mut Vec<u8>, letter: &DeadLetter, references: &References) {
    let DeadLetter { outbox, subject } = letter;
    let of = outbox.payment.reference(references);
    let (charge, payout) = match outbox.payment {
        Payment::Charge(_) => (Some(of.as_str()), None),
        Payment::Payout(_) => (None, Some(of.as_str())),
    };
    let refund =
        refund_of(subject).map(|(refund, _)| references.seal(ReferenceKind::Refund, refund.id.to_i64()));
    let amount = asked_for(subject);
    json::object(out, |all| {
        all.string("id", id(letter, references).as_str())
            .string("object", "dead_letter")
            .string("flow", outbox.saga.flow.name())
            .string_or_null("step", flow::step(outbox.saga).map(ProviderStep::name))
            .string_or_null("reason", outbox.parked.map(ParkReason::name))
            .string_or_null("charge", charge)
            .string_or_null("refund", refund.as_ref().map(Reference::as_str))
            .string_or_null("payout", payout)
            .integer("amount", amount.minor())
            .string("currency", amount.asset().code())
            .integer("money_at_risk", subject.amount().minor())
            .object("gateway", |gateway| {
                let own = subject.operation().and_then(|one| one.provider_reference.as_ref());
                let reference = own.or(subject.provider_reference());
                gateway
                    .string("name", outbox.provider.name())
                    .string("endpoint", &outbox.provider.endpoint)
                    .string_or_null("reference", reference.map(String::as_str));
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
            .string("timeline", &timeline(letter, &of))
            .string("created_at", Stamp::of(outbox.created_at).as_str());
    });
}

/// Appends the result of resolving `letter`; the letter's subject is in its resulting state.
pub fn write_resolved(
    out: &mut Vec<u8>,
    letter: &DeadLetter,
    resolution: &Resolution,
    references: &References,
) {
    json::object(out, |all| {
        all.string("object", "dead_letter_resolution")
            .string("dead_letter", id(letter, references).as_str())
            .string("resolution", resolution.name());
        match &letter.subject {
            PaymentSubject::Charge(charge, _) => {
                all.value("charge", |out| charge::write::write(out, charge, references))
            }
            PaymentSubject::Payout(_) => all.null("charge"),
        };
        match refund_of(&letter.subject) {
            Some((one, charge)) => all.value("refund", |out| refund::write(out, one, charge, references)),
            None => all.null("refund"),
        };
        match &letter.subject {
            PaymentSubject::Charge(..) => all.null("payout"),
            PaymentSubject::Payout(payout) => {
                all.value("payout", |out| payout::write(out, payout, references))
            }
        };
    });
}

/// The amount the client asked for. The amount at risk is the provider's part: of a split charge,
/// the card's.
fn asked_for(subject: &PaymentSubject) -> Money {
    match subject {
        PaymentSubject::Charge(charge, None) => charge.order.amount,
        PaymentSubject::Charge(_, Some(_)) | PaymentSubject::Payout(_) => subject.amount(),
    }
}

fn refund_of(subject: &PaymentSubject) -> Option<(&Operation, &Charge)> {
    match subject {
        PaymentSubject::Charge(charge, Some(operation)) if operation.kind == OperationKind::Refund => {
            Some((operation, charge))
        }
        PaymentSubject::Charge(..) | PaymentSubject::Payout(_) => None,
    }
}

/// Path of the payment's timeline.
fn timeline(letter: &DeadLetter, of: &Reference) -> String {
    let list = match letter.outbox.payment {
        Payment::Charge(_) => "charges",
        Payment::Payout(_) => "payouts",
    };
    format!("/v1/{list}/{of}/timeline")
}

/// Promising resolutions, the most likely first.
fn suggestions(letter: &DeadLetter) -> Vec<&'static str> {
    // Only a held amount can be undone at the provider; a captured one is adopted and refunded.
    let holds = flow::give_up(letter.outbox.saga).is_some();
    let all: &[&str] = match letter.outbox.parked {
        Some(ParkReason::AnswerDiffers | ParkReason::Contradiction) => &["adopt", "void"],
        Some(ParkReason::NoEvidence) => &["adopt", "void", "fail"],
        Some(ParkReason::CannotUndo) => &["retry", "adopt", "fail"],
        None => &[],
    };
    all.iter().copied().filter(|word| holds || *word != "void").collect()
}
