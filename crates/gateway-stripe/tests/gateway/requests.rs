//! The requests that the provider receives.

use crate::provider::{Act, HASTY, PATIENT, Provider, call, charge, intent, look_up, lookup};
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{Cause, LookupResult, ProviderOutcome, ProviderStep};
use counterfoil_core::types::peer::PeerName;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup};

const CHARGE: &str = "amount=1250&currency=usd&payment_method=pm_card_visa&confirm=true&capture_method=automatic\
    &metadata[counterfoil_payment]=ch_1&metadata[counterfoil_step]=charge";

#[tokio::test]
async fn a_charge_is_one_form_under_its_key() {
    let provider = Provider::answering(200, &intent("pi_1", "succeeded")).await;
    charge(&provider.gateway(PATIENT)).await;
    let seen = provider.seen();
    let mut lines: Vec<_> = seen[0].head.lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(
        lines,
        [
            "POST /v1/payment_intents HTTP/1.1",
            "authorization: Bearer sk_test_SECRET",
            &format!("content-length: {}", CHARGE.len()),
            "content-type: application/x-www-form-urlencoded",
            &format!("host: {}", provider.addr),
            "idempotency-key: cf0123456789",
        ]
    );
    assert_eq!(seen[0].body, CHARGE);
}

#[tokio::test]
async fn an_authorization_asks_for_manual_capture() {
    let provider = Provider::answering(200, &intent("pi_1", "requires_capture")).await;
    let gateway = provider.gateway(PATIENT);
    let mut hold = call(gateway.binding());
    hold.step = ProviderStep::Authorize;
    gateway.call(hold).await;
    let body = &provider.seen()[0].body;
    assert!(body.contains("&capture_method=manual&"), "{body}");
    assert!(body.ends_with("[counterfoil_step]=authorize"), "{body}");
}

#[tokio::test]
async fn every_attempt_is_the_same_bytes() {
    let provider = Provider::playing(vec![Act::Hang]).await;
    let gateway = provider.gateway(HASTY);
    for _ in 0..3 {
        charge(&gateway).await;
    }
    let seen = provider.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|request| *request == seen[0]), "{seen:#?}");
}

#[tokio::test]
async fn a_cut_call_is_sent_once_and_not_tried_again() {
    let provider = Provider::playing(vec![Act::Cut]).await;
    provider.charged().await;
    assert_eq!((provider.seen().len(), provider.accepted()), (1, 1));
}

#[tokio::test]
async fn a_lookup_is_a_search_by_our_reference() {
    let provider = Provider::answering(200, r#"{"data":[],"has_more":false}"#).await;
    look_up(&provider.gateway(PATIENT)).await;
    let seen = provider.seen();
    let mut lines: Vec<_> = seen[0].head.lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(
        lines,
        [
            "GET /v1/payment_intents/search?query=metadata%5B%27counterfoil_payment%27%5D%3A%27ch_1%27 HTTP/1.1",
            "authorization: Bearer sk_test_SECRET",
            &format!("host: {}", provider.addr),
        ]
    );
    assert_eq!(seen[0].body, "");
}

#[tokio::test]
async fn a_payment_bound_to_a_peer_is_never_sent_to_the_provider() {
    let provider = Provider::answering(200, r#"{"data":[],"has_more":false}"#).await;
    let gateway = provider.gateway(PATIENT);
    let endpoint = gateway.binding().endpoint;
    for (name, step) in [("eu", ProviderStep::Payout), ("eu", ProviderStep::Charge)] {
        let binding = ProviderBinding::to_peer(&PeerName::parse(name).unwrap(), &endpoint, "ac_1");
        assert!(!gateway.serves(&binding));
        let call = ProviderCall { step, ..call(binding.clone()) };
        assert_eq!(gateway.call(call).await, ProviderOutcome::NotSent);
        let lookup = ProviderLookup { reference: Some("po_1".to_owned()), ..lookup(binding, step) };
        assert_eq!(gateway.lookup(lookup).await, LookupResult::Unclear(Cause::Unreadable));
    }
    // The profile alone marks the binding of a peer, whatever its endpoint.
    let odd =
        ProviderBinding { endpoint, ..ProviderBinding::to_peer(&PeerName::parse("eu").unwrap(), "", "") };
    assert_eq!(gateway.call(call(odd)).await, ProviderOutcome::NotSent);
    assert_eq!(provider.accepted(), 0);
}
