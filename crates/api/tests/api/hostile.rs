//! Hundreds of bad requests: each gets its 4xx as a problem with a `Request-Id`, none reaches the engine, and the
//! server is as good after them as before.

use crate::client::Request;
use crate::server::Server;

const GOOD: &str = r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#;

/// Values no field takes, as JSON.
const VALUES: [&str; 24] = [
    "[]",
    "{}",
    "[[]]",
    "{\"a\":{}}",
    "-1",
    "0",
    "0.1",
    "1e-7",
    "1e9999",
    "-1e9999",
    "9007199254740993",
    "99999999999999999999999999",
    "\"\\u0000\"",
    "\"\\u001b[31m\"",
    "\"\\r\\n\\r\\nHTTP/1.1 200 OK\"",
    "\"${jndi:ldap://x}\"",
    "\"' OR 1=1 --\"",
    "\"../../etc/passwd\"",
    "\"\\ud83d\\ude00\"",
    "\"\\u202e\"",
    "\"4242424242424242\"",
    "\"5555-5555-5555-4444\"",
    "\" \"",
    "\"é\"",
];

/// Texts that are not JSON as this server reads it.
fn not_json() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = [
        "",
        " ",
        "{",
        "}",
        "[",
        "nul",
        "tru",
        "NaN",
        "Infinity",
        "'a'",
        "{a:1}",
        "{\"a\":1,}",
        "[1,]",
        "{\"a\" 1}",
        "01",
        "+1",
        ".5",
        "1.",
        "1e",
        "0x10",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"\t\"",
        "\"abc",
        "{} {}",
        "// c\n{}",
        "/* c */{}",
        "{\"amount\":1,\"amount\":1}",
        "{\"metadata\":{\"a\":\"1\",\"a\":\"1\"}}",
        "\u{feff}{}",
        "null",
        "true",
        "1",
        "\"text\"",
        "[{\"amount\":1}]",
        "{\"a\":1e99999}",
    ]
    .into_iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    bodies.push(b"{\"a\":\"\xff\"}".to_vec());
    bodies.push(b"{\"a\":\"\xc0\x80\"}".to_vec());
    bodies.push(b"{\"a\":\"\xed\xa0\x80\"}".to_vec());
    bodies.push(b"\x1f\x8b\x08\x00".to_vec());
    bodies.push("[".repeat(2_000).into_bytes());
    bodies.push("{\"a\":".repeat(500).into_bytes());
    bodies.push(format!("{{\"amount\":{}}}", "9".repeat(1_000)).into_bytes());
    bodies
}

fn forms() -> Vec<Vec<u8>> {
    [
        "amount",
        "amount=",
        "amount=abc",
        "amount=12.5",
        "amount=+1",
        "amount=1&amount=1",
        "%",
        "%zz=1",
        "a=%ff",
        "=",
        "=1",
        "[]=1",
        "a[=1",
        "a]=1",
        "metadata=x",
        "metadata[a]=1&metadata[a]=2",
        "metadata[a][b]=1",
        "metadata[]=1",
        "capture=yes",
        "wallet[account]=ac_1&wallet[amount]=1",
        "payment_method=4242424242424242",
        "amount=1%00",
        "{\"amount\":1}",
        "amount=1;currency=usd",
        "payment_method=%F0%9F%98%80",
    ]
    .into_iter()
    .map(|text| text.as_bytes().to_vec())
    .collect()
}

