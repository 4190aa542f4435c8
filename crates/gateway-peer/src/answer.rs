//! Maps the answers of a peer to outcomes. A status or body that the contract does not foresee is
//! unknown, never believed.

use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, LookupResult, ProviderFault, ProviderOutcome, Rejection, Stands,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_gateway::port::is_storable;
use counterfoil_transport::HttpAnswer;
use serde::Deserialize;

const UNREADABLE: ProviderOutcome = ProviderOutcome::Unknown(Cause::Unreadable);

/// The fields of a transfer that an outcome needs.
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

/// The field of a problem document that an outcome needs.
#[derive(Deserialize)]
struct Problem {
    error: String,
}

/// The fields of a key's record that a lookup needs.
#[derive(Deserialize)]
struct KeyReply {
    state: String,
    resource: Option<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    r#type: String,
    id: String,
}

/// The meaning of a key's record.
pub(crate) enum KeyRecord {
    /// The key made this transfer.
    Made(String),
    /// The request was refused for good and made nothing.
    Refused,
    Unclear(Cause),
}

/// The outcome of a call for a transfer from `ours` to `destination`.
pub(crate) fn outcome(answer: &HttpAnswer, ours: &str, destination: &str) -> ProviderOutcome {
    let error = || read::<Problem>(&answer.body).map(|problem| problem.error);
    match answer.status.as_u16() {
        200..=299 => done(answer, ours, Some(destination)),
        // Only these two errors are stored under the key. Other 400s leave the key free and concern
        // a single call.
        400 => match error() {
            Some(error) if error == "insufficient_funds" || error == "cap_exceeded" => refused(&error),
            error => rejected(error, ProviderFault::Request),
        },
        404 => rejected(error(), ProviderFault::Request),
        401 | 403 => rejected(error(), ProviderFault::Credentials),
        409 => ProviderOutcome::Unknown(Cause::InProgress),
        429 => ProviderOutcome::Busy { retry_after: answer.pause() },
        503 => match error().as_deref() {
            // The peer did not start the request.
            Some("shutting_down") => ProviderOutcome::Busy { retry_after: answer.pause() },
            // The peer's commit may be in doubt. The key tells once its store is back, and no error
            // is stored under it.
            Some("store_unavailable" | "outcome_pending") => ProviderOutcome::Unknown(Cause::InProgress),
            Some(_) | None => ProviderOutcome::Unknown(Cause::ServerError),
        },
        500..=599 => ProviderOutcome::Unknown(Cause::ServerError),
        // Includes keys used for another request, and keys with an expired answer.
        _ => UNREADABLE,
    }
}

/// The result of looking up a transfer.
pub(crate) fn found(answer: &HttpAnswer, ours: &str) -> LookupResult {
    match answer.status.as_u16() {
        200..=299 => match done(answer, ours, None) {
            approved @ ProviderOutcome::Approved(_) => LookupResult::Payment(approved),
            _ => LookupResult::Unclear(Cause::Unreadable),
        },
        status => LookupResult::Unclear(unclear(status)),
    }
}

/// The meaning of the answer to a key lookup.
pub(crate) fn record(answer: &HttpAnswer) -> KeyRecord {
    let status = answer.status.as_u16();
    if status != 200 {
        return KeyRecord::Unclear(unclear(status));
    }
    let Some(KeyReply { state, resource }) = read::<KeyReply>(&answer.body) else {
        return KeyRecord::Unclear(Cause::Unreadable);
    };
    let plain =
        |id: &str| id.starts_with("tr_") && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match (state.as_str(), resource) {
        // An expired record also names the transfer it made.
        ("completed" | "expired", Some(made)) if made.r#type == "transfer" && plain(&made.id) => {
            KeyRecord::Made(made.id)
        }
        ("failed_terminal", None) => KeyRecord::Refused,
        ("in_flight" | "failed_retry" | "uncertain", _) => KeyRecord::Unclear(Cause::InProgress),
        _ => KeyRecord::Unclear(Cause::Unreadable),
    }
}

/// A refusal that is the key's final answer.
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

/// An executed transfer. The core compares amount, currency and payment.
fn done(answer: &HttpAnswer, ours: &str, destination: Option<&str>) -> ProviderOutcome {
    let Some(transfer) = read::<Transfer>(&answer.body) else { return UNREADABLE };
    if transfer.status != "posted" || !is_storable(&transfer.id) {
        return UNREADABLE;
    }
    // Differing amounts count as zero: the core holds up an amount that was not ordered.
    let moved = if transfer.amount == transfer.amount_posted { transfer.amount } else { 0 };
    // A destination named by its code has an unknown id here.
    let reached = destination.is_none_or(|name| !name.starts_with("ac_") || name == transfer.to);
    let between_ours = transfer.from == ours && reached;
    // A transfer between other accounts is not our payment, despite its metadata.
    let payment = transfer.metadata.counterfoil_payment.filter(|_| between_ours).unwrap_or_default();
    ProviderOutcome::Approved(Approval {
        reference: transfer.id,
        stands: Stands::PaidOut,
        amount_minor: moved,
        asset: Asset::parse(&transfer.currency).ok(),
        payment: Some(payment),
    })
}

/// Parses a body in its expected form. The whole body must be UTF-8: serde alone ignores invalid
/// bytes in unread fields.
fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    serde_json::from_str(std::str::from_utf8(body).ok()?).ok()
}

#[cfg(test)]
mod tests;
