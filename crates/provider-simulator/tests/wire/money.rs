//! Requests that move money, and requests that must not.

use serde_json::json;

use crate::provider::{Provider, START_MS, error, form};

const INVALID: &str = "invalid_request_error";
const UNEXPECTED: &str = "payment_intent_unexpected_state";

#[tokio::test]
async fn a_charge_takes_the_money_at_once() {
    let provider = Provider::start();
    let got = provider.charge("k1").await.unwrap();
    assert_eq!(got.status, 200);
    assert!(!got.replayed);
    assert!(got.request_id.starts_with("req_"));
    let intent = got.json();
    assert!(intent["id"].as_str().unwrap().starts_with("pi_"));
    assert!(intent["latest_charge"].as_str().unwrap().starts_with("ch_"));
    for (field, value) in [
        ("object", json!("payment_intent")),
        ("amount", json!(1250)),
        ("amount_received", json!(1250)),
        ("amount_capturable", json!(0)),
        ("currency", json!("usd")),
        ("status", json!("succeeded")),
        ("capture_method", json!("automatic")),
        ("created", json!(START_MS / 1000)),
        ("metadata", json!({"counterfoil_payment": "pay_1", "counterfoil_step": "charge"})),
        ("last_payment_error", json!(null)),
    ] {
        assert_eq!(intent[field], value, "{field}");
    }
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn a_hold_is_captured_once_and_up_to_its_amount() {
    let provider = Provider::start();
    let id = provider.authorize("k1").await;
    let held = provider.get(&format!("/v1/payment_intents/{id}")).await.json();
    assert_eq!((&held["status"], &held["amount_capturable"]), (&json!("requires_capture"), &json!(1250)));
    let capture = format!("/v1/payment_intents/{id}/capture");
    let above = provider.post(&capture, "k2", "amount_to_capture=1251").await.unwrap();
    assert_eq!(above.error(), error(400, INVALID, "amount_too_large", "amount_to_capture"));
    let zero = provider.post(&capture, "k3", "amount_to_capture=0").await.unwrap();
    assert_eq!(zero.error(), error(400, INVALID, "parameter_invalid_integer", "amount_to_capture"));
    let captured = provider.post(&capture, "k4", "amount_to_capture=1000").await.unwrap().json();
    assert_eq!((&captured["status"], &captured["amount_received"]), (&json!("succeeded"), &json!(1000)));
    assert_eq!(captured["amount_capturable"], json!(0));
    let again = provider.post(&capture, "k5", "").await.unwrap();
    assert_eq!(again.error(), error(400, INVALID, UNEXPECTED, ""));
    assert_eq!(provider.truth(), [("authorize", 1250), ("capture", 1000)]);
}

#[tokio::test]
async fn a_capture_without_an_amount_takes_all() {
    let provider = Provider::start();
    let id = provider.authorize("k1").await;
    provider.post(&format!("/v1/payment_intents/{id}/capture"), "k2", "").await.unwrap();
    assert_eq!(provider.truth(), [("authorize", 1250), ("capture", 1250)]);
}

#[tokio::test]
async fn a_hold_is_cancelled_once_and_captured_money_is_not() {
    let provider = Provider::start();
    let id = provider.authorize("k1").await;
    let cancel = format!("/v1/payment_intents/{id}/cancel");
    let cancelled = provider.post(&cancel, "k2", "cancellation_reason=abandoned").await.unwrap().json();
    assert_eq!(cancelled["status"], json!("canceled"));
    let again = provider.post(&cancel, "k3", "").await.unwrap();
    assert_eq!(again.error(), error(400, INVALID, UNEXPECTED, ""));
    let late = provider.post(&format!("/v1/payment_intents/{id}/capture"), "k4", "").await.unwrap();
    assert_eq!(late.error(), error(400, INVALID, UNEXPECTED, ""));
    let charged = provider.charge("k5").await.unwrap().id();
    let captured = provider.post(&format!("/v1/payment_intents/{charged}/cancel"), "k6", "").await.unwrap();
    assert_eq!(captured.error(), error(400, INVALID, UNEXPECTED, ""));
    assert_eq!(provider.truth(), [("authorize", 1250), ("cancel", 1250), ("charge", 1250)]);
}

#[tokio::test]
async fn refunds_add_up_to_the_captured_amount() {
    let provider = Provider::start();
    let id = provider.charge("k1").await.unwrap().id();
    let part =
        provider.post("/v1/refunds", "k2", &format!("payment_intent={id}&amount=1000")).await.unwrap().json();
    assert!(part["id"].as_str().unwrap().starts_with("re_"));
    assert_eq!(
        (&part["object"], &part["amount"], &part["currency"], &part["status"], &part["payment_intent"]),
        (&json!("refund"), &json!(1000), &json!("usd"), &json!("succeeded"), &json!(id))
    );
    let above = provider.post("/v1/refunds", "k3", &format!("payment_intent={id}&amount=251")).await.unwrap();
    assert_eq!(above.error(), error(400, INVALID, "amount_too_large", "amount"));
    let rest = provider.post("/v1/refunds", "k4", &format!("payment_intent={id}")).await.unwrap().json();
    assert_eq!(rest["amount"], json!(250));
    let more = provider.post("/v1/refunds", "k5", &format!("payment_intent={id}&amount=1")).await.unwrap();
    assert_eq!(more.error(), error(400, INVALID, "charge_already_refunded", ""));
    let held = provider.authorize("k6").await;
    let uncaptured = provider.post("/v1/refunds", "k7", &format!("payment_intent={held}")).await.unwrap();
    assert_eq!(uncaptured.error(), error(400, INVALID, UNEXPECTED, ""));
    assert_eq!(provider.truth(), [("charge", 1250), ("refund", 1000), ("refund", 250), ("authorize", 1250)]);
}

#[tokio::test]
async fn a_partial_capture_bounds_the_refund() {
    let provider = Provider::start();
    let id = provider.authorize("k1").await;
    provider.post(&format!("/v1/payment_intents/{id}/capture"), "k2", "amount_to_capture=400").await.unwrap();
    let above = provider.post("/v1/refunds", "k3", &format!("payment_intent={id}&amount=401")).await.unwrap();
    assert_eq!(above.error(), error(400, INVALID, "amount_too_large", "amount"));
}

#[tokio::test]
async fn a_declined_card_moves_nothing() {
    let provider = Provider::start();
    for (key, card, decline_code) in [
        ("k1", "pm_card_chargeDeclined", "generic_decline"),
        ("k2", "pm_card_chargeDeclinedInsufficientFunds", "insufficient_funds"),
    ] {
        for capture_method in ["automatic", "manual"] {
            let key = format!("{key}_{capture_method}");
            let got = provider.post("/v1/payment_intents", &key, &form(card, capture_method)).await.unwrap();
            assert_eq!(got.error(), error(402, "card_error", "card_declined", ""));
            let declined = &got.json()["error"];
            assert_eq!(declined["decline_code"], json!(decline_code));
            let id = declined["payment_intent"]["id"].as_str().unwrap().to_owned();
            let kept = provider.get(&format!("/v1/payment_intents/{id}")).await.json();
            assert_eq!(kept["status"], json!("requires_payment_method"));
            assert_eq!(kept["last_payment_error"]["decline_code"], json!(decline_code));
            let replay =
                provider.post("/v1/payment_intents", &key, &form(card, capture_method)).await.unwrap();
            assert!(replay.replayed && replay.status == 402 && replay.text == got.text);
        }
    }
    assert_eq!(provider.truth(), []);
}

#[tokio::test]
async fn an_unknown_intent_is_missing_everywhere() {
    let provider = Provider::start();
    let missing = |param| error(404, INVALID, "resource_missing", param);
    let unknown = "pi_000000000000ffffffff";
    assert_eq!(provider.get(&format!("/v1/payment_intents/{unknown}")).await.error(), missing("intent"));
    for action in ["capture", "cancel"] {
        let got =
            provider.post(&format!("/v1/payment_intents/{unknown}/{action}"), action, "").await.unwrap();
        assert_eq!(got.error(), missing("intent"));
    }
    let got = provider.post("/v1/refunds", "k", &format!("payment_intent={unknown}")).await.unwrap();
    assert_eq!(got.error(), missing("payment_intent"));
    assert_eq!(provider.truth(), []);
}
