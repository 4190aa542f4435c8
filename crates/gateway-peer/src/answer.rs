//! What a peer's answer means. A status or body that its contract does not foresee is unknown, never believed.

use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, LookupResult, ProviderFault, ProviderOutcome, Rejection, Stands,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_gateway::port::is_storable;
use counterfoil_transport::HttpAnswer;
use serde::Deserialize;

const UNREADABLE: ProviderOutcome = ProviderOutcome::Unknown(Cause::Unreadable);

/// A transfer, as far as an outcome needs it.
#[derive(Deserialize)]
struct Transfer {
    id: String,
    from: String,
    to: String,
    amount: i64,
    amount_posted: i64,
    currency: String,
    status: String,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    counterfoil_payment: Option<String>,
}

/// A problem, as far as an outcome needs it.
#[derive(Deserialize)]
struct Problem {
    error: String,
}

/// The record of a key, as far as a lookup needs it.
#[derive(Deserialize)]
struct Key {
    state: String,
    resource: Option<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    r#type: String,
    id: String,
}

/// What the record of a key says.
pub(crate) enum Record {
    /// It made this transfer.
    Made(String),
    /// It was refused for good, and made nothing.
    Refused,
    /// It says nothing.
    Unclear(Cause),
}

/// The outcome of a call for a transfer from `ours` to `destination`.
pub(crate) fn outcome(answer: &HttpAnswer, ours: &str, destination: &str) -> ProviderOutcome {
    let error = || read::<Problem>(&answer.body).map(|problem| problem.error);
    match answer.status.as_u16() {
        200..=299 => done(answer, ours, Some(destination)),
        // Only these two are kept under the key. Another 400 leaves it free, and speaks for this call alone.
        400 => match error() {
            Some(error) if error == "insufficient_funds" || error == "cap_exceeded" => refused(&error),
            error => rejected(error, ProviderFault::Request),
        },
        404 => rejected(error(), ProviderFault::Request),
        401 | 403 => rejected(error(), ProviderFault::Credentials),
        409 => ProviderOutcome::Unknown(Cause::InProgress),
        429 => ProviderOutcome::Busy { retry_after: answer.pause() },
        503 => match error().as_deref() {
            // It took nothing on.
            Some("shutting_down") => ProviderOutcome::Busy { retry_after: answer.pause() },
            // Its commit may be in doubt; the key will say once its store is back, and no error is kept under it.
            Some("store_unavailable" | "outcome_pending") => ProviderOutcome::Unknown(Cause::InProgress),
            Some(_) | None => ProviderOutcome::Unknown(Cause::ServerError),
        },
        500..=599 => ProviderOutcome::Unknown(Cause::ServerError),
        // Among them a key that was used for something else, and one whose answer is no longer kept.
        _ => UNREADABLE,
    }
}

/// What a transfer that was looked up says.
pub(crate) fn found(answer: &HttpAnswer, ours: &str) -> LookupResult {
    match answer.status.as_u16() {
        200..=299 => match done(answer, ours, None) {
            approved @ ProviderOutcome::Approved(_) => LookupResult::Payment(approved),
            _ => LookupResult::Unclear(Cause::Unreadable),
        },
        status => LookupResult::Unclear(unclear(status)),
    }
}

/// What the record of a key says.
pub(crate) fn record(answer: &HttpAnswer) -> Record {
    let status = answer.status.as_u16();
    if status != 200 {
        return Record::Unclear(unclear(status));
    }
    let Some(Key { state, resource }) = read::<Key>(&answer.body) else {
        return Record::Unclear(Cause::Unreadable);
    };
    let plain =
        |id: &str| id.starts_with("tr_") && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match (state.as_str(), resource) {
        // An expired record made what it names as well.
        ("completed" | "expired", Some(made)) if made.r#type == "transfer" && plain(&made.id) => {
            Record::Made(made.id)
        }
        ("failed_terminal", None) => Record::Refused,
        ("in_flight" | "failed_retry" | "uncertain", _) => Record::Unclear(Cause::InProgress),
        _ => Record::Unclear(Cause::Unreadable),
    }
}

/// A refusal that is the key's answer for good.
pub(crate) fn refused(error: &str) -> ProviderOutcome {
    ProviderOutcome::Declined(Decline {
        code: error.to_owned(),
        decline_code: Some(error.to_owned()),
        reference: None,
    })
}

const fn unclear(status: u16) -> Cause {
    match status {
        409 | 429 => Cause::InProgress,
        500..=599 => Cause::ServerError,
        _ => Cause::Unreadable,
    }
}

fn rejected(error: Option<String>, fault: ProviderFault) -> ProviderOutcome {
    let code = error.filter(|code| is_storable(code)).unwrap_or_else(|| "unnamed".to_owned());
    ProviderOutcome::Rejected(Rejection { fault, code })
}

/// A transfer that is there. Amount, currency and payment are compared by the core.
fn done(answer: &HttpAnswer, ours: &str, destination: Option<&str>) -> ProviderOutcome {
    let Some(transfer) = read::<Transfer>(&answer.body) else { return UNREADABLE };
    if transfer.status != "posted" || !is_storable(&transfer.id) {
        return UNREADABLE;
    }
    // Two amounts are none, and the core holds up what is not the one that was asked for.
    let moved = if transfer.amount == transfer.amount_posted { transfer.amount } else { 0 };
    // Named by its code, a destination's id is not known here.
    let reached = destination.is_none_or(|name| !name.starts_with("ac_") || name == transfer.to);
    let between_ours = transfer.from == ours && reached;
    // One between other accounts is not our payment, whatever is written on it.
    let payment = transfer.metadata.counterfoil_payment.filter(|_| between_ours).unwrap_or_default();
    ProviderOutcome::Approved(Approval {
        reference: transfer.id,
        stands: Stands::PaidOut,
        amount_minor: moved,
        asset: Asset::parse(&transfer.currency).ok(),
        payment: Some(payment),
    })
}

/// A body in the form that is foreseen for it. Bytes that are not UTF-8 are no JSON wherever they stand; serde alone would
/// pass over them in a field nobody asks for.
fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    serde_json::from_str(std::str::from_utf8(body).ok()?).ok()
}

#[cfg(test)]
mod tests;
