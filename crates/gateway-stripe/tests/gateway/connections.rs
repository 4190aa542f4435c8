//! Connections: reused, bounded, refused, never redirected; and the outcome of requests that were
//! never sent.

use crate::provider::{
    Act, HASTY, KEY, PATIENT, Provider, call, charge, intent, next_request, reply, settings,
};
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{Cause, ProviderOutcome};
use counterfoil_gateway::Gateway;
use counterfoil_gateway_stripe::StripeGateway;
use std::pin::pin;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// A loopback address without a listener.
async fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn one_connection_serves_many_calls_whatever_their_outcomes() {
    for (status, body) in [
        (200, intent("pi_1", "succeeded")),
        (402, r#"{"error":{"type":"card_error"}}"#.to_owned()),
        (400, "nonsense".to_owned()),
        (429, "{}".to_owned()),
        (500, "{}".to_owned()),
        (302, String::new()),
    ] {
        let provider = Provider::answering(status, &body).await;
        let gateway = provider.gateway(PATIENT);
        for _ in 0..5 {
            charge(&gateway).await;
        }
        assert_eq!((provider.seen().len(), provider.accepted()), (5, 1), "{status}");
    }
}

#[tokio::test]
async fn a_connection_the_provider_closes_is_replaced() {
    let last = reply(200, "connection: close\r\n", &intent("pi_1", "succeeded"));
    let provider = Provider::playing(vec![Act::Send(last), Act::Cut]).await;
    let gateway = provider.gateway(PATIENT);
    for _ in 0..3 {
        let outcome = charge(&gateway).await;
        assert!(matches!(outcome, ProviderOutcome::Approved(_)), "{outcome:?}");
    }
    assert_eq!((provider.seen().len(), provider.accepted()), (3, 3));
}

/// Nothing polls an idle connection, so its end is noticed when it is next taken.
#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("stripe+http://{KEY}@{}", listener.local_addr().unwrap());
    let gateway = StripeGateway::new(settings(&url, PATIENT)).unwrap();
    for _ in 0..3 {
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            next_request(&mut stream, &mut Vec::new()).await.unwrap();
            stream.write_all(&reply(200, "", &intent("pi_1", "succeeded"))).await.unwrap();
            stream
        };
        let (outcome, stream) = tokio::join!(charge(&gateway), answering);
        assert!(matches!(outcome, ProviderOutcome::Approved(_)), "{outcome:?}");
        drop(stream);
        // Let the runtime process the close.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_connection_idle_for_a_minute_is_replaced() {
    let provider = Provider::answering(200, &intent("pi_1", "succeeded")).await;
    let gateway = provider.gateway(PATIENT);
    for (wait, accepted) in [(0, 1), (30, 1), (60, 2), (30, 2)] {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(wait)).await;
        tokio::time::resume();
        let outcome = charge(&gateway).await;
        assert!(matches!(outcome, ProviderOutcome::Approved(_)), "{outcome:?}");
        assert_eq!(provider.accepted(), accepted, "after {wait} s");
    }
}

#[tokio::test]
async fn a_connection_that_timed_out_is_not_used_again() {
    let provider = Provider::playing(vec![Act::Hang]).await;
    let gateway = provider.gateway(HASTY);
    for _ in 0..2 {
        assert_eq!(charge(&gateway).await, ProviderOutcome::Unknown(Cause::Timeout));
    }
    assert_eq!((provider.seen().len(), provider.accepted()), (2, 2));
}

