//! Refunds.

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

/// The outcome of a 2xx answer to a refund.
pub(super) fn outcome(body: &[u8], call: &ProviderCall) -> ProviderOutcome {
    let Some(refund) = read::<Refund<'_>>(body) else { return UNREADABLE };
    if !is_storable(&refund.id) {
        return UNREADABLE;
    }
    match refund.status {
        Status::Succeeded => {
            // The core holds up a refund of another payment.
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
        // The refund will succeed or fail later; a retry under its key tells which.
        Status::Pending => ProviderOutcome::Unknown(Cause::InProgress),
        Status::Failed | Status::Canceled => ProviderOutcome::Rejected(Rejection {
            fault: ProviderFault::Request,
            code: "refund_failed".to_owned(),
        }),
        Status::Unsettled => UNREADABLE,
    }
}
