//! Canaries: marked texts sent in every place a client controls. No canary may reach a log or a
//! metric.

use crate::client::Request;
use crate::fake::Next;
use crate::server::Server;
use std::io;
use std::sync::{Arc, Mutex};
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

#[tokio::test]
async fn nothing_a_client_sent_is_logged_or_counted() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(Level::TRACE)
        .with_writer(log.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let server = Server::start().await;
    let body = r#"{"amount":987654321,"currency":"usd","payment_method":"pm_canary","description":"canary","metadata":{"canary_name":"canary_value"}}"#;
    let requests = [
        Request::charge("canary-key", body),
        Request::charge("canary-key", &body.replace("canary_value", "canary_other")),
        Request::charge("canary key", body),
        Request::charge("canary-key-2", &body.replace("amount", "canary_field")),
        Request::charge("canary-key-2", "canary not json"),
        Request::charge("canary-key-2", body).target("/v1/charges?canary=canary"),
        Request::charge("canary-key-2", body)
            .without("Authorization")
            .header("Authorization", "Bearer sk_canary"),
        Request::charge("canary-key-2", body).without("Content-Type").header("Content-Type", "canary/canary"),
        Request::charge("canary-key-2", body).header("X-Canary", "canary").header("User-Agent", "canary"),
        Request::get("/v1/charges?starting_after=canary"),
        Request::get("/v1/charges/canary"),
        Request::get("/v1/idempotency-keys/canary"),
        Request::get("/canary/canary"),
        Request::post(
            "/v1/accounts",
            "canary-a",
            r#"{"code":"canary:1","asset":"CANARY","metadata":{"canary":"canary"}}"#,
        ),
        Request::post("/v1/accounts/canary:1/shards", "canary-s", r#"{"shards":2}"#),
        Request::post("/v1/assets", "canary-b", r#"{"code":"canary","exponent":2}"#),
        Request::post(
            "/v1/transfers",
            "canary-t",
            r#"{"from":"canary:1","to":"canary:2","amount":987654321,"currency":"CANARY"}"#,
        ),
        Request::post("/v1/transfers/canary/void", "canary-v", "{}"),
        Request::post("/v1/transactions/bulk", "canary-k", r#"{"transactions":[{"canary":1}]}"#),
        Request::get("/v1/accounts/canary:1"),
        Request::get("/v1/accounts/canary:1/balance?at=canary"),
        Request::get("/v1/accounts/canary:1/entries?starting_after=canary"),
        Request::get("/v1/transactions/canary"),
        Request::post("/v1/charges/canary/capture", "canary-c", r#"{"amount":987654321}"#),
        Request::post("/v1/refunds", "canary-r", r#"{"charge":"ch_canary","amount":987654321}"#),
        Request::post("/v1/refunds", "canary-r", r#"{"charge":"canary"}"#),
        Request::get("/v1/refunds?starting_after=canary"),
        Request::post(
            "/v1/payouts",
            "canary-p",
            r#"{"amount":987654321,"currency":"usd","destination":"ba_canary","description":"canary","metadata":{"canary":"canary"}}"#,
        ),
        Request::post(
            "/v1/payouts",
            "canary-p",
            r#"{"amount":987654321,"account":"canary","destination":"canary canary"}"#,
        ),
        Request::get("/v1/payouts/canary"),
        Request::get("/v1/payouts/canary/timeline?starting_after=canary"),
        Request::post(
            "/v1/dead-letters/canary/resolve",
            "canary-d",
            r#"{"resolution":"fail","reason":"canary"}"#,
        )
        .by("sk_acme_admin"),
        Request::get("/v1/dead-letters/canary").by("sk_acme_admin"),
        Request::new("CANARY", "/v1/charges"),
    ];
    for request in requests {
        server.ask(request).await;
    }
    server.fake.next(Next::Panic);
    server.ask(Request::charge("canary-key-3", body)).await.problem(500, "internal_error");
    server.send_raw("canary canary canary\r\n\r\n").await.unwrap().problem(400, "malformed_request");
    let metrics = server.ask(Request::get("/metrics")).await.text();
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for (what, text) in [("log", &logged), ("metrics", &metrics)] {
        for canary in ["canary", "Canary", "CANARY", "987654321", "sk_acme"] {
            assert!(!text.contains(canary), "{what} has {canary}: {text}");
        }
    }
    // The log has entries, so the canaries are not missing merely because nothing was recorded.
    for word in [
        "counterfoil::request",
        "route=\"/v1/charges\"",
        "status=201",
        "tenant=\"acme\"",
        "a handler panicked",
        "request=req_",
    ] {
        assert!(logged.contains(word), "{word} is missing in {logged}");
    }
}