fn bodies() -> Vec<Request> {
    let json = |body: &[u8]| Request::charge("k", "").body(body);
    let mut requests: Vec<Request> = not_json().iter().map(|body| json(body)).collect();
    for field in
        ["amount", "currency", "payment_method", "capture", "destination", "wallet", "metadata", "unknown"]
    {
        let rest: Vec<&str> = [r#""amount":1"#, r#""currency":"usd""#, r#""payment_method":"pm""#]
            .into_iter()
            .filter(|pair| !pair.starts_with(&format!("\"{field}\"")))
            .collect();
        for value in VALUES {
            // These few are what the field takes.
            let fine = match field {
                "payment_method" => ["\"${jndi:ldap://x}\"", "\"../../etc/passwd\""].contains(&value),
                "metadata" => value == "{}",
                _ => false,
            };
            if !fine {
                requests.push(json(format!("{{{},\"{field}\":{value}}}", rest.join(",")).as_bytes()));
            }
        }
    }
    for body in forms() {
        let request = json(&body).without("Content-Type");
        requests.push(request.header("Content-Type", "application/x-www-form-urlencoded"));
    }
    requests
}

fn heads() -> Vec<Request> {
    let good = || Request::charge("k", GOOD);
    let mut requests = Vec::new();
    for media in [
        "",
        "text/plain",
        "text/json",
        "multipart/form-data",
        "application/xml",
        "application/json; charset=utf-16",
        "*/*",
    ] {
        requests.push(good().without("Content-Type").header("Content-Type", media));
    }
    requests.push(good().without("Content-Type"));
    requests.push(good().header("Content-Type", "application/json"));
    requests.push(good().header("Content-Encoding", "gzip"));
    for key in ["", "a b", "\"", "\"a\"b", "é", "\u{7f}", "a\tb", &"k".repeat(256)] {
        requests.push(good().without("Idempotency-Key").header("Idempotency-Key", key));
    }
    for secret in [
        "",
        "Bearer",
        "Bearer \u{ff}",
        "Bearer sk_' OR 1=1",
        "Digest x",
        &format!("Bearer sk_{}", "x".repeat(4_000)),
    ] {
        requests.push(good().without("Authorization").header("Authorization", secret));
    }
    for target in ["/v1/charges?a", "/v1/charges?amount=1", "/v1/charges?%zz", "/v1/charges?limit=1"] {
        requests.push(good().target(target));
    }
    for target in [
        "/",
        "/v1",
        "/v1/",
        "/v1/charges/",
        "//v1/charges",
        "/v1/charges/../charges",
        "/v1/%63harges",
        "/V1/CHARGES",
        "/v1/charges;x",
        "/v1/charges%00",
        "/v1/refunds",
    ] {
        requests.push(good().target(target));
    }
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "post"] {
        requests.push(Request::new(method, "/v1/charges").header("Authorization", "Bearer sk_acme"));
        requests.push(Request::new(method, "/healthz"));
    }
    requests.push(Request::new("CONNECT", "localhost:80"));
    requests.push(Request::new("OPTIONS", "*"));
    for query in [
        "limit=-1",
        "limit=1e1",
        "limit=%31%30%31",
        "starting_after=%00",
        "starting_after[]=x",
        "expand=x",
        "=",
        "limit",
    ] {
        for list in ["charges", "accounts", "transactions", "assets"] {
            requests.push(Request::get(&format!("/v1/{list}?{query}")));
        }
    }
    for id in
        ["x", "ch_", "%00", "%2e%2e", "ch_zzzzzzzzzzzzzzzzzzzzzzzzzz", "..", "ac_0000000000000000000000000"]
    {
        requests.push(Request::get(&format!("/v1/charges/{id}")));
        requests.push(Request::get(&format!("/v1/charges/{id}/timeline")));
    }
    for code in ["x", "..", "%2e%2e%2fCargo.toml", "not_found.md"] {
        requests.push(Request::get(&format!("/errors/{code}")));
    }
    requests
}

#[tokio::test]
async fn each_is_refused_and_none_is_executed() {
    let server = Server::start().await;
    let requests: Vec<Request> = bodies().into_iter().chain(heads()).collect();
    assert!(requests.len() > 300, "{}", requests.len());
    for request in requests {
        let shown = String::from_utf8_lossy(&request.bytes()).into_owned();
        let reply = server.ask(request).await;
        assert!((400..500).contains(&reply.status), "{shown}\n{reply:?}");
        let body = reply.json();
        let code = body["error"].as_str().unwrap_or_else(|| panic!("{shown}\n{reply:?}")).to_owned();
        reply.problem(reply.status, &code);
        if code == "invalid_request" {
            let errors = body["errors"].as_array().unwrap();
            assert!(!errors.is_empty(), "{shown}");
            assert!(errors.iter().all(|error| error["pointer"].is_string() && error["message"].is_string()));
        }
    }
    assert_eq!(server.fake.submissions(), 0);
    assert_eq!(server.ask(Request::charge("k", GOOD)).await.status, 201);
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let server = Server::start().await;
    for (target, allow) in [
        ("/v1/charges", "GET,HEAD,POST"),
        ("/healthz", "GET,HEAD"),
        ("/v1/charges/x", "GET,HEAD"),
        ("/v1/accounts", "GET,HEAD,POST"),
        ("/v1/accounts/x/shards", "POST"),
        ("/v1/transfers", "POST"),
        ("/v1/transfers/x/post", "POST"),
        ("/v1/transactions/bulk", "POST"),
        ("/v1/transactions/x", "GET,HEAD"),
    ] {
        for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
            let reply = server.ask(Request::new(method, target)).await;
            reply.problem(405, "method_not_allowed");
            let mut named: Vec<&str> = reply.header("allow").unwrap().split(',').map(str::trim).collect();
            named.sort_unstable();
            assert_eq!(named.join(","), allow, "{method} {target}");
        }
    }
}
