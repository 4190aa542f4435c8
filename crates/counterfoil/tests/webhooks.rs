//! Provider webhooks on the real server: a foreign event is refused, a genuine one makes the server
//! ask the provider.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use counterfoil_provider_simulator::Faults;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};
use support::{Answer, Bench, exchange, field, until};

const OLD: &str = "whsec_CANARYoldsecret_0123456789";
const NEW: &str = "whsec_CANARYnewsecret_0123456789";
/// Longer than the wait in `until`: a charge that settles in time was not settled by polling.
const LONG_SECONDS: u64 = 120;

fn bench() -> Bench {
    let secrets = format!("{OLD},{NEW}");
    Bench::new(&[
        ("COUNTERFOIL_GATEWAY__WEBHOOK_SECRETS", &secrets),
        ("COUNTERFOIL_OUTBOX__BACKOFF_BASE_MS", "3600000"),
        ("COUNTERFOIL_OUTBOX__BACKOFF_CAP_MS", "3600000"),
        ("COUNTERFOIL_OUTBOX__POLL_MS", "20"),
        ("COUNTERFOIL_SERVER__BODY_LIMIT_BYTES", "4096"),
        ("COUNTERFOIL_SERVER__REQUEST_LOG", "all"),
    ])
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn tag(secret: &str, seconds: u64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{seconds}.{body}").as_bytes());
    mac.finalize().into_bytes().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn signed(secret: &str, seconds: u64, body: &str) -> String {
    format!("Stripe-Signature: t={seconds},v1={}\r\n", tag(secret, seconds, body))
}

fn event(payment: &str) -> String {
    format!(
        r#"{{"id":"evt_1","object":"event","type":"payment_intent.succeeded","created":{},"data":{{"object":{{"id":"pi_1","object":"payment_intent","amount":999999,"currency":"eur","status":"succeeded","metadata":{{"counterfoil_payment":"{payment}","counterfoil_step":"charge"}}}}}}}}"#,
        now()
    )
}

fn deliver(bench: &Bench, provider: &str, headers: &str, body: &str) -> Answer {
    let headers = format!("Content-Type: application/json; charset=utf-8\r\n{headers}");
    exchange(bench.port, "POST", &format!("/v1/webhooks/{provider}"), &headers, body).unwrap()
}

fn take(bench: &Bench, secret: &str, body: &str) {
    let answer = deliver(bench, "stripe", &signed(secret, now(), body), body);
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"received":true}"#));
}

/// Makes charges until a charge is in doubt although the provider executed it. Returns the charge's
/// key and reference.
fn in_doubt(bench: &Bench) -> (String, String) {
    bench.provider.set_faults(Faults { drop_after: 1.0, ..Faults::default() }).unwrap();
    for number in 0..50 {
        let key = format!("k{number}");
        let told = bench.charge(&key);
        assert_eq!((told.status, told.error()), (503, "outcome_pending".into()));
        let charge = field(&told.body, "charge");
        if told.headers["retry-after"].parse::<u64>().unwrap() > LONG_SECONDS {
            bench.provider.set_faults(Faults::default()).unwrap();
            return (key, charge);
        }
    }
    panic!("fifty waits of up to an hour were all short");
}

fn attempts(bench: &Bench, key: &str) -> i64 {
    support::client::number(&bench.get(&format!("/v1/idempotency-keys/{key}")).body, "attempts")
}

#[test]
fn a_webhook_without_the_providers_signature_changes_nothing() {
    let bench = bench();
    let server = bench.serve();
    let (key, charge) = in_doubt(&bench);
    let (body, seconds) = (event(&charge), now());
    let good = signed(NEW, seconds, &body);
    let large = format!("{}{}", body, " ".repeat(4_096));
    for (name, headers, sent, status, error) in [
        ("no header", String::new(), body.clone(), 400, "invalid_signature"),
        ("two headers", format!("{good}{good}"), body.clone(), 400, "invalid_signature"),
        (
            "no signature",
            format!("Stripe-Signature: t={seconds}\r\n"),
            body.clone(),
            400,
            "invalid_signature",
        ),
        (
            "forged",
            signed("whsec_somebody_elses_secret", seconds, &body),
            body.clone(),
            400,
            "invalid_signature",
        ),
        ("altered", good.clone(), body.replace("999999", "1250"), 400, "invalid_signature"),
        ("cut", good.clone(), body[..body.len() - 1].to_owned(), 400, "invalid_signature"),
        ("old", signed(NEW, seconds - 310, &body), body.clone(), 400, "invalid_signature"),
        ("future", signed(NEW, seconds + 310, &body), body.clone(), 400, "invalid_signature"),
        (
            "a time that was not signed",
            format!("Stripe-Signature: t={},v1={}\r\n", seconds + 1, tag(NEW, seconds, &body)),
            body.clone(),
            400,
            "invalid_signature",
        ),
        ("another scheme", good.replace("v1=", "v0="), body.clone(), 400, "invalid_signature"),
        ("oversized", signed(NEW, seconds, &large), large.clone(), 413, "body_too_large"),
        ("no event", signed(NEW, seconds, "[]"), "[]".to_owned(), 400, "invalid_request"),
        (
            "an API key instead",
            format!("Authorization: Bearer {}\r\n", bench.api_key),
            body.clone(),
            400,
            "invalid_signature",
        ),
    ] {
        let answer = deliver(&bench, "stripe", &headers, &sent);
        assert_eq!((answer.status, answer.error().as_str()), (status, error), "{name}");
    }
    for provider in ["adyen", "STRIPE", "counterfoil"] {
        let answer = deliver(&bench, provider, &good, &body);
        assert_eq!((answer.status, answer.error()), (404, "not_found".into()), "{provider}");
    }
    assert_eq!((bench.own_state(&key), attempts(&bench, &key)), ("uncertain".into(), 1));
    drop(server);
    assert!(!bench.log_text().contains("CANARY"), "a secret is logged");
    bench.verified();
}

#[test]
fn a_webhook_makes_the_server_ask_and_settles_a_charge_in_doubt() {
    for secret in [OLD, NEW] {
        let bench = bench();
        let _server = bench.serve();
        let (key, charge) = in_doubt(&bench);
        let effects = bench.provider.effects().len();
        // Events about foreign objects, and of unknown type and shape.
        for body in ["{}", r#"{"type":"who.knows","data":{"object":{"metadata":null}}}"#, &event("ch_0")] {
            take(&bench, secret, body);
        }
        assert_eq!((bench.own_state(&key), attempts(&bench, &key)), ("uncertain".into(), 1));
        take(&bench, secret, &event(&charge));
        until("the hinted charge is settled", || bench.own_state(&key) == "completed");
        let settled = bench.charge(&key);
        assert_eq!((settled.status, settled.is_replay()), (201, true), "{}", settled.body);
        // The event claimed 999999 EUR.
        assert_eq!(support::client::number(&settled.body, "amount_captured"), 1_250);
        assert_eq!((attempts(&bench, &key), bench.provider.effects().len()), (2, effects));
        // Repeated, late and out of order: nothing is left to do.
        for _ in 0..3 {
            take(&bench, secret, &event(&charge));
        }
        assert_eq!((attempts(&bench, &key), bench.charge(&key).body), (2, settled.body));
        bench.verified();
    }
}

#[test]
fn a_server_without_a_secret_accepts_no_webhooks() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    let body = event("ch_0");
    for headers in [String::new(), signed(NEW, now(), &body), signed("", now(), &body)] {
        let answer = deliver(&bench, "stripe", &headers, &body);
        assert_eq!((answer.status, answer.error()), (404, "not_found".into()));
    }
}
