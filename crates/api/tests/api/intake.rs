//! Rules that all writes share, from headers to answer.

use crate::client::Request;
use crate::fake::{Next, START, stored};
use crate::server::{Server, settings};
use crate::writes::{Write, open_accounts, writes};
use counterfoil_core::tenancy::KeyPolicy;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::time::Time;
use counterfoil_engine::service::Submitted;
use serde_json::json;
use std::time::Duration;

/// Unknown fields, invalid values and malformed JSON.
fn bad_bodies(write: &Write) -> Vec<String> {
    let mut bodies: Vec<String> = ["[]", "null", "7", "\"text\"", "{", "{}{}", "\u{feff}{}", "nul"]
        .into_iter()
        .map(str::to_owned)
        .collect();
    let unknown = if write.body == "{}" {
        "{\"zzz\":1}".to_owned()
    } else {
        write.body.replacen('{', "{\"zzz\":1,", 1)
    };
    bodies.push(unknown);
    bodies.push(format!("{{\"a\":1,\"a\":1,{}", write.body.trim_start_matches('{')));
    let good: serde_json::Value = serde_json::from_str(&write.body).unwrap();
    for field in good.as_object().unwrap().keys() {
        for value in [
            json!([]),
            json!([[]]),
            json!({"a": {}}),
            json!(-1),
            json!(0),
            json!(0.5),
            json!(true),
            json!(""),
            json!(" "),
            json!("\u{0}"),
            json!("\r\nHTTP/1.1 200 OK"),
            json!("' OR 1=1 --"),
            json!("${jndi:ldap://x}"),
            json!("\u{1f600}"),
            json!("x".repeat(70)),
            json!(1_000_000_000_000_000_i64),
            json!(18_446_744_073_709_551_615_u64),
        ] {
            // A few of the values are valid for the field.
            let fine = match field.as_str() {
                "exponent" => value == json!(0),
                "destination" => [json!("${jndi:ldap://x}"), json!("x".repeat(70))].contains(&value),
                "rate" => [json!(0.5), json!(1_000_000_000_000_000_i64)].contains(&value),
                _ => false,
            };
            if fine {
                continue;
            }
            let mut bad = good.clone();
            bad[field] = value;
            bodies.push(bad.to_string());
        }
    }
    bodies
}

#[tokio::test]
async fn hostile_bodies_are_refused_before_the_engine() {
    let server = Server::start().await;
    let all = writes(&server).await;
    let before = server.fake.submissions();
    let mut asked = 0;
    for write in &all {
        for body in bad_bodies(write) {
            let reply = server.ask(write.sending("k", &body)).await;
            let problem = reply.problem(400, "invalid_request");
            let errors = problem["errors"].as_array().unwrap();
            assert!(!errors.is_empty(), "{} {body}", write.target);
            assert!(
                errors.iter().all(|error| error["message"].as_str().unwrap().len() > 10),
                "{body}: {errors:?}"
            );
            asked += 1;
        }
        for form in
            ["%", "a=%ff", "zzz=1", "a[=1", "[]=1", "entries[1][amount]=1", "transactions[x]=1", "a=1&a=2"]
        {
            let reply = server.ask(write.with("k").form(form)).await;
            reply.problem(400, "invalid_request");
            asked += 1;
        }
    }
    assert!(asked > 400, "{asked}");
    assert_eq!(server.fake.submissions(), before);
}

#[tokio::test]
async fn checks_run_in_their_order_on_every_write() {
    let server = Server::start().await;
    let all = writes(&server).await;
    let before = server.fake.submissions();
    for write in &all {
        // Each request has the fault of its line and all later faults.
        let target = format!("{}?x=1", write.target);
        let worst =
            Request::new("POST", &target).header("Content-Type", "text/plain").body("x".repeat(5_000));
        server.ask(worst.clone()).await.problem(401, "unauthorized");
        server.ask(worst.clone().by(write.keys.1)).await.problem(403, "forbidden");
        let worst = worst.by(write.keys.0);
        server.ask(worst.clone()).await.problem(415, "unsupported_media_type");
        let worst = worst.without("Content-Type").header("Content-Type", "application/json");
        server.ask(worst.clone()).await.problem(400, "idempotency_key_required");
        let twice = worst.clone().header("Idempotency-Key", "a").header("Idempotency-Key", "a");
        server.ask(twice).await.problem(400, "idempotency_key_invalid");
        let worst = worst.header("Idempotency-Key", "k");
        server.ask(worst.clone()).await.problem(413, "body_too_large");
        let problem = server.ask(worst.clone().body("x")).await.problem(400, "invalid_request");
        assert_eq!(problem["errors"].as_array().unwrap().len(), 2, "query and body");
        server.ask(worst.body(&write.body)).await.problem(400, "invalid_request");
    }
    assert_eq!(server.fake.submissions(), before);
}

