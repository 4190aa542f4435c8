//! Requests that no honest client sends: each is refused with a reason, nothing is executed,
//! nothing breaks.

use hyper::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::provider::{Provider, error, form};

const INVALID: &str = "invalid_request_error";

#[tokio::test]
async fn an_api_key_is_required() {
    let provider = Provider::start();
    for headers in [
        vec![],
        vec![("authorization", "Bearer ")],
        vec![("authorization", "Bearer")],
        vec![("authorization", "Basic c2s6")],
        vec![("authorization", "Bearer \u{e9}")],
    ] {
        let body = form("pm_card_visa", "automatic");
        let got = provider.send(Method::POST, "/v1/payment_intents", &headers, body).await.unwrap();
        assert_eq!(got.error(), error(401, INVALID, "", ""), "{headers:?}");
    }
    assert_eq!(provider.truth(), []);
}

#[tokio::test]
async fn bad_parameters_are_refused_by_name() {
    let provider = Provider::start();
    let good = form("pm_card_visa", "automatic");
    let long_value = format!("{good}&metadata[long]={}", "v".repeat(501));
    let long_name = format!("{good}&metadata[{}]=v", "n".repeat(41));
    let many = (0..50).map(|n| format!("&metadata[m{n}]=v")).collect::<Vec<_>>().concat();
    for (form, code, param) in [
        (String::new(), "parameter_missing", "amount"),
        (good.replace("amount=1250", "amount="), "parameter_invalid_integer", "amount"),
        (good.replace("amount=1250", "amount=12.5"), "parameter_invalid_integer", "amount"),
        (good.replace("amount=1250", "amount=-1"), "parameter_invalid_integer", "amount"),
        (good.replace("amount=1250", "amount=18446744073709551616"), "parameter_invalid_integer", "amount"),
        (good.replace("currency=usd", "currency=USD"), "parameter_invalid", "currency"),
        (good.replace("currency=usd", "currency=us"), "parameter_invalid", "currency"),
        (good.replace("currency=usd", "currency=%C3%A9u"), "parameter_invalid", "currency"),
        (good.replace("currency=usd&", ""), "parameter_missing", "currency"),
        (good.replace("pm_card_visa", "pm_card_unheard"), "resource_missing", "payment_method"),
        (good.replace("confirm=true", "confirm=false"), "parameter_invalid", "confirm"),
        (good.replace("&confirm=true", ""), "parameter_missing", "confirm"),
        (good.replace("=automatic", "=sometimes"), "parameter_invalid", "capture_method"),
        (format!("{good}&amount=1"), "parameter_invalid", "amount"),
        (format!("{good}&status=succeeded"), "parameter_unknown", "status"),
        (long_value, "parameter_invalid", "metadata[long]"),
        (long_name, "parameter_invalid", &format!("metadata[{}]", "n".repeat(41))),
        (format!("{good}{many}"), "parameter_invalid", "metadata[m8]"),
        (format!("{good}&metadata=x"), "parameter_unknown", "metadata"),
    ] {
        let got = provider.post("/v1/payment_intents", "k", &form).await.unwrap();
        assert_eq!(got.error(), error(400, INVALID, code, param), "{form}");
    }
    assert_eq!(provider.truth(), []);
    assert_eq!(
        provider.post("/v1/payment_intents", "k", &good).await.unwrap().status,
        200,
        "the key is still free"
    );
}

#[tokio::test]
async fn malformed_bodies_are_refused() {
    let provider = Provider::start();
    let good = form("pm_card_visa", "automatic");
    for body in [&b"%"[..], b"amount=%GG", b"\xff\xfe\x00", b"&&&&", b"====", b"[]", b"{\"amount\":1}", b"\0"]
    {
        let headers = [("authorization", "Bearer x")];
        let got = provider.send(Method::POST, "/v1/payment_intents", &headers, body).await.unwrap();
        assert_eq!((got.status, got.error().1.as_str()), (400, INVALID), "{body:?}");
    }
    let headers = [("authorization", "Bearer x"), ("content-type", "application/json")];
    let json = provider.send(Method::POST, "/v1/payment_intents", &headers, good).await.unwrap();
    assert_eq!(json.error(), error(400, INVALID, "", ""));
    assert_eq!(provider.truth(), []);
}

#[tokio::test]
async fn oversized_bodies_are_refused() {
    let provider = Provider::start();
    let body = format!("{}&description={}", form("pm_card_visa", "automatic"), "x".repeat(70_000));
    assert_eq!(
        provider.post("/v1/payment_intents", "k", &body).await.unwrap().error(),
        error(413, INVALID, "", "")
    );
    assert_eq!(provider.truth(), []);
}

#[tokio::test]
async fn bad_idempotency_keys_are_refused() {
    let provider = Provider::start();
    let long = "k".repeat(256);
    for keys in [vec![""], vec![long.as_str()], vec!["\u{e9}"], vec!["a", "b"]] {
        let mut headers = vec![("authorization", "Bearer x")];
        headers.extend(keys.iter().map(|key| ("idempotency-key", *key)));
        let body = form("pm_card_visa", "automatic");
        let got = provider.send(Method::POST, "/v1/payment_intents", &headers, body).await.unwrap();
        assert_eq!(got.error(), error(400, INVALID, "", ""), "{keys:?}");
    }
    assert_eq!(provider.truth(), []);
}

#[tokio::test]
async fn unknown_routes_are_not_found() {
    let provider = Provider::start();
    for (method, path) in [
        (Method::GET, "/"),
        (Method::GET, "/v1/charges"),
        (Method::DELETE, "/v1/payment_intents/pi_1"),
        (Method::POST, "/v1/payment_intents/pi_1/confirm"),
        (Method::POST, "/_sim/effects"),
        (Method::GET, "/_sim/"),
    ] {
        let got = provider.send(method, path, &[("authorization", "Bearer x")], "").await.unwrap();
        assert_eq!(got.error(), error(404, INVALID, "", ""), "{path}");
    }
    let bad_after = provider.get("/_sim/effects?after=-1").await;
    assert_eq!(bad_after.error(), error(400, INVALID, "parameter_invalid_integer", "after"));
}

#[tokio::test]
async fn a_request_cut_off_in_its_body_is_no_request() {
    let provider = Provider::start();
    let mut stream = tokio::net::TcpStream::connect(provider.running.addr()).await.unwrap();
    let body = form("pm_card_visa", "automatic");
    let head = "POST /v1/payment_intents HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\ncontent-length: 9999\r\n\r\n";
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), "");
    assert_eq!(provider.truth(), []);
}

#[tokio::test]
async fn noise_instead_of_http_harms_nobody() {
    let provider = Provider::start();
    let mut stream = tokio::net::TcpStream::connect(provider.running.addr()).await.unwrap();
    stream.write_all(b"\x16\x03\x01\x02\x00noise\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400") || answer.is_empty(), "{answer:?}");
    assert_eq!(provider.charge("k1").await.unwrap().status, 200);
}
