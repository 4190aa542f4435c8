//! `/_sim/…`, the log file and the bounds.

use counterfoil_provider_simulator::Faults;
use hyper::Method;
use serde_json::{Value, json};

use crate::provider::{Provider, error};

async fn send(provider: &Provider, method: Method, path: &str, body: &'static str) -> Value {
    let got = provider.send(method, path, &[], body).await.unwrap();
    assert_eq!(got.status, 200, "{}", got.text);
    got.json()
}

#[tokio::test]
async fn effects_are_listed_in_order_with_everything_to_compare() {
    let provider = Provider::start();
    let id = provider.authorize("k1").await;
    provider.clock.advance(1);
    provider.post(&format!("/v1/payment_intents/{id}/capture"), "k2", "amount_to_capture=7").await.unwrap();
    let first = json!({
        "kind": "authorize", "key": "k1", "payment": "pay_1", "payment_intent": id, "amount": 1250,
        "currency": "usd", "at": "2026-01-01T00:00:00.000Z"
    });
    let second = json!({
        "kind": "capture", "key": "k2", "payment": "pay_1", "payment_intent": id, "amount": 7,
        "currency": "usd", "at": "2026-01-01T00:00:00.001Z"
    });
    let list = |data: &[&Value]| json!({"object": "list", "total": 2, "late_pending": 0, "data": data});
    for (path, data) in [
        ("/_sim/effects", vec![&first, &second]),
        ("/_sim/effects?after=1", vec![&second]),
        ("/_sim/effects?after=2", vec![]),
        ("/_sim/effects?after=99", vec![]),
    ] {
        assert_eq!(send(&provider, Method::GET, path, "").await, list(&data), "{path}");
    }
}

#[tokio::test]
async fn a_long_list_arrives_whole() {
    let provider = Provider::start();
    for request in 0..2500 {
        provider.charge(&format!("k{request}")).await.unwrap();
    }
    let list = send(&provider, Method::GET, "/_sim/effects", "").await;
    let keys: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|e| e["key"].as_str().unwrap()).collect();
    let expected: Vec<String> = (0..2500).map(|request| format!("k{request}")).collect();
    assert_eq!(keys, expected);
}

#[tokio::test]
async fn a_reset_forgets_everything_but_the_faults() {
    let provider = Provider::start();
    let id = provider.charge("k1").await.unwrap().id();
    send(&provider, Method::PUT, "/_sim/faults", r#"{"query_lag_ms":0,"seed":7}"#).await;
    let empty = json!({"object": "list", "total": 0, "late_pending": 0, "data": []});
    assert_eq!(send(&provider, Method::DELETE, "/_sim/effects", "").await, empty);
    assert_eq!(provider.get(&format!("/v1/payment_intents/{id}")).await.status, 404);
    assert_eq!(provider.search("pay_1").await["data"], json!([]));
    let again = provider.charge("k1").await.unwrap();
    assert!(!again.replayed);
    assert_ne!(again.id(), id, "ids are never used again");
    assert_eq!(provider.running.simulator().faults().seed, Some(7));
}

#[tokio::test]
async fn faults_are_set_shown_and_cleared() {
    let provider = Provider::start();
    let body = r#"{"latency_ms":5,"error_before":0.1,"error_after":0,"drop_before":1,"drop_after":0.2,"hang_after":0.3,
        "duplicate":0.4,"dedup_window_ms":60000,"store_errors":true,"query_lag_ms":9,"late_delivery_ms":8,"seed":3}"#;
    let set = send(&provider, Method::PUT, "/_sim/faults", body).await;
    assert_eq!((&set["drop_before"], &set["duplicate"], &set["seed"]), (&json!(1.0), &json!(0.4), &json!(3)));
    assert_eq!(send(&provider, Method::GET, "/_sim/faults", "").await, set);
    let replaced = send(&provider, Method::PUT, "/_sim/faults", r#"{"latency_ms":6}"#).await;
    assert_eq!((&replaced["latency_ms"], &replaced["drop_before"]), (&json!(6), &json!(0.0)));
    send(&provider, Method::DELETE, "/_sim/faults", "").await;
    assert_eq!(provider.running.simulator().faults(), Faults::default());
}

#[tokio::test]
async fn bad_faults_are_refused_and_change_nothing() {
    let provider = Provider::start();
    provider.faults(Faults { latency_ms: 0, seed: Some(5), ..Faults::default() });
    for (body, named) in [
        (r#"{"error_befor":0.1}"#, "error_befor"),
        (r#"{"error_after":1.01}"#, "error_after"),
        (r#"{"latency_ms":"5"}"#, "expected u64"),
        (r#"{"drop_after":1e999}"#, "out of range"),
        ("not json", "JSON object"),
        ("", "JSON object"),
    ] {
        let got = provider.send(Method::PUT, "/_sim/faults", &[], body).await.unwrap();
        assert_eq!(got.error(), error(400, "invalid_request_error", "", ""));
        assert!(got.text.contains(named), "{}", got.text);
    }
    assert_eq!(provider.running.simulator().faults().seed, Some(5));
}

#[tokio::test]
async fn the_log_repeats_the_effects_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("effects.jsonl");
    std::fs::write(&path, "{\"earlier\":true}\n").unwrap();
    let provider = Provider::with(|options| options.log = Some(path.clone()));
    provider.charge("k1").await.unwrap();
    provider.charge("k1").await.unwrap();
    provider.charge("k\\2").await.unwrap();
    let list = send(&provider, Method::GET, "/_sim/effects", "").await;
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], json!({"earlier": true}));
    assert_eq!(Value::from(lines[1..].to_vec()), list["data"]);
    assert_eq!(lines.len(), 3);
}

#[tokio::test]
async fn an_effect_that_cannot_be_logged_does_not_happen() {
    let full = std::path::Path::new("/dev/full");
    let provider = Provider::with(|options| options.log = Some(full.to_owned()));
    let got = provider.charge("k1").await.unwrap();
    assert_eq!(got.error(), error(500, "api_error", "", ""));
    assert_eq!(provider.truth(), []);
    assert_eq!(provider.search("pay_1").await["data"], json!([]));
}

#[tokio::test]
async fn at_the_bound_new_work_is_refused_and_the_truth_stays_whole() {
    let provider = Provider::with(|options| options.effects_max = 2);
    provider.charge("k1").await.unwrap();
    provider.charge("k2").await.unwrap();
    let refused = provider.charge("k3").await.unwrap();
    assert_eq!(refused.error(), error(429, "api_error", "rate_limit", ""));
    assert!(provider.charge("k1").await.unwrap().replayed);
    assert_eq!(provider.truth(), [("charge", 1250), ("charge", 1250)]);
    provider.running.simulator().reset();
    assert_eq!(provider.charge("k3").await.unwrap().status, 200);
}