/// The first answer may still arrive on that connection; no other request must read it.
#[tokio::test]
async fn a_cancelled_call_drops_its_connection() {
    let provider = Provider::playing(vec![Act::Hang]).await;
    let gateway = provider.gateway(PATIENT);
    for calls in 1..=2 {
        let mut call = pin!(charge(&gateway));
        while provider.seen().len() < calls {
            tokio::select! {
                biased;
                outcome = call.as_mut() => panic!("{outcome:?} from a silent provider"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(provider.accepted(), calls);
    }
}

#[tokio::test]
async fn a_call_without_a_free_slot_is_busy_and_not_sent() {
    let provider = Provider::playing(vec![Act::Hang]).await;
    let mut one = settings(&format!("stripe+http://{KEY}@{}", provider.addr), 2 * HASTY);
    one.connections_max = 1;
    let gateway = StripeGateway::new(one).unwrap();
    let (first, second) = tokio::join!(charge(&gateway), charge(&gateway));
    assert_eq!(first, ProviderOutcome::Unknown(Cause::Timeout));
    assert_eq!(second, ProviderOutcome::Busy { retry_after: None });
    assert_eq!(provider.seen().len(), 1);
}

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    let url = format!("stripe+http://{KEY}@{}", unused_address().await);
    let gateway = StripeGateway::new(settings(&url, PATIENT)).unwrap();
    assert_eq!(charge(&gateway).await, ProviderOutcome::NotSent);
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_not_sent() {
    let url = format!("stripe+http://{KEY}@provider.invalid:1");
    let gateway = StripeGateway::new(settings(&url, PATIENT)).unwrap();
    assert_eq!(charge(&gateway).await, ProviderOutcome::NotSent);
}

#[tokio::test]
async fn a_failed_handshake_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("stripe+https://{KEY}@{}", listener.local_addr().unwrap());
    let gateway = StripeGateway::new(settings(&url, PATIENT)).unwrap();
    let hang_up = async { drop(listener.accept().await.unwrap()) };
    let (outcome, ()) = tokio::join!(charge(&gateway), hang_up);
    assert_eq!(outcome, ProviderOutcome::NotSent);
}

#[tokio::test]
async fn a_handshake_that_outlasts_the_deadline_is_not_sent() {
    let provider = Provider::playing(vec![Act::Hang]).await;
    let url = format!("stripe+https://{KEY}@{}", provider.addr);
    let gateway = StripeGateway::new(settings(&url, HASTY)).unwrap();
    assert_eq!(charge(&gateway).await, ProviderOutcome::NotSent);
    assert_eq!((provider.accepted(), provider.seen().len()), (1, 0));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Provider::answering(200, &intent("pi_1", "succeeded")).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("location: http://{}/v1/payment_intents\r\n", elsewhere.addr);
        let provider = Provider::playing(vec![Act::Send(reply(status, &location, ""))]).await;
        assert_eq!(provider.charged().await, ProviderOutcome::Unknown(Cause::Unreadable), "{status}");
    }
    assert_eq!(elsewhere.accepted(), 0);
}

#[tokio::test]
async fn a_payment_goes_to_the_endpoint_it_is_bound_to() {
    let old = Provider::answering(200, &intent("pi_1", "succeeded")).await;
    let new = Provider::answering(500, "").await;
    let gateway = new.gateway(PATIENT);
    let binding =
        ProviderBinding { profile: "stripe".into(), endpoint: format!("http://{}", old.addr).into() };
    let outcome = gateway.call(call(binding)).await;
    assert!(matches!(outcome, ProviderOutcome::Approved(_)), "{outcome:?}");
    assert_eq!((old.seen().len(), new.seen().len()), (1, 0));
    assert!(old.seen()[0].head.contains(KEY));
}

#[tokio::test]
async fn a_key_meant_for_tls_does_not_travel_without_it() {
    let provider = Provider::answering(200, &intent("pi_1", "succeeded")).await;
    let url = format!("stripe+https://{KEY}@{}", provider.addr);
    let gateway = StripeGateway::new(settings(&url, PATIENT)).unwrap();
    let plain = provider.gateway(PATIENT).binding();
    assert_eq!(gateway.call(call(plain)).await, ProviderOutcome::NotSent);
    assert_eq!(provider.accepted(), 0);
}

#[tokio::test]
async fn a_payment_bound_to_tls_uses_no_plain_connection_to_the_same_server() {
    let provider = Provider::answering(200, &intent("pi_1", "succeeded")).await;
    let gateway = provider.gateway(PATIENT);
    charge(&gateway).await;
    let binding =
        ProviderBinding { profile: "stripe".into(), endpoint: format!("https://{}", provider.addr).into() };
    assert_eq!(gateway.call(call(binding)).await, ProviderOutcome::NotSent);
    assert_eq!((provider.seen().len(), provider.accepted()), (1, 1));
}

#[tokio::test]
async fn a_call_to_a_malformed_endpoint_is_not_sent() {
    let provider = Provider::answering(200, &intent("pi_1", "succeeded")).await;
    for endpoint in ["", "nowhere", "no where", "ftp://127.0.0.1", "https://127.0.0.1:1"] {
        let binding = ProviderBinding { profile: "stripe".into(), endpoint: endpoint.into() };
        let outcome = provider.gateway(PATIENT).call(call(binding)).await;
        assert_eq!(outcome, ProviderOutcome::NotSent, "{endpoint:?}");
    }
    assert_eq!(provider.accepted(), 0);
}
