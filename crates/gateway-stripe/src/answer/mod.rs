//! What an answer means. A status or body that the protocol does not foresee is unknown, never believed.

mod intent;
mod payout;
mod refund;
mod refusal;
mod search;

use counterfoil_core::payments::provider::{Cause, Fault, Found, Outcome, Step};
use counterfoil_gateway::port::is_storable;
use counterfoil_gateway::{Call, Lookup};
use counterfoil_transport::Answer;
use intent::Intent;
use serde::Deserialize;

const UNREADABLE: Outcome = Outcome::Unknown(Cause::Unreadable);

/// The outcome of a call.
pub(crate) fn outcome(answer: &Answer, call: &Call) -> Outcome {
    let payment = call.payment.as_str();
    match answer.status.as_u16() {
        200..=299 => match call.step {
            Step::Refund => refund::outcome(&answer.body, call),
            Step::Payout => payout::outcome(&answer.body, payment),
            step @ (Step::Charge | Step::Authorize | Step::Capture | Step::Void) => {
                let outcome = read::<Intent<'_>>(&answer.body)
                    .and_then(|intent| intent.after(step, payment, call.amount));
                outcome.unwrap_or(UNREADABLE)
            }
        },
        400 | 404 => refusal::rejected(&answer.body, Fault::Request),
        401 | 403 => refusal::rejected(&answer.body, Fault::Credentials),
        402 => refusal::declined(&answer.body, payment),
        409 => Outcome::Unknown(Cause::InProgress),
        429 => Outcome::Busy { retry_after: answer.pause() },
        500..=599 => Outcome::Unknown(Cause::ServerError),
        _ => UNREADABLE,
    }
}

/// What a lookup found.
pub(crate) fn found(answer: &Answer, lookup: &Lookup) -> Found {
    match answer.status.as_u16() {
        200..=299 => {}
        409 | 429 => return Found::Unclear(Cause::InProgress),
        500..=599 => return Found::Unclear(Cause::ServerError),
        _ => return Found::Unclear(Cause::Unreadable),
    }
    match lookup.step {
        Step::Charge | Step::Authorize => search::found(&answer.body, &lookup.payment),
        Step::Payout => payout::found(&answer.body, lookup),
        step @ (Step::Capture | Step::Void | Step::Refund) => {
            match read::<Intent<'_>>(&answer.body) {
                Some(intent) if Some(intent.id()) == lookup.reference.as_deref() => {
                    // A payment that still stands where it stood has not seen the step.
                    let outcome = intent.after(step, &lookup.payment, lookup.amount);
                    outcome.map_or(Found::Nothing, Found::Payment)
                }
                Some(_) | None => Found::Unclear(Cause::Unreadable),
            }
        }
    }
}

/// A body in the form that is foreseen for it. Bytes that are not UTF-8 are no JSON wherever they stand; serde alone would
/// pass over them in a field nobody asks for.
fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    serde_json::from_str(std::str::from_utf8(body).ok()?).ok()
}
