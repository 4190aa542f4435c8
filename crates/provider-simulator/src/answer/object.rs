//! JSON forms of the Stripe objects that this provider supports.

use bytes::Bytes;

use super::Json;
use crate::id;
use crate::intents::{CaptureMethod, Intent, Status};
use crate::refunds::Refund;
use crate::refusal::Refusal;
use crate::state::State;

pub(crate) fn intent(json: &mut Json, state: &State, number: u32, status: Status) {
    let intent = state.intent(number);
    let capture_method = match intent.capture_method {
        CaptureMethod::Automatic => "automatic",
        CaptureMethod::Manual => "manual",
    };
    json.raw(r#"{"id":"#).id(id::INTENT, state.run, number);
    json.raw(r#","object":"payment_intent","amount":"#).number(intent.amount);
    json.raw(r#","amount_capturable":"#).number(intent.capturable(status));
    json.raw(r#","amount_received":"#).number(Intent::received(status));
    json.raw(r#","capture_method":""#).raw(capture_method);
    json.raw(r#"","confirmation_method":"automatic","created":"#).number(intent.created_ms / 1000);
    json.raw(r#","currency":"#).quoted(intent.currency.as_str());
    json.raw(r#","last_payment_error":"#);
    match status {
        Status::RequiresPaymentMethod => decline(json, state, number, false),
        Status::RequiresCapture | Status::Succeeded { .. } | Status::Canceled => {
            json.raw("null");
        }
    }
    json.raw(r#","latest_charge":"#).id(id::CHARGE, state.run, number);
    json.raw(r#","livemode":false,"metadata":"#).raw(&intent.metadata.json);
    json.raw(r#","payment_method":""#).raw(intent.method.name());
    json.raw(r#"","status":""#).raw(status.name()).raw(r#""}"#);
}

pub(crate) fn declined(json: &mut Json, state: &State, number: u32) {
    json.raw(r#"{"error":"#);
    decline(json, state, number, true);
    json.raw("}");
}

pub(crate) fn payout(json: &mut Json, state: &State, number: u32) {
    let Some(payout) = state.payout(number) else { return };
    json.raw(r#"{"id":"#).id(id::PAYOUT, state.run, number);
    json.raw(r#","object":"payout","amount":"#).number(payout.amount);
    json.raw(r#","currency":""#).raw(payout.currency.as_str());
    json.raw(r#"","created":"#).number(payout.created_ms / 1000);
    json.raw(r#","destination":"#).quoted(&payout.destination);
    json.raw(r#","status":""#).raw(if payout.failure().is_some() { "failed" } else { "pending" });
    json.raw(r#"","failure_code":"#).quoted_or_null(payout.failure());
    json.raw(r#","livemode":false,"metadata":"#).raw(&payout.metadata.json).raw("}");
}

pub(crate) fn refund(json: &mut Json, state: &State, refund: &Refund) {
    json.raw(r#"{"id":"#).id(id::REFUND, state.run, refund.number);
    json.raw(r#","object":"refund","amount":"#).number(refund.amount);
    json.raw(r#","charge":"#).id(id::CHARGE, state.run, refund.intent);
    json.raw(r#","created":"#).number(refund.created_ms / 1000);
    json.raw(r#","currency":"#).quoted(state.intent(refund.intent).currency.as_str());
    json.raw(r#","metadata":"#).raw(&refund.metadata.json);
    json.raw(r#","payment_intent":"#).id(id::INTENT, state.run, refund.intent);
    json.raw(r#","reason":null,"status":"succeeded"}"#);
}

pub(crate) fn refusal(json: &mut Json, refusal: &Refusal) {
    json.raw(r#"{"error":{"type":""#).raw(refusal.kind).raw("\"");
    if let Some(code) = refusal.code {
        json.raw(r#","code":""#).raw(code).raw("\"");
    }
    if let Some(param) = &refusal.param {
        json.raw(r#","param":"#).quoted(param);
    }
    json.raw(r#","message":"#).quoted(&refusal.message).raw("}}");
}

/// The intents found by a search, newest first.
pub(crate) fn search_result(state: &State, found: &[(u32, Status)], has_more: bool) -> Bytes {
    let mut json = Json::with_capacity(128 + 512 * found.len());
    json.raw(r#"{"object":"search_result","data":["#);
    for (place, (number, status)) in found.iter().enumerate() {
        if place > 0 {
            json.raw(",");
        }
        intent(&mut json, state, *number, *status);
    }
    json.raw(r#"],"has_more":"#).raw(if has_more { "true" } else { "false" });
    json.raw(r#","next_page":null,"url":"/v1/payment_intents/search"}"#);
    json.into_bytes()
}

/// The error object of a decline; inside an intent it does not repeat the intent.
fn decline(json: &mut Json, state: &State, number: u32, with_intent: bool) {
    let (decline_code, message) = state.intent(number).method.decline();
    json.raw(r#"{"type":"card_error","code":"card_declined","decline_code":""#).raw(decline_code);
    json.raw(r#"","charge":"#).id(id::CHARGE, state.run, number);
    json.raw(r#","message":"#).quoted(message);
    if with_intent {
        json.raw(r#","payment_intent":"#);
        intent(json, state, number, Status::RequiresPaymentMethod);
    }
    json.raw("}");
}
