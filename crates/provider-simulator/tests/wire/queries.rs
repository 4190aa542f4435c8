//! Queries: their results, and their lag.

use counterfoil_provider_simulator::Faults;
use serde_json::{Value, json};

use crate::provider::{Provider, error, form};

fn statuses(found: &Value) -> Vec<&str> {
    found["data"].as_array().unwrap().iter().map(|intent| intent["status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_search_finds_every_intent_of_a_payment_newest_first() {
    let provider = Provider::start();
    provider.post("/v1/payment_intents", "k1", &form("pm_card_chargeDeclined", "manual")).await.unwrap();
    provider.charge("k2").await.unwrap();
    let found = provider.search("pay_1").await;
    assert_eq!(statuses(&found), ["succeeded", "requires_payment_method"]);
    assert_eq!((&found["object"], &found["has_more"]), (&json!("search_result"), &json!(false)));
    assert_eq!(statuses(&provider.search("pay_2").await), [""; 0]);
}

#[tokio::test]
async fn a_search_answers_at_most_its_limit() {
    let provider = Provider::start();
    for key in ["k1", "k2", "k3"] {
        provider.charge(key).await.unwrap();
    }
    let path = "/v1/payment_intents/search?query=metadata%5B'counterfoil_payment'%5D%3A'pay_1'&limit=2";
    let found = provider.get(path).await.json();
    assert_eq!((statuses(&found).len(), &found["has_more"]), (2, &json!(true)));
}

#[tokio::test]
async fn a_search_for_anything_else_is_refused() {
    let provider = Provider::start();
    for (query, code, param) in [
        ("", "parameter_missing", "query"),
        ("?query=status%3A'succeeded'", "parameter_invalid", "query"),
        ("?query=metadata%5B'counterfoil_payment'%5D%3A'a'&limit=0", "parameter_invalid_integer", "limit"),
        ("?query=metadata%5B'counterfoil_payment'%5D%3A'a'&page=x", "parameter_unknown", "page"),
    ] {
        let got = provider.get(&format!("/v1/payment_intents/search{query}")).await;
        assert_eq!(got.error(), error(400, "invalid_request_error", code, param), "{query}");
    }
}

#[tokio::test]
async fn queries_lag_behind_the_truth() {
    let provider = Provider::start();
    provider.faults(Faults { query_lag_ms: 1000, ..Faults::default() });
    let id = provider.authorize("k1").await;
    let path = format!("/v1/payment_intents/{id}");
    provider.clock.advance(999);
    assert_eq!(provider.get(&path).await.status, 404);
    assert_eq!(statuses(&provider.search("pay_1").await), [""; 0]);

    provider.clock.advance(1);
    provider.post(&format!("{path}/capture"), "k2", "").await.unwrap();
    assert_eq!(provider.get(&path).await.json()["status"], json!("requires_capture"));
    assert_eq!(statuses(&provider.search("pay_1").await), ["requires_capture"]);

    provider.clock.advance(1000);
    assert_eq!(provider.get(&path).await.json()["status"], json!("succeeded"));
    assert_eq!(statuses(&provider.search("pay_1").await), ["succeeded"]);
    assert_eq!(provider.truth(), [("authorize", 1250), ("capture", 1250)]);
}
