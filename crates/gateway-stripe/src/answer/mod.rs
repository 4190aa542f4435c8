//! What an answer means. A status or body that the protocol does not foresee is unknown, never believed.

mod intent;
mod refusal;
mod search;

pub(crate) use search::found;

use crate::transport::Answer;
use counterfoil_core::payments::provider::{Cause, Fault, Outcome};
use counterfoil_core::types::limits::PROVIDER_REFERENCE_BYTES_MAX;
use counterfoil_core::types::time::Span;
use intent::Intent;

const UNREADABLE: Outcome = Outcome::Unknown(Cause::Unreadable);
/// Longest pause a provider can ask for: more than this is a mistake on its side.
const RETRY_AFTER_SECONDS_MAX: u64 = 300;

/// The outcome of a call for this payment.
pub(crate) fn outcome(answer: &Answer, payment: &str) -> Outcome {
    match answer.status.as_u16() {
        200..=299 => match serde_json::from_slice::<Intent<'_>>(&answer.body) {
            Ok(intent) => intent.outcome(payment),
            Err(_) => UNREADABLE,
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

/// Whole seconds; a date or any other text is no wish at all.
fn pause(header: &str) -> Option<Span> {
    let seconds: u64 = header.trim().parse().ok()?;
    Some(Span::from_ms(seconds.min(RETRY_AFTER_SECONDS_MAX) * 1_000))
}

/// Whether a provider's reference or code can be stored.
fn is_storable(word: &str) -> bool {
    !word.is_empty() && word.len() <= PROVIDER_REFERENCE_BYTES_MAX
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
