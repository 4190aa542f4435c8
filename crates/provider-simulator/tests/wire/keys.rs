//! The provider's treatment of idempotency keys.

use counterfoil_provider_simulator::Faults;
use hyper::Method;

use crate::provider::{Provider, error, form};

const DAY_MS: u64 = 86_400_000;

#[tokio::test]
async fn the_same_request_is_executed_once_and_replayed_byte_for_byte() {
    let provider = Provider::start();
    let first = provider.charge("k1").await.unwrap();
    provider.clock.advance(DAY_MS - 1);
    let again = provider.charge("k1").await.unwrap();
    assert!(again.replayed && !first.replayed);
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    assert_ne!(again.request_id, first.request_id);
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn a_replay_shows_the_intent_as_it_was_then() {
    let provider = Provider::start();
    let first = provider.post("/v1/payment_intents", "k1", &form("pm_card_visa", "manual")).await.unwrap();
    provider.post(&format!("/v1/payment_intents/{}/capture", first.id()), "k2", "").await.unwrap();
    let replay = provider.post("/v1/payment_intents", "k1", &form("pm_card_visa", "manual")).await.unwrap();
    assert_eq!(replay.text, first.text);
    assert_eq!(provider.truth(), [("authorize", 1250), ("capture", 1250)]);
}

#[tokio::test]
async fn captures_cancels_and_refunds_are_replayed_too() {
    let provider = Provider::start();
    let (captured, cancelled) = (provider.authorize("k1").await, provider.authorize("k2").await);
    for (path, key, body) in [
        (format!("/v1/payment_intents/{captured}/capture"), "k3", "amount_to_capture=5".to_owned()),
        (format!("/v1/payment_intents/{cancelled}/cancel"), "k4", String::new()),
        ("/v1/refunds".to_owned(), "k5", format!("payment_intent={captured}&amount=2&metadata[a]=b")),
    ] {
        let first = provider.post(&path, key, &body).await.unwrap();
        let again = provider.post(&path, key, &body).await.unwrap();
        assert_eq!((first.status, again.status, again.replayed), (200, 200, true), "{path}");
        assert_eq!(first.text, again.text);
    }
    assert_eq!(
        provider.truth(),
        [("authorize", 1250), ("authorize", 1250), ("capture", 5), ("cancel", 1250), ("refund", 2)]
    );
}

#[tokio::test]
async fn a_refused_execution_is_remembered_but_a_malformed_request_is_not() {
    let provider = Provider::start();
    let id = provider.authorize("k1").await;
    let capture = format!("/v1/payment_intents/{id}/capture");
    provider.post(&capture, "k2", "amount_to_capture=9999").await.unwrap();
    let again = provider.post(&capture, "k2", "amount_to_capture=9999").await.unwrap();
    assert_eq!((again.status, again.replayed), (400, true));
    assert_eq!(provider.post(&capture, "k3", "amount_to_capture=x").await.unwrap().status, 400);
    assert_eq!(provider.post(&capture, "k3", "amount_to_capture=10").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_key_belongs_to_one_request() {
    let provider = Provider::start();
    let id = provider.charge("k1").await.unwrap().id();
    let mismatch = error(400, "idempotency_error", "", "");
    let other_params =
        provider.post("/v1/payment_intents", "k1", &form("pm_card_visa", "manual")).await.unwrap();
    assert_eq!(other_params.error(), mismatch);
    let other_endpoint = provider.post("/v1/refunds", "k1", &format!("payment_intent={id}")).await.unwrap();
    assert_eq!(other_endpoint.error(), mismatch);
    assert!(provider.charge("k1").await.unwrap().replayed, "the first answer is still there");
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn a_key_in_progress_is_in_use() {
    let provider = Provider::start();
    provider.faults(Faults { latency_ms: 100, ..Faults::default() });
    let meanwhile = async {
        provider.clock.waits_begun(1).await;
        let same = provider.charge("k1").await.unwrap();
        let other =
            provider.post("/v1/payment_intents", "k1", &form("pm_card_visa", "manual")).await.unwrap();
        assert_eq!(provider.truth(), []);
        provider.clock.advance(100);
        (same, other)
    };
    let (first, (same, other)) = tokio::join!(provider.charge("k1"), meanwhile);
    assert_eq!(first.unwrap().status, 200);
    assert_eq!(same.error(), error(409, "idempotency_error", "idempotency_key_in_use", ""));
    assert_eq!(other.error(), error(400, "idempotency_error", "", ""));
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn a_key_is_forgotten_after_the_window() {
    let provider = Provider::start();
    provider.faults(Faults { dedup_window_ms: 5000, ..Faults::default() });
    let first = provider.charge("k1").await.unwrap();
    provider.clock.advance(4999);
    assert!(provider.charge("k1").await.unwrap().replayed);
    provider.clock.advance(1);
    let second = provider.charge("k1").await.unwrap();
    assert!(!second.replayed);
    assert_ne!(first.id(), second.id());
    assert_eq!(provider.truth(), [("charge", 1250), ("charge", 1250)]);
}

#[tokio::test]
async fn the_oldest_key_is_forgotten_at_the_bound() {
    let provider = Provider::with(|options| options.keys_max = 2);
    for key in ["k1", "k2", "k3"] {
        provider.charge(key).await.unwrap();
    }
    assert!(provider.charge("k2").await.unwrap().replayed);
    assert!(!provider.charge("k1").await.unwrap().replayed);
}

#[tokio::test]
async fn without_a_key_every_request_is_executed() {
    let provider = Provider::start();
    for _ in 0..2 {
        let headers = [("authorization", "Bearer x")];
        let body = form("pm_card_visa", "automatic");
        let got = provider.send(Method::POST, "/v1/payment_intents", &headers, body).await.unwrap();
        assert_eq!((got.status, got.replayed), (200, false));
    }
    assert_eq!(provider.truth(), [("charge", 1250), ("charge", 1250)]);
    assert!(provider.running.effects().iter().all(|effect| effect.key.is_none()));
}
