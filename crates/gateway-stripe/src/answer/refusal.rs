//! Error objects: declined cards and rejected calls.

use super::intent::Metadata;
use super::{UNREADABLE, is_storable, read};
use counterfoil_core::payments::provider::{Decline, ProviderFault, ProviderOutcome, Rejection};
use serde::Deserialize;

#[derive(Deserialize)]
struct Envelope<T> {
    error: T,
}

/// The reason of a failure.
#[derive(Deserialize)]
pub(super) struct CardError {
    #[serde(rename = "type")]
    kind: Kind,
    code: Option<String>,
    decline_code: Option<String>,
    payment_intent: Option<Mention>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    CardError,
    #[serde(other)]
    Other,
}

/// The payment named by an error.
#[derive(Deserialize)]
struct Mention {
    id: String,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct CallError {
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<String>,
}

/// The outcome of a 402.
pub(super) fn declined(body: &[u8], payment: &str) -> ProviderOutcome {
    let Some(Envelope { error }) = read::<Envelope<CardError>>(body) else {
        return UNREADABLE;
    };
    let mentioned = error.payment_intent.as_ref();
    if mentioned.is_some_and(|intent| intent.metadata.as_ref().is_some_and(|m| m.contradicts(payment))) {
        return UNREADABLE;
    }
    error.declined(None)
}

/// The outcome of a 400, 401, 403 or 404. The status decides; the body only adds a code.
pub(super) fn rejected(body: &[u8], fault: ProviderFault) -> ProviderOutcome {
    let error = serde_json::from_slice::<Envelope<CallError>>(body).ok().map(|envelope| envelope.error);
    // The key was used before with other content. Something was executed under the key, but the
    // answer does not describe it.
    if error.as_ref().is_some_and(|error| error.kind.as_deref() == Some("idempotency_error")) {
        return UNREADABLE;
    }
    let code = error.and_then(|error| error.code.or(error.kind)).filter(|code| is_storable(code));
    ProviderOutcome::Rejected(Rejection { fault, code: code.unwrap_or_else(|| "unnamed".to_owned()) })
}

impl CardError {
    /// The decline described by the error. The payment's reference comes from the caller or from
    /// the error itself.
    pub(super) fn declined(self, reference: Option<String>) -> ProviderOutcome {
        let decline = Decline {
            code: self.code.unwrap_or_else(|| "card_error".to_owned()),
            decline_code: self.decline_code,
            reference: reference.or(self.payment_intent.map(|intent| intent.id)),
        };
        let words = [Some(&decline.code), decline.decline_code.as_ref(), decline.reference.as_ref()];
        let storable = words.into_iter().flatten().all(|word| is_storable(word));
        match self.kind {
            Kind::CardError if storable => ProviderOutcome::Declined(decline),
            Kind::CardError | Kind::Other => UNREADABLE,
        }
    }
}