#[tokio::test]
async fn each_write_happens_once_and_is_replayed_unchanged() {
    let server = Server::start().await;
    for write in writes(&server).await {
        let key = format!("k-{}", write.target);
        let first = server.ask(write.with(&key)).await;
        assert_eq!(first.status, write.status, "{write:?} {}", first.text());
        assert_eq!(first.json()["object"], write.object);
        assert_eq!(first.header("idempotency-expires"), Some("2026-01-02T00:00:00.000Z"));
        assert_eq!(first.header("idempotent-replayed"), None);
        let made = (write.status == 201 && write.object != "asset") || write.object == "charge";
        let expected =
            made.then(|| format!("/v1/{}s/{}", write.object, first.json()["id"].as_str().unwrap()));
        assert_eq!(first.header("location"), expected.as_deref(), "{write:?}");
        if let Some(location) = &expected {
            assert_eq!(server.ask(Request::get(location)).await.body, first.body, "{location}");
        }

        let again = server.ask(write.with(&key)).await;
        assert_eq!((again.status, &again.body), (first.status, &first.body));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        for name in ["content-type", "location", "idempotency-expires"] {
            assert_eq!(again.header(name), first.header(name), "{name}");
        }
        let fingerprint = server.fake.fingerprint();
        let spaced = write.body.replace(',', " ,\n").replace(':', " : ");
        server.ask(write.sending(&key, &spaced)).await;
        assert_eq!(server.fake.fingerprint(), fingerprint, "the same request in another notation");

        if write.body != "{}" {
            let other = server.ask(write.sending(&key, &write.other)).await;
            other.problem(422, "idempotency_key_fingerprint_mismatch");
        }
        let elsewhere =
            server.ask(Request::charge(&key, r#"{"amount":1,"currency":"usd","payment_method":"pm"}"#));
        elsewhere.await.problem(422, "idempotency_key_fingerprint_mismatch");
    }
}

#[tokio::test]
async fn equal_bodies_on_different_paths_are_different_requests() {
    let server = Server::start().await;
    open_accounts(&server).await;
    for (one, other) in [("a", "b"), ("a", "e")] {
        let of = |code: &str| format!("/v1/accounts/{code}/shards");
        server.ask(Request::post(&of(one), "k", r#"{"shards":2}"#)).await;
        let reply = server.ask(Request::post(&of(other), "k", r#"{"shards":2}"#)).await;
        reply.problem(422, "idempotency_key_fingerprint_mismatch");
    }
}

#[tokio::test]
async fn refusals_of_the_engine_become_problems_on_every_write() {
    let server = Server::start().await;
    let at = Time::from_ms(START.ms() - 1);
    for write in writes(&server).await {
        let stored_refusal = stored(&server.fake, 400, r#"{"error":"insufficient_funds"}"#);
        for (says, status, code, retry) in [
            (Submitted::Invalid(vec![Flaw::new("/from", "no such account")]), 400, "invalid_request", None),
            (Submitted::NotFound, 404, "not_found", None),
            (Submitted::Mismatch, 422, "idempotency_key_fingerprint_mismatch", None),
            (Submitted::InUse, 409, "idempotency_key_in_use", Some("5")),
            (Submitted::InProgress, 409, "payment_in_progress", Some("1")),
            (Submitted::Expired { original_request_at: at }, 410, "idempotency_key_expired", None),
            (Submitted::StoreUnavailable, 503, "store_unavailable", Some("1")),
            (Submitted::Draining, 503, "shutting_down", Some("1")),
        ] {
            server.fake.next(Next::Say(says));
            let reply = server.ask(write.with("k")).await;
            let problem = reply.problem(status, code);
            assert_eq!(reply.header("retry-after"), retry, "{code}");
            if code == "invalid_request" {
                assert_eq!(problem["errors"], json!([{"pointer": "/from", "message": "no such account"}]));
            }
            if code == "payment_in_progress" {
                // Nothing was stored, so the client may reuse the key.
                assert_eq!(
                    (&problem["retry_after_ms"], &problem["safe_new_key"]),
                    (&json!(1_000), &json!(true))
                );
                assert!(problem["detail"].as_str().unwrap().contains("same key"), "{problem}");
            }
        }
        for replayed in [false, true] {
            server.fake.next(Next::Say(Submitted::Answer { settled: stored_refusal.clone(), replayed }));
            let reply = server.ask(write.with("k")).await;
            assert_eq!((reply.status, reply.text().as_str()), (400, r#"{"error":"insufficient_funds"}"#));
            assert_eq!(reply.header("content-type"), Some("application/problem+json"));
            assert_eq!(reply.header("idempotent-replayed"), replayed.then_some("true"));
        }
        server.fake.next(Next::Panic);
        server.ask(write.with("k")).await.problem(500, "internal_error");
    }
}

#[tokio::test]
async fn work_past_the_timeout_keeps_its_key() {
    let mut hasty = settings();
    hasty.request_timeout = Duration::from_millis(100);
    let server = Server::with(hasty, Duration::ZERO).await;
    // References are equal on all servers, so the objects can be created on a server with more
    // time.
    for write in writes(&Server::start().await).await {
        server.fake.next(Next::Hang);
        let problem = server.ask(write.with("k")).await.problem(409, "idempotency_key_in_use");
        assert_eq!(problem["safe_new_key"], false, "{}", write.target);
    }
}

#[tokio::test]
async fn missing_optional_keys_are_counted_by_route() {
    let mut relaxed = settings();
    relaxed.key_policy = KeyPolicy::Optional;
    let server = Server::with(relaxed, Duration::ZERO).await;
    for write in writes(&server).await {
        let reply = server.ask(write.with("").without("Idempotency-Key")).await;
        assert_eq!(reply.status, write.status, "{}", reply.text());
    }
    let text = server.ask(Request::get("/metrics")).await.text();
    for route in [
        "/v1/accounts",
        "/v1/accounts/{id}/shards",
        "/v1/transfers",
        "/v1/transfers/{id}/post",
        "/v1/transfers/{id}/void",
        "/v1/transactions",
        "/v1/transactions/bulk",
        "/v1/transactions/{id}/reverse",
        "/v1/conversions",
        "/v1/assets",
        "/v1/charges/{id}/capture",
        "/v1/charges/{id}/void",
        "/v1/refunds",
        "/v1/payouts",
        "/v1/dead-letters/{id}/resolve",
    ] {
        let missing = format!("counterfoil_key_missing_total{{tenant=\"acme\",route=\"{route}\"}} 1\n");
        assert!(text.contains(&missing), "{missing}{text}");
        assert!(
            text.contains(&format!("counterfoil_requests_total{{route=\"{route}\",status=\"20")),
            "{route}"
        );
    }
}

#[tokio::test]
async fn only_requests_without_required_fields_may_be_empty() {
    let server = Server::start().await;
    for write in writes(&server).await {
        let ends = ["/post", "/void", "/reverse", "/capture"].iter().any(|end| write.target.ends_with(end));
        let key = format!("bare-{}", write.target);
        let bare = write.with(&key).without("Content-Type").body("");
        let typed = write.with(&key).body("");
        let form = write.with(&key).form("");
        if ends {
            let first = server.ask(bare).await;
            assert_eq!(first.status, write.status, "{}", first.text());
            for again in [typed, form, write.with(&key).body("{}")] {
                let again = server.ask(again).await;
                assert_eq!((again.header("idempotent-replayed"), &again.body), (Some("true"), &first.body));
            }
        } else {
            for request in [bare, typed, form] {
                server.ask(request).await.problem(400, "invalid_request");
            }
        }
    }
}

#[tokio::test]
async fn forms_mean_the_same_request() {
    let server = Server::start().await;
    for write in writes(&server).await {
        let form = match write.target.as_str() {
            "/v1/accounts" => "code=new&asset=USD",
            "/v1/accounts/a/shards" => "shards=4",
            "/v1/transfers" => "from=a&to=b&amount=100&currency=usd",
            "/v1/transactions" => {
                "entries[0][account]=a&entries[0][direction]=debit&entries[0][amount]=5&entries[0][asset]=usd&\
                 entries[1][account]=b&entries[1][direction]=credit&entries[1][amount]=5&entries[1][asset]=usd"
            }
            "/v1/transactions/bulk" => {
                "transactions[0][from]=a&transactions[0][to]=b&transactions[0][amount]=100&\
                 transactions[0][currency]=usd&transactions[1][entries][0][account]=a&\
                 transactions[1][entries][0][direction]=debit&transactions[1][entries][0][amount]=5&\
                 transactions[1][entries][0][asset]=usd&transactions[1][entries][1][account]=b&\
                 transactions[1][entries][1][direction]=credit&transactions[1][entries][1][amount]=5&\
                 transactions[1][entries][1][asset]=usd"
            }
            "/v1/assets" => "code=points&exponent=0",
            "/v1/refunds" | "/v1/payouts" => {
                &write.body.replace(['{', '}', '"'], "").replace(',', "&").replace(':', "=")
            }
            target if target.ends_with("/post") || target.ends_with("/capture") => "amount=60",
            target if target.ends_with("/resolve") => "resolution=adopt",
            // A rate is a number in a form; the other routes have no such fields.
            "/v1/conversions" => continue,
            _ => "",
        };
        let key = format!("k-{}", write.target);
        let first = server.ask(write.with(&key)).await;
        let again = server.ask(write.with(&key).form(form)).await;
        assert_eq!(
            (again.status, &again.body),
            (first.status, &first.body),
            "{} {}",
            write.target,
            again.text()
        );
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
    }
    let json = Request::post("/v1/conversions", "c", r#"{"from":"a","to":"e","amount":1000,"rate":0.9215}"#);
    let first = server.ask(json.clone()).await;
    assert_eq!(first.status, 201, "{}", first.text());
    assert_eq!(server.ask(json.form("from=a&to=e&amount=1000&rate=0.9215")).await.body, first.body);
}
