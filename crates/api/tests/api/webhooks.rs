//! Webhooks: an event without a valid signature is refused; a valid one is a hint and nothing more.

use crate::client::Request;
use crate::server::{Server, settings};
use counterfoil_api::ApiSettings;
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::id::{ChargeId, PayoutId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Inbox;
use counterfoil_gateway::inbox::{ProviderEvent, Unopened};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// An inbox with plain words as signatures and plain references as events.
pub(crate) struct Postbox;

impl Inbox for Postbox {
    fn provider(&self) -> &'static str {
        "stripe"
    }

    fn header(&self) -> &'static str {
        "stripe-signature"
    }

    fn open(&self, signature: Option<&[u8]>, body: &[u8], _: Time) -> Result<ProviderEvent, Unopened> {
        match signature {
            None => Err(Unopened::Missing),
            Some(b"good") if body.is_empty() => Err(Unopened::Unreadable),
            Some(b"good") => Ok(ProviderEvent { payment: String::from_utf8(body.to_vec()).ok() }),
            Some(b"old") => Err(Unopened::TooOld),
            Some(b"early") => Err(Unopened::FromTheFuture),
            Some(b"forged") => Err(Unopened::NoMatch),
            Some(_) => Err(Unopened::Malformed),
        }
    }
}

fn delivery(signature: &str, body: &str) -> Request {
    Request::new("POST", "/v1/webhooks/stripe")
        .header("Content-Type", "application/json; charset=utf-8")
        .header("Stripe-Signature", signature)
        .body(body)
}

#[tokio::test]
async fn unsigned_deliveries_are_refused_with_a_reason() {
    let server = Server::start().await;
    let charge = server.fake.reference(ChargeId::from_i64(7));
    for (request, words) in [
        (delivery("", &charge).without("Stripe-Signature"), "header is missing"),
        (delivery("odd", &charge), "has not the form of a signature"),
        (delivery("good", &charge).header("Stripe-Signature", "good"), "has not the form of a signature"),
        (delivery("forged", &charge), "not that of these bytes"),
        (delivery("old", &charge), "more than five minutes ago"),
        (delivery("early", &charge), "five minutes in the future"),
    ] {
        let problem = server.ask(request).await.problem(400, "invalid_signature");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(words) && detail.contains("gateway.webhook_secrets"), "{detail}");
    }
    assert_eq!(*server.fake.hinted.lock().unwrap(), []);
}

#[tokio::test]
async fn unknown_providers_are_not_found() {
    let server = Server::start().await;
    let charge = server.fake.reference(ChargeId::from_i64(7));
    for path in ["adyen", "Stripe", "stripe2", "%73tripe", "counterfoil"] {
        let request = delivery("good", &charge).target(&format!("/v1/webhooks/{path}"));
        server.ask(request).await.problem(404, "not_found");
    }
    for request in [
        Request::new("POST", "/v1/webhooks"),
        Request::new("POST", "/v1/webhooks/"),
        Request::new("POST", "/v1/webhooks/stripe/x"),
    ] {
        server.ask(request).await.problem(404, "not_found");
    }
    server.ask(Request::get("/v1/webhooks/stripe")).await.problem(405, "method_not_allowed");
    assert_eq!(*server.fake.hinted.lock().unwrap(), []);
}

#[tokio::test]
async fn deliveries_are_bounded_before_verification() {
    let server = Server::with(ApiSettings { body_limit_bytes: 1_024, ..settings() }, Duration::ZERO).await;
    let large = server.ask(delivery("good", &"x".repeat(1_025))).await;
    large.problem(413, "body_too_large");
    assert_eq!(server.ask(delivery("good", &"x".repeat(1_024))).await.status, 200);
    let asked = delivery("good", "x").target("/v1/webhooks/stripe?tenant=acme");
    server.ask(asked).await.problem(400, "invalid_request");
}

#[tokio::test]
async fn signed_deliveries_without_an_event_are_invalid() {
    let server = Server::start().await;
    let problem = server.ask(delivery("good", "")).await.problem(400, "invalid_request");
    assert!(problem["errors"][0]["message"].as_str().unwrap().contains("no JSON object"), "{problem}");
}

#[tokio::test]
async fn deliveries_fail_while_the_store_is_down() {
    let server = Server::start().await;
    server.fake.store_down.store(true, Ordering::SeqCst);
    let charge = server.fake.reference(ChargeId::from_i64(7));
    server.ask(delivery("good", &charge)).await.problem(503, "store_unavailable");
}

#[tokio::test]
async fn all_events_get_the_same_answer_and_only_own_payments_are_hinted() {
    let server = Server::start().await;
    let references = &server.fake.references;
    let payout = references.seal(ReferenceKind::Payout, 8).to_string();
    let account = references.seal(ReferenceKind::Account, 7).to_string();
    let charge = server.fake.reference(ChargeId::from_i64(7));
    for event in ["nothing of ours", "ch_00000000000000000000000000", &account, &charge, &payout, &charge] {
        let reply = server.ask(delivery("good", event)).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"received":true}"#), "{event}");
        assert!(reply.header("request-id").is_some());
    }
    let (charge, payout) = (Payment::Charge(ChargeId::from_i64(7)), Payment::Payout(PayoutId::from_i64(8)));
    assert_eq!(*server.fake.hinted.lock().unwrap(), [charge, payout, charge]);
    assert_eq!(server.fake.principals_asked.load(Ordering::SeqCst), 0, "no API key is asked for");
    let metrics = server.ask(Request::get("/metrics")).await.text();
    let counted = r#"counterfoil_requests_total{route="/v1/webhooks/{provider}",status="200"} 6"#;
    assert!(metrics.contains(counted), "{metrics}");
}
