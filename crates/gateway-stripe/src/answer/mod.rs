//! Maps answers to outcomes. A status or body that the protocol does not foresee is unknown, never
//! believed.

mod intent;
mod payout;
mod refund;
mod refusal;
mod search;

use counterfoil_core::payments::provider::{
    Cause, LookupResult, ProviderFault, ProviderOutcome, ProviderStep,
};
use counterfoil_gateway::port::is_storable;
use counterfoil_gateway::{ProviderCall, ProviderLookup};
use counterfoil_transport::HttpAnswer;
use intent::Intent;
use serde::Deserialize;

const UNREADABLE: ProviderOutcome = ProviderOutcome::Unknown(Cause::Unreadable);

/// The outcome of a call.
pub(crate) fn outcome(answer: &HttpAnswer, call: &ProviderCall) -> ProviderOutcome {
    let payment = call.payment.as_str();
    match answer.status.as_u16() {
        200..=299 => match call.step {
            ProviderStep::Refund => refund::outcome(&answer.body, call),
            ProviderStep::Payout => payout::outcome(&answer.body, payment),
            step @ (ProviderStep::Charge
            | ProviderStep::Authorize
            | ProviderStep::Capture
            | ProviderStep::Void) => {
                let outcome = read::<Intent<'_>>(&answer.body)
                    .and_then(|intent| intent.after(step, payment, call.amount));
                outcome.unwrap_or(UNREADABLE)
            }
        },
        400 | 404 => refusal::rejected(&answer.body, ProviderFault::Request),
        401 | 403 => refusal::rejected(&answer.body, ProviderFault::Credentials),
        402 => refusal::declined(&answer.body, payment),
        409 => ProviderOutcome::Unknown(Cause::InProgress),
        429 => ProviderOutcome::Busy { retry_after: answer.pause() },
        500..=599 => ProviderOutcome::Unknown(Cause::ServerError),
        _ => UNREADABLE,
    }
}

/// The result of a lookup.
pub(crate) fn found(answer: &HttpAnswer, lookup: &ProviderLookup) -> LookupResult {
    match answer.status.as_u16() {
        200..=299 => {}
        409 | 429 => return LookupResult::Unclear(Cause::InProgress),
        500..=599 => return LookupResult::Unclear(Cause::ServerError),
        _ => return LookupResult::Unclear(Cause::Unreadable),
    }
    match lookup.step {
        ProviderStep::Charge | ProviderStep::Authorize => search::found(&answer.body, &lookup.payment),
        ProviderStep::Payout => payout::found(&answer.body, lookup),
        step @ (ProviderStep::Capture | ProviderStep::Void | ProviderStep::Refund) => {
            match read::<Intent<'_>>(&answer.body) {
                Some(intent) if Some(intent.id()) == lookup.reference.as_deref() => {
                    // An unchanged payment has not seen the step.
                    let outcome = intent.after(step, &lookup.payment, lookup.amount);
                    outcome.map_or(LookupResult::Nothing, LookupResult::Payment)
                }
                Some(_) | None => LookupResult::Unclear(Cause::Unreadable),
            }
        }
    }
}

/// Parses a body in its expected form. The whole body must be UTF-8: serde alone ignores invalid
/// bytes in unread fields.
fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    serde_json::from_str(std::str::from_utf8(body).ok()?).ok()
}
