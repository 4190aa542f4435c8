//! Equal requests have equal fingerprints in every notation; different requests have different
//! ones.

use crate::client::Request;
use crate::server::Server;

const PLAIN: &str = r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa","capture":false,"description":"a b","metadata":{"order":"42","n":"1"}}"#;

#[tokio::test]
async fn equal_requests_have_equal_fingerprints() {
    let server = Server::start().await;
    let first = server.ask(Request::charge("k", PLAIN)).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let fingerprint = server.fake.fingerprint();
    let json = |body: &str| Request::charge("k", body);
    let form = |body: &str| {
        json(body).without("Content-Type").header("Content-Type", "application/x-www-form-urlencoded")
    };
    let requests = [
        json(PLAIN).without("Content-Type").header("Content-Type", "Application/JSON; charset=UTF-8"),
        json(
            r#"{"metadata":{"n":"1","order":"42"},"description":"a b","capture":false,"payment_method":"pm_card_visa","currency":"usd","amount":1250}"#,
        ),
        json(
            "\n {\"amount\":1250.0,\t\"currency\":\"\\u0075sd\",\"payment_method\":\"pm_card_visa\",\"capture\":false,\"description\":\"a b\",\"metadata\":{\"order\":\"42\",\"n\":\"1\"}}\r\n",
        ),
        json(&PLAIN.replace("1250", "1.25e3")),
        json(&PLAIN.replace("1250", "125000E-2")),
        form(
            "amount=1250&currency=usd&payment_method=pm_card_visa&capture=false&description=a+b&metadata[order]=42&metadata[n]=1",
        ),
        form(
            "metadata%5Bn%5D=1&metadata%5Border%5D=42&description=a%20b&capture=false&payment_method=pm_card_visa&currency=usd&amount=1.25e3",
        ),
        json(PLAIN).header("User-Agent", "another").header("X-Forwarded-For", "::1").header("Accept", "*/*"),
        json(PLAIN).target("/v1/charges?"),
        json(PLAIN).target("http://localhost/v1/charges"),
        json(PLAIN).without("Idempotency-Key").header("idempotency-key", "\"k\""),
        json(PLAIN).without("Authorization").header("Authorization", "Bearer sk_acme_write"),
    ];
    for request in requests {
        let shown = String::from_utf8_lossy(&request.bytes()).into_owned();
        let reply = server.ask(request).await;
        assert_eq!(server.fake.fingerprint(), fingerprint, "{shown}");
        assert_eq!((reply.status, &reply.body), (201, &first.body), "{shown}");
        assert_eq!(reply.header("idempotent-replayed"), Some("true"), "{shown}");
    }
}

#[tokio::test]
async fn different_requests_have_different_fingerprints() {
    let server = Server::start().await;
    server.ask(Request::charge("k", PLAIN)).await;
    let fingerprint = server.fake.fingerprint();
    for body in [
        PLAIN.replace("1250", "1251"),
        PLAIN.replace("usd", "USD"),
        PLAIN.replace("\"capture\":false", "\"capture\":true"),
        PLAIN.replace("a b", "a  b"),
        PLAIN.replace("\"42\"", "\"042\""),
        PLAIN.replace("\"capture\":false", "\"capture\":null"),
        PLAIN.replace("\"capture\":false,", ""),
        PLAIN.replace("\"description\":\"a b\"", "\"description\":null"),
    ] {
        server.ask(Request::charge("k", &body)).await.problem(422, "idempotency_key_fingerprint_mismatch");
        assert_ne!(server.fake.fingerprint(), fingerprint, "{body}");
    }
    let stranger =
        Request::charge("k", PLAIN).without("Authorization").header("Authorization", "Bearer sk_globex");
    assert_eq!(server.ask(stranger).await.status, 201, "keys are a tenant's own");
    assert_ne!(server.fake.fingerprint(), fingerprint);
}
