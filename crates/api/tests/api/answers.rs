//! The answers of the idempotency layer.

use crate::client::Request;
use crate::fake::{Next, START, stored};
use crate::server::{Server, settings};
use counterfoil_core::outbox::Payment;
use counterfoil_core::tenancy::KeyPolicy;
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_engine::service::Submitted;
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;

const GOOD: &str = r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#;

#[tokio::test]
async fn charges_are_replayed_byte_for_byte() {
    let server = Server::start().await;
    let first = server.ask(Request::charge("k-1", GOOD)).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let charge = first.json();
    assert_eq!(charge["object"], "charge");
    assert_eq!((&charge["amount"], &charge["currency"]), (&json!(1250), &json!("USD")));
    let location = format!("/v1/charges/{}", charge["id"].as_str().unwrap());
    assert_eq!(first.header("location"), Some(location.as_str()));
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.header("idempotency-expires"), Some("2026-01-02T00:00:00.000Z"));
    assert_eq!(first.header("idempotent-replayed"), None);

    let again = server.ask(Request::charge("\"k-1\"", GOOD)).await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    for name in ["content-type", "location", "idempotency-expires"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
    assert_ne!(again.header("request-id"), first.header("request-id"));

    let other = server.ask(Request::charge("k-1", &GOOD.replace("1250", "1251"))).await;
    other.problem(422, "idempotency_key_fingerprint_mismatch");
    assert_eq!(server.ask(Request::get(&location)).await.body, first.body);
}

#[tokio::test]
async fn missing_and_malformed_keys_are_refused() {
    let server = Server::start().await;
    let missing = server.ask(Request::charge("", GOOD).without("Idempotency-Key")).await;
    missing.problem(400, "idempotency_key_required");
    let twice = server.ask(Request::charge("a", GOOD).header("Idempotency-Key", "a")).await;
    twice.problem(400, "idempotency_key_invalid");
    for key in ["", " ", "\"\"", "a b", "é", "\"a", &"k".repeat(256), "a\tb"] {
        server.ask(Request::charge(key, GOOD)).await.problem(400, "idempotency_key_invalid");
    }
    assert_eq!(server.fake.submissions(), 0);
}

#[tokio::test]
async fn missing_optional_keys_are_counted() {
    let server = Server::start().await;
    let request = || {
        Request::charge("", GOOD)
            .without("Idempotency-Key")
            .without("Authorization")
            .header("Authorization", "Bearer sk_globex")
    };
    assert_eq!(server.ask(request()).await.status, 201);
    assert_eq!(server.ask(request()).await.status, 201);
    let claims: Vec<_> = server.fake.submitted.lock().unwrap().iter().map(|command| command.claim).collect();
    assert_ne!(claims[0], claims[1], "each request has its own key");
    let text = server.ask(Request::get("/metrics")).await.text();
    let sample = "counterfoil_key_missing_total{tenant=\"globex\",route=\"/v1/charges\"} 2\n";
    assert!(text.contains(sample), "{text}");

    let mut relaxed = settings();
    relaxed.key_policy = KeyPolicy::Optional;
    let server = Server::with(relaxed, Duration::ZERO).await;
    assert_eq!(server.ask(Request::charge("", GOOD).without("Idempotency-Key")).await.status, 201);
}

#[tokio::test]
async fn invalid_bodies_name_every_place() {
    let server = Server::start().await;
    let body = r#"{"amount":12.5,"currncy":"usd","payment_method":"4242424242424242"}"#;
    let problem = server.ask(Request::charge("k", body)).await.problem(400, "invalid_request");
    let pointers: Vec<&str> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/currncy", "/amount", "/currency", "/payment_method"]);
    assert_eq!(
        problem["errors"][0]["message"],
        "`currncy` is not a field of a charge; did you mean `currency`?"
    );
    assert_eq!(server.fake.submissions(), 0);
    assert_eq!(server.ask(Request::charge("k", GOOD)).await.status, 201, "the key is still free");
}

#[tokio::test]
async fn refusals_of_the_engine_become_problems() {
    let server = Server::start().await;
    let charge = ChargeId::from_i64(9);
    let reference = server.fake.reference(charge);
    let at = Time::from_ms(START.ms() - 1);
    let payment = Payment::Charge(charge);
    let pending = |ms| Submitted::Pending { payment, retry_after: Span::from_ms(ms) };
    for (says, status, code, retry, more) in [
        (Submitted::Mismatch, 422, "idempotency_key_fingerprint_mismatch", None, json!({})),
        (
            Submitted::InUse,
            409,
            "idempotency_key_in_use",
            Some("5"),
            json!({"retry_after_ms": 5000, "safe_new_key": false}),
        ),
        (
            Submitted::Expired { original_request_at: at },
            410,
            "idempotency_key_expired",
            None,
            json!({"original_request_at": "2025-12-31T23:59:59.999Z"}),
        ),
        (pending(0), 503, "outcome_pending", Some("1"), json!({"charge": reference, "safe_new_key": false})),
        (
            pending(2_001),
            503,
            "outcome_pending",
            Some("3"),
            json!({"charge": reference, "safe_new_key": false}),
        ),
        (Submitted::StoreUnavailable, 503, "store_unavailable", Some("1"), json!({})),
        (Submitted::Draining, 503, "shutting_down", Some("1"), json!({})),
    ] {
        server.fake.next(Next::Say(says));
        let reply = server.ask(Request::charge("k", GOOD)).await;
        let problem = reply.problem(status, code);
        assert_eq!(reply.header("retry-after"), retry, "{code}");
        assert_eq!(reply.header("idempotent-replayed"), None);
        for (name, value) in more.as_object().unwrap() {
            assert_eq!(&problem[name], value, "{code} {name}");
        }
    }
}

