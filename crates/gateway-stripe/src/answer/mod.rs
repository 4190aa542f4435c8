//! What an answer means. A status or body that the protocol does not foresee is unknown, never believed.

mod intent;
mod payout;
mod refund;
mod refusal;
mod search;

use crate::transport::Answer;
use counterfoil_core::payments::provider::{Cause, Fault, Found, Outcome, Step};
use counterfoil_core::types::limits::PROVIDER_REFERENCE_BYTES_MAX;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::{Call, Lookup};
use intent::Intent;
use serde::Deserialize;

const UNREADABLE: Outcome = Outcome::Unknown(Cause::Unreadable);
/// Longest pause a provider can ask for: more than this is a mistake on its side.
const RETRY_AFTER_SECONDS_MAX: u64 = 300;

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
        429 => Outcome::Busy { retry_after: answer.retry_after.as_deref().and_then(pause) },
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

/// Whole seconds; a date or any other text is no wish at all.
fn pause(header: &str) -> Option<Span> {
    let seconds: u64 = header.trim().parse().ok()?;
    Some(Span::from_ms(seconds.min(RETRY_AFTER_SECONDS_MAX) * 1_000))
}

/// Whether a provider's reference or code can be stored. Not every store can hold U+0000, and no provider has a use for
/// it or its like.
fn is_storable(word: &str) -> bool {
    !word.is_empty() && word.len() <= PROVIDER_REFERENCE_BYTES_MAX && !word.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_bounded_and_nonsense_is_ignored() {
        for (header, seconds) in [
            ("0", Some(0)),
            ("7", Some(7)),
            (" 7 ", Some(7)),
            ("300", Some(300)),
            ("301", Some(300)),
            ("18446744073709551615", Some(300)),
            ("18446744073709551616", None),
            ("-1", None),
            ("1.5", None),
            ("", None),
            ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ] {
            assert_eq!(pause(header), seconds.map(|s| Span::from_ms(s * 1_000)), "{header}");
        }
    }
}
