//! A refund, as far as an outcome needs it.

use super::{UNREADABLE, is_storable, read};
use counterfoil_core::payments::provider::{
    Approval, Cause, ProviderFault, ProviderOutcome, Rejection, Stands,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_gateway::ProviderCall;
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Deserialize)]
struct Refund<'a> {
    id: String,
    status: Status,
    amount: i64,
    #[serde(borrow, default)]
    currency: Cow<'a, str>,
    payment_intent: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Status {
    Succeeded,
    Pending,
    Failed,
    Canceled,
    #[serde(other)]
    Unsettled,
}

/// What a 2xx says about a refund.
pub(super) fn outcome(body: &[u8], call: &ProviderCall) -> ProviderOutcome {
    let Some(refund) = read::<Refund<'_>>(body) else { return UNREADABLE };
    if !is_storable(&refund.id) {
        return UNREADABLE;
    }
    match refund.status {
        Status::Succeeded => {
            // A refund of another payment is compared and held up by the core.
            let payment = match &refund.payment_intent {
                Some(intent) if Some(intent) != call.reference.as_ref() => Some(intent.clone()),
                Some(_) | None => Some(call.payment.clone()),
            };
            ProviderOutcome::Approved(Approval {
                reference: refund.id,
                stands: Stands::Refunded,
                amount_minor: refund.amount,
                asset: Asset::currency(&refund.currency).ok(),
                payment,
            })
        }
        // It will succeed or fail later; under its key the provider says which.
        Status::Pending => ProviderOutcome::Unknown(Cause::InProgress),
        Status::Failed | Status::Canceled => ProviderOutcome::Rejected(Rejection {
            fault: ProviderFault::Request,
            code: "refund_failed".to_owned(),
        }),
        Status::Unsettled => UNREADABLE,
    }
}
