//! Agreement between the description, the router and the pages.

use crate::client::Request;
use crate::fake::Fake;
use crate::server::{Server, settings};
use counterfoil_api::{App, Metrics, router};
use counterfoil_wire::problem::Code;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// All routes of the contract that this version implements.
const ROUTES: [&str; 44] = [
    "GET /docs",
    "GET /errors",
    "GET /errors/{code}",
    "GET /healthz",
    "GET /metrics",
    "GET /openapi.json",
    "GET /readyz",
    "GET /v1/accounts",
    "GET /v1/accounts/{id}",
    "GET /v1/accounts/{id}/balance",
    "GET /v1/accounts/{id}/entries",
    "GET /v1/assets",
    "GET /v1/charges",
    "GET /v1/charges/{id}",
    "GET /v1/charges/{id}/timeline",
    "GET /v1/dead-letters",
    "GET /v1/dead-letters/{id}",
    "GET /v1/idempotency-keys/{key}",
    "GET /v1/payouts",
    "GET /v1/payouts/{id}",
    "GET /v1/payouts/{id}/timeline",
    "GET /v1/refunds",
    "GET /v1/refunds/{id}",
    "GET /v1/transactions",
    "GET /v1/transactions/{id}",
    "GET /v1/transfers/{id}",
    "GET /v1/transfers/{id}/timeline",
    "POST /v1/accounts",
    "POST /v1/accounts/{id}/shards",
    "POST /v1/assets",
    "POST /v1/charges",
    "POST /v1/charges/{id}/capture",
    "POST /v1/charges/{id}/void",
    "POST /v1/conversions",
    "POST /v1/dead-letters/{id}/resolve",
    "POST /v1/payouts",
    "POST /v1/refunds",
    "POST /v1/transactions",
    "POST /v1/transactions/bulk",
    "POST /v1/transactions/{id}/reverse",
    "POST /v1/transfers",
    "POST /v1/transfers/{id}/post",
    "POST /v1/transfers/{id}/void",
    "POST /v1/webhooks/{provider}",
];

#[tokio::test]
async fn openapi_names_every_route_and_every_route_answers() {
    let server = Server::start().await;
    let reply = server.ask(Request::get("/openapi.json")).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let description = reply.json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut described = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            described.insert(format!("{} {path}", method.to_uppercase()));
            let names = [("{code}", "not_found"), ("{id}", "x"), ("{key}", "x"), ("{provider}", "stripe")];
            let target = names.iter().fold(path.clone(), |path, (name, value)| path.replace(name, value));
            let reply = server.ask(Request::new(&method.to_uppercase(), &target)).await;
            assert!(![404, 405].contains(&reply.status), "{method} {path}: {}", reply.status);
        }
    }
    assert_eq!(described, ROUTES.iter().map(|route| (*route).to_owned()).collect());
}

#[tokio::test]
async fn paths_that_nearly_match_are_not_found() {
    let server = Server::start().await;
    let paths = [
        "/",
        "/v1/charges/",
        "/v1/charges/a/b",
        "/v1/charges/a/timeline/",
        "/v1",
        "/v1/",
        "/v1/charges/a/",
        "/v1/charges/a//",
        "/v1/charges/a/timeline/b",
        "/v1/charges/a/refund",
        "/v1/refunds/",
        "/v1/refunds/a/b",
        "/v1/payouts/",
        "/v1/payouts/a/cancel",
        "/v1/dead-letters/a/resolve/",
        "/v1/dead-letters/resolve/a/b",
        "/v1/accounts/",
        "/v1/accounts/a/balance/",
        "/v1/accounts/a/b/balance",
        "/v1/transfers/a/reverse",
        "/v1/transactions/",
        "/v1/transactions/bulk/",
        "/v1/conversions/a",
        "/v1/assets/a",
        "/v1/idempotency-keys",
        "/v1/idempotency-keys/",
        "/v1/idempotency-keys/a/b",
        "/v1/webhooks",
        "/v1/webhooks/",
        "/v1/webhooks/a/b",
        "/errors/",
        "/V1/charges",
        "//v1/charges",
    ];
    for path in paths {
        server.ask(Request::get(path)).await.problem(404, "not_found");
    }
    let metrics = server.ask(Request::get("/metrics")).await.text();
    let count = format!("counterfoil_requests_total{{route=\"unmatched\",status=\"404\"}} {}\n", paths.len());
    assert!(metrics.contains(&count), "{metrics}");
    for path in ["/v1/charges//timeline", "/v1/accounts//balance"] {
        server.ask(Request::get(path)).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn operation_ids_are_unique() {
    let server = Server::start().await;
    let description = server.ask(Request::get("/openapi.json")).await.json();
    let paths = description["paths"].as_object().unwrap().values();
    let operations: Vec<&Value> = paths.flat_map(|methods| methods.as_object().unwrap().values()).collect();
    let ids: BTreeSet<&str> = operations.iter().map(|one| one["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), operations.len(), "{ids:?}");
    assert!(ids.contains("charges_create") && ids.contains("idempotency_keys_get"), "{ids:?}");
}

#[tokio::test]
async fn the_router_returns_the_description_it_serves() {
    let server = Server::start().await;
    let (_, openapi) = router(App::new(Fake::new(), Arc::new(Metrics::new()), settings(), Vec::new()));
    let served = server.ask(Request::get("/openapi.json")).await.json();
    let handed: Value = serde_json::from_str(&openapi.to_json().unwrap()).unwrap();
    assert_eq!(served, handed);
}

#[tokio::test]
async fn every_reference_of_the_description_resolves() {
    let server = Server::start().await;
    let description = server.ask(Request::get("/openapi.json")).await.json();
    let mut open = vec![&description];
    let mut found = 0;
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let path = reference.strip_prefix('#').unwrap();
                    assert!(description.pointer(path).is_some(), "{reference}");
                    found += 1;
                }
                open.extend(members.values());
            }
            Value::Array(elements) => open.extend(elements),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    assert!(found > 10, "{found}");
}

#[tokio::test]
async fn pages_need_nothing_from_the_internet() {
    let server = Server::start().await;
    for target in ["/docs", "/errors", "/errors/card_declined"] {
        let reply = server.ask(Request::new("GET", target).header("Accept", "text/html,*/*")).await;
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{target}");
        let text = reply.text();
        for forbidden in ["http:", "https:", "src=", "url(", "@import", "style=\"", "onclick", "{{", "src: "]
        {
            assert!(!text.contains(forbidden), "{target} has {forbidden}");
        }
        assert!(!text.contains("\"//"), "{target}");
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
        let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        assert!(text.contains(&format!("nonce=\"{nonce}\"")), "{target}");
        let again = server.ask(Request::new("GET", target).header("Accept", "text/html")).await;
        assert_ne!(again.header("content-security-policy"), Some(policy), "a nonce is used once");
    }
}

#[tokio::test]
async fn every_error_has_its_page() {
    let server = Server::start().await;
    let index = server.ask(Request::new("GET", "/errors")).await.text();
    for code in Code::ALL {
        let target = format!("/errors/{}", code.name());
        assert!(index.contains(&format!("]({target})")), "{target}");
        let plain = server.ask(Request::new("GET", &target)).await;
        assert_eq!(plain.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(plain.text(), code.page());
        let html = server.ask(Request::new("GET", &target).header("Accept", "text/html")).await.text();
        assert!(html.contains(&format!("<h1>{}</h1>", code.name())), "{target}");
    }
    server.ask(Request::new("GET", "/errors/no_such_code")).await.problem(404, "not_found");
}
