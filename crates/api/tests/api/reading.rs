//! Reading charges, timelines and keys.

use crate::client::Request;
use crate::fake::ACME;
use crate::server::{Server, settings};
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Resource};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::service::{KeyView, Service};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

const GOOD: &str = r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#;

async fn make(server: &Server, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        let reply = server.ask(Request::charge(&format!("k-{number}"), GOOD)).await;
        ids.push(reply.json()["id"].as_str().unwrap().to_owned());
    }
    ids
}

fn ids(list: &Value) -> Vec<&str> {
    assert_eq!(list["object"], "list");
    list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn charges_are_listed_in_pages() {
    let server = Server::start().await;
    assert_eq!(
        server.ask(Request::get("/v1/charges")).await.text(),
        r#"{"object":"list","data":[],"has_more":false}"#
    );
    let mut made = make(&server, 25).await;
    made.reverse();
    let first = server.ask(Request::get("/v1/charges")).await.json();
    assert_eq!(
        (ids(&first), &first["has_more"]),
        (made[..20].iter().map(String::as_str).collect(), &json!(true))
    );
    let next = format!("/v1/charges?limit=5&starting_after={}", made[19]);
    let second = server.ask(Request::get(&next)).await.json();
    assert_eq!(
        (ids(&second), &second["has_more"]),
        (made[20..].iter().map(String::as_str).collect(), &json!(false))
    );
    for query in [
        "limit=0",
        "limit=101",
        "limit=x",
        "starting_after=ch_1",
        "starting_after=",
        "page=2",
        "limit=1&limit=1",
    ] {
        server.ask(Request::get(&format!("/v1/charges?{query}"))).await.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn charges_of_other_tenants_look_absent() {
    let server = Server::start().await;
    let id = make(&server, 1).await.remove(0);
    let never = server.fake.reference(ChargeId::from_i64(999));
    let as_globex = |path: String| Request::new("GET", &path).header("Authorization", "Bearer sk_globex");
    for path in ["", "/timeline"] {
        let theirs = server.ask(as_globex(format!("/v1/charges/{id}{path}"))).await;
        let absent = server.ask(as_globex(format!("/v1/charges/{never}{path}"))).await;
        let garbage = server.ask(as_globex(format!("/v1/charges/ch_x%ff{path}"))).await;
        let bodies: Vec<Value> = [&theirs, &absent, &garbage]
            .into_iter()
            .map(|reply| {
                let mut body = reply.problem(404, "not_found");
                body["request_id"] = Value::Null;
                body
            })
            .collect();
        assert!(bodies[0] == bodies[1] && bodies[1] == bodies[2]);
        assert_eq!(server.ask(Request::get(&format!("/v1/charges/{id}{path}"))).await.status, 200);
        server
            .ask(Request::get(&format!("/v1/charges/{id}{path}?x=1")))
            .await
            .problem(400, "invalid_request");
    }
    assert_eq!(ids(&server.ask(as_globex("/v1/charges".to_owned())).await.json()).len(), 0);
}

#[tokio::test]
async fn timelines_are_in_order() {
    let server = Server::start().await;
    let id = make(&server, 1).await.remove(0);
    let path = format!("/v1/charges/{id}/timeline");
    let whole = server.ask(Request::get(&path)).await.json();
    let kinds: Vec<&Value> = whole["data"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(kinds, ["claimed", "provider_answered", "settled"]);
    assert_eq!(whole["data"][1]["detail"], json!({"step": "1"}));
    assert_eq!(whole["data"][0]["object"], "timeline_entry");
    let page = server.ask(Request::get(&format!("{path}?limit=1"))).await.json();
    assert_eq!(page["has_more"], true);
    let after = ids(&page)[0].to_owned();
    let rest = server.ask(Request::get(&format!("{path}?starting_after={after}"))).await.json();
    assert_eq!((ids(&rest).len(), &rest["has_more"]), (2, &json!(false)));
    server.ask(Request::get(&format!("{path}?starting_after=x"))).await.problem(400, "invalid_request");
}

#[tokio::test]
async fn keys_report_their_state() {
    let server = Server::start().await;
    let key = IdempotencyKey::from_text(b"order/42 +%".trim_ascii()).err();
    assert!(key.is_some(), "a key contains no space");
    let claim = ClaimId::new(ACME, &IdempotencyKey::from_text(b"order/42+%").unwrap());
    let record = Claim {
        id: claim,
        tenant: ACME,
        fingerprint: Fingerprint::from_digest(Digest::from_bytes([2; 32])),
        subject: ChargeId::from_i64(3).into(),
        makes: Resource::Charge,
        request: Ulid::from_bytes([4; 16]),
        created_at: server.fake.now(),
        fence: 1,
        revision: 1,
        attempts: 1,
        state: ClaimState::FailedRetry { not_before: server.fake.now() },
    };
    let view = KeyView { claim: record, payment: Some(Payment::Charge(ChargeId::from_i64(3))), parked: None };
    server.fake.claims.lock().unwrap().insert(claim, view);
    for path in ["order%2F42+%25", "order%2f42%2B%25", "%6Frder%2F42+%25"] {
        let reply = server.ask(Request::get(&format!("/v1/idempotency-keys/{path}"))).await;
        assert_eq!(
            reply.json(),
            json!({
                "object": "idempotency_key", "state": "failed_retry", "created_at": "2026-01-01T00:00:00.000Z",
                "expires_at": null, "resource": {"type": "charge", "id": server.fake.reference(ChargeId::from_i64(3))},
                "attempts": 1, "fence": 1, "safe_new_key": false, "parked": null,
            })
        );
    }
    let as_globex = Request::new("GET", "/v1/idempotency-keys/order%2F42+%25")
        .header("Authorization", "Bearer sk_globex");
    server.ask(as_globex).await.problem(404, "not_found");
    server.ask(Request::get("/v1/idempotency-keys/unknown")).await.problem(404, "not_found");
    for bad in ["a%20b", "%zz", "%c3%a9", "%00", &"k".repeat(256)] {
        let reply = server.ask(Request::get(&format!("/v1/idempotency-keys/{bad}"))).await;
        reply.problem(400, "idempotency_key_invalid");
    }
}

#[tokio::test]
async fn metrics_count_requests_and_claims() {
    let server = Server::start().await;
    make(&server, 2).await;
    server.ask(Request::get("/nowhere")).await;
    let reply = server.ask(Request::get("/metrics")).await;
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = reply.text();
    for sample in [
        "counterfoil_requests_total{route=\"/v1/charges\",status=\"201\"} 2\n",
        "counterfoil_requests_total{route=\"unmatched\",status=\"404\"} 1\n",
        "counterfoil_request_seconds_count 3\n",
        "counterfoil_outbox_pending 7\n",
        "counterfoil_outbox_lag_seconds 1.5\n",
        "counterfoil_stuck_in_flight 1\n",
        "counterfoil_parked 2\n",
        "counterfoil_dead_letters 2\n",
        "counterfoil_claims_total{tenant=\"acme\",outcome=\"won\"} 0\n",
    ] {
        assert!(text.contains(sample), "{sample}{text}");
    }
    let open = server.ask(Request::get("/metrics").header("Accept", "application/openmetrics-text")).await;
    assert!(open.text().ends_with("# EOF\n"));
}

#[tokio::test]
async fn reads_are_cut_at_the_request_timeout() {
    let mut hasty = settings();
    hasty.request_timeout = Duration::from_millis(50);
    let server = Server::with(hasty, Duration::ZERO).await;
    server.fake.reads_hang.store(true, Ordering::SeqCst);
    server.ask(Request::get("/v1/charges")).await.problem(503, "store_unavailable");
}