#[tokio::test]
async fn stored_refusals_are_replayed_unchanged() {
    let server = Server::start().await;
    let body = r#"{"error":"card_declined","request_id":"req_of_the_first"}"#;
    for replayed in [false, true] {
        let settled = stored(&server.fake, 402, body);
        server.fake.next(Next::Say(Submitted::Answer { settled, replayed }));
        let reply = server.ask(Request::charge("k", GOOD)).await;
        assert_eq!((reply.status, reply.text().as_str()), (402, body));
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
        assert_eq!(reply.header("idempotent-replayed"), replayed.then_some("true"));
        assert_eq!(reply.header("location"), None);
    }
}

#[tokio::test]
async fn scopes_limit_what_a_key_may_do() {
    let server = Server::start().await;
    let with =
        |request: Request, value: &str| request.without("Authorization").header("Authorization", value);
    for value in ["", "Bearer", "Bearer sk_unknown", "Basic sk_acme", "sk_acme", "Bearer pk_acme"] {
        for request in
            [Request::charge("k", GOOD), Request::get("/v1/charges"), Request::get("/v1/idempotency-keys/k")]
        {
            let reply = server.ask(with(request, value)).await;
            reply.problem(401, "unauthorized");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
    }
    let twice = Request::charge("k", GOOD).header("Authorization", "Bearer sk_acme");
    server.ask(twice).await.problem(401, "unauthorized");
    assert_eq!(server.ask(with(Request::charge("k", GOOD), "bearer sk_acme_write")).await.status, 201);
    server.ask(with(Request::charge("k", GOOD), "Bearer sk_acme_read")).await.problem(403, "forbidden");
    server.ask(with(Request::get("/v1/charges"), "Bearer sk_acme_write")).await.problem(403, "forbidden");
    assert_eq!(server.fake.submissions(), 1);
}

#[tokio::test]
async fn checks_run_in_their_order() {
    let server = Server::start().await;
    // Each request has the fault of its line and all later faults.
    let worst =
        Request::new("POST", "/v1/charges?x=1").header("Content-Type", "text/plain").body("x".repeat(5_000));
    server.ask(worst.clone()).await.problem(401, "unauthorized");
    let worst = worst.header("Authorization", "Bearer sk_acme_read");
    server.ask(worst.clone()).await.problem(403, "forbidden");
    let worst = worst.without("Authorization").header("Authorization", "Bearer sk_acme");
    server.ask(worst.clone()).await.problem(415, "unsupported_media_type");
    let worst = worst.without("Content-Type").header("Content-Type", "application/json");
    server.ask(worst.clone()).await.problem(400, "idempotency_key_required");
    let worst = worst.header("Idempotency-Key", "k");
    server.ask(worst.clone()).await.problem(413, "body_too_large");
    let problem = server.ask(worst.clone().body("x")).await.problem(400, "invalid_request");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2, "query and body");
    server.ask(worst.clone().body(GOOD)).await.problem(400, "invalid_request");
    assert_eq!(server.fake.submissions(), 0);
    assert_eq!(server.ask(worst.target("/v1/charges").body(GOOD)).await.status, 201);
}

#[tokio::test]
async fn no_charge_is_made_while_the_store_is_down() {
    let server = Server::start().await;
    server.fake.store_down.store(true, Ordering::SeqCst);
    for request in
        [Request::charge("k", GOOD), Request::get("/v1/charges"), Request::get("/v1/idempotency-keys/k")]
    {
        let reply = server.ask(request).await;
        reply.problem(503, "store_unavailable");
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
    assert_eq!(server.fake.submissions(), 0);
    let ready = server.ask(Request::get("/readyz")).await;
    assert_eq!((ready.status, &ready.json()["reason"]), (503, &json!("the store does not answer")));
    assert_eq!(server.ask(Request::get("/healthz")).await.json(), json!({"status": "ok"}));
    assert_eq!(server.ask(Request::get("/metrics")).await.status, 200);
    server.fake.store_down.store(false, Ordering::SeqCst);
    assert_eq!(server.ask(Request::get("/readyz")).await.status, 200);
}

#[tokio::test]
async fn a_panic_ends_only_its_own_request() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    server.fake.next(Next::Panic);
    connection.send(Request::charge("k", GOOD).bytes()).await;
    connection.receive(false).await.unwrap().problem(500, "internal_error");
    connection.send(Request::charge("k", GOOD).bytes()).await;
    assert_eq!(connection.receive(false).await.unwrap().status, 201, "even on the same connection");
}

#[tokio::test]
async fn tenants_above_their_rate_are_refused() {
    let mut strict = settings();
    (strict.tenant_requests_per_second, strict.tenant_burst) = (1, 2);
    let server = Server::with(strict, Duration::ZERO).await;
    assert_eq!(server.ask(Request::charge("a", GOOD)).await.status, 201);
    assert_eq!(server.ask(Request::get("/v1/charges")).await.status, 200);
    let reply = server.ask(Request::charge("b", GOOD)).await;
    reply.problem(429, "rate_limited");
    assert_eq!(reply.header("retry-after"), Some("1"));
    let other =
        Request::charge("b", GOOD).without("Authorization").header("Authorization", "Bearer sk_globex");
    assert_eq!(server.ask(other).await.status, 201, "other tenants are not limited");
    server.fake.now_ms.fetch_add(1_000, Ordering::SeqCst);
    assert_eq!(server.ask(Request::charge("b", GOOD)).await.status, 201);
    assert_eq!(server.fake.submissions(), 3);
}
