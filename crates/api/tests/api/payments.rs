//! Captures, voids, refunds and dead letters as clients see them.

use crate::client::{Reply, Request};
use crate::fake::Next;
use crate::server::Server;
use crate::writes::{id, make};
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::id::{ChargeId, PayoutId};
use counterfoil_core::types::time::Span;
use counterfoil_engine::service::Submitted;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

const CHARGE: &str = r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#;
const HELD: &str = r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa","capture":false}"#;

/// The answer without the request id.
fn bare(reply: &Reply, status: u16, code: &str) -> Value {
    let mut body = reply.problem(status, code);
    body["request_id"] = Value::Null;
    body
}

fn ids(list: &Value) -> Vec<&str> {
    assert_eq!(list["object"], "list");
    list["data"].as_array().unwrap().iter().map(id).collect()
}

async fn get(server: &Server, target: &str) -> Value {
    let reply = server.ask(Request::get(target)).await;
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    reply.json()
}

/// Checks a refused operation: the refusal is stored and replayed, and names the charge's status.
async fn conflict(server: &Server, target: &str, key: &str, body: &str) -> Value {
    let refused = server.ask(Request::post(target, key, body)).await;
    let problem = refused.problem(409, "charge_state_conflict");
    assert_eq!(refused.header("location"), None);
    let again = server.ask(Request::post(target, key, body)).await;
    assert_eq!((again.header("idempotent-replayed"), &again.body), (Some("true"), &refused.body));
    assert_eq!(problem["safe_new_key"], true);
    problem
}

#[tokio::test]
async fn payments_of_other_tenants_look_absent() {
    let server = Server::start().await;
    let held = make(&server, "/v1/charges", "held", HELD).await;
    let charge = make(&server, "/v1/charges", "charge", CHARGE).await;
    let refund = make(&server, "/v1/refunds", "r", &format!(r#"{{"charge":"{}"}}"#, id(&charge))).await;
    let letter = server.fake.park();
    let never = server.fake.reference(ChargeId::from_i64(999));
    let post = |target: String, body: &str, by: &str| Request::post(&target, "k", body).by(by);
    let refund_of =
        |charge: &str| post("/v1/refunds".to_owned(), &format!(r#"{{"charge":"{charge}"}}"#), "sk_globex");
    for part in ["capture", "void"] {
        let of = |charge: &str| post(format!("/v1/charges/{charge}/{part}"), "{}", "sk_globex");
        let theirs = bare(&server.ask(of(id(&held))).await, 404, "not_found");
        for absent in [never.as_str(), "ch_x%ff", id(&refund)] {
            assert_eq!(bare(&server.ask(of(absent)).await, 404, "not_found"), theirs, "{part} {absent}");
        }
    }
    let theirs = bare(&server.ask(refund_of(id(&charge))).await, 404, "not_found");
    for absent in [never.as_str(), "ch_", "ch_zzzzzzzzzzzzzzzzzzzzzzzzzz"] {
        assert_eq!(bare(&server.ask(refund_of(absent)).await, 404, "not_found"), theirs, "{absent}");
    }
    for (target, by) in [
        (format!("/v1/refunds/{}", id(&refund)), "sk_globex"),
        (format!("/v1/refunds/{}", id(&charge)), "sk_acme"),
        ("/v1/refunds/re_zzzzzzzzzzzzzzzzzzzzzzzzzz".to_owned(), "sk_acme"),
        (format!("/v1/dead-letters/{letter}"), "sk_globex_admin"),
        ("/v1/dead-letters/dl_1".to_owned(), "sk_acme_admin"),
    ] {
        server.ask(Request::get(&target).by(by)).await.problem(404, "not_found");
    }
    for target in [format!("/v1/dead-letters/{letter}/resolve"), "/v1/dead-letters/x/resolve".to_owned()] {
        let request = post(target, r#"{"resolution":"adopt"}"#, "sk_globex_admin");
        server.ask(request).await.problem(404, "not_found");
    }
    let foreign = format!("/v1/refunds?starting_after={}", id(&refund));
    server.ask(Request::get(&foreign).by("sk_globex")).await.problem(400, "invalid_request");
    for (target, by) in [("/v1/refunds", "sk_globex"), ("/v1/dead-letters", "sk_globex_admin")] {
        let own = server.ask(Request::get(target).by(by)).await;
        assert_eq!(own.text(), r#"{"object":"list","data":[],"has_more":false}"#);
    }
    assert_eq!(get(&server, &format!("/v1/charges/{}", id(&held))).await["status"], "requires_capture");
}

#[tokio::test]
async fn operator_routes_need_the_scope_admin() {
    let server = Server::start().await;
    make(&server, "/v1/charges", "charge", CHARGE).await;
    let letter = server.fake.park();
    let target = format!("/v1/dead-letters/{letter}");
    for request in [
        Request::get("/v1/dead-letters"),
        Request::get(&target),
        Request::post(&format!("{target}/resolve"), "k", r#"{"resolution":"adopt"}"#),
    ] {
        server.ask(request.clone().without("Authorization")).await.problem(401, "unauthorized");
        let refused = server.ask(request.clone()).await.problem(403, "forbidden");
        assert!(refused["detail"].as_str().unwrap().contains("`admin`"), "{refused}");
        assert_eq!(server.ask(request.by("sk_acme_admin")).await.status, 200);
    }
    // An operator's key cannot move money.
    let charge = Request::charge("k", CHARGE).by("sk_acme_admin");
    server.ask(charge).await.problem(403, "forbidden");
    server.ask(Request::get("/v1/refunds").by("sk_acme_admin")).await.problem(403, "forbidden");
}

#[tokio::test]
async fn operations_the_status_forbids_are_refused_with_the_status() {
    let server = Server::start().await;
    let held = make(&server, "/v1/charges", "held", HELD).await;
    let of = |part: &str| format!("/v1/charges/{}/{part}", id(&held));
    let refund = |amount: &str| format!(r#"{{"charge":"{}"{amount}}}"#, id(&held));

    let early = conflict(&server, "/v1/refunds", "early", &refund("")).await;
    assert_eq!(early["charge_status"], "requires_capture");
    assert!(early["detail"].as_str().unwrap().contains("/void"), "{early}");
    let much = conflict(&server, &of("capture"), "much", r#"{"amount":1251}"#).await;
    assert_eq!((&much["amount_available"], &much["charge"]), (&json!(1_250), &held["id"]));

    let captured = make(&server, &of("capture"), "capture", r#"{"amount":1000}"#).await;
    assert_eq!((&captured["status"], &captured["captured"]), (&json!("succeeded"), &json!(true)));
    assert_eq!(captured["amount_captured"], 1_000);
    let twice = conflict(&server, &of("capture"), "twice", "{}").await;
    assert_eq!(twice["charge_status"], "succeeded");
    let late = conflict(&server, &of("void"), "late", "").await;
    assert!(late["detail"].as_str().unwrap().contains("POST /v1/refunds"), "{late}");

    make(&server, "/v1/refunds", "part", &refund(r#","amount":400"#)).await;
    let over = conflict(&server, "/v1/refunds", "over", &refund(r#","amount":601"#)).await;
    assert_eq!(
        (&over["charge_status"], &over["amount_available"]),
        (&json!("partially_refunded"), &json!(600))
    );
    let rest = make(&server, "/v1/refunds", "rest", &refund("")).await;
    assert_eq!(
        (&rest["amount"], &rest["object"], &rest["charge"]),
        (&json!(600), &json!("refund"), &held["id"])
    );
    let none = conflict(&server, "/v1/refunds", "none", &refund("")).await;
    assert_eq!(none["charge_status"], "refunded");
    let charge = get(&server, &format!("/v1/charges/{}", id(&held))).await;
    assert_eq!((&charge["status"], &charge["amount_refunded"]), (&json!("refunded"), &json!(1_000)));
}

#[tokio::test]
async fn a_void_releases_the_hold_once() {
    let server = Server::start().await;
    let held = make(&server, "/v1/charges", "held", HELD).await;
    let target = format!("/v1/charges/{}/void", id(&held));
    let voided = server.ask(Request::post(&target, "k", "").without("Content-Type")).await;
    assert_eq!((voided.status, &voided.json()["status"]), (200, &json!("voided")));
    assert_eq!(voided.json()["amount_captured"], 0);
    assert_eq!(voided.header("location"), Some(format!("/v1/charges/{}", id(&held)).as_str()));
    let twice = conflict(&server, &target, "again", "{}").await;
    assert_eq!(twice["charge_status"], "voided");
    let capture = conflict(&server, &target.replace("void", "capture"), "late", "{}").await;
    assert!(capture["detail"].as_str().unwrap().contains("make a new charge"), "{capture}");
}

#[tokio::test]
async fn a_split_charge_shows_its_wallet() {
    let server = Server::start().await;
    let account = make(&server, "/v1/accounts", "a", r#"{"code":"a","asset":"usd"}"#).await;
    let wallet = |amount: i64| format!(r#""wallet":{{"account":"{}","amount":{amount}}}"#, id(&account));
    for (more, place) in [
        (wallet(1_250), "/wallet/amount"),
        (format!(r#""capture":false,{}"#, wallet(1)), "/capture"),
        (r#""wallet":{"account":"a","amount":1}"#.to_owned(), "/wallet/account"),
        (r#""wallet":{"acount":"a"}"#.to_owned(), "/wallet/acount"),
    ] {
        let body = format!("{},{more}}}", CHARGE.trim_end_matches('}'));
        let problem = server.ask(Request::charge("k", &body)).await.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], place, "{problem}");
    }
    let body = format!("{},{}}}", CHARGE.trim_end_matches('}'), wallet(250));
    let split = server.ask(Request::charge("k", &body)).await;
    assert_eq!(split.json()["wallet"], json!({"account": id(&account), "amount": 250}));
    assert_eq!(split.json()["amount_captured"], 1_250);
    let form = format!(
        "amount=1250&currency=usd&payment_method=pm_card_visa&wallet[account]={}&wallet[amount]=250",
        id(&account)
    );
    let again = server.ask(Request::charge("k", "").form(&form)).await;
    assert_eq!((again.header("idempotent-replayed"), &again.body), (Some("true"), &split.body));
    let refund = format!(r#"{{"charge":"{}"}}"#, id(&split.json()));
    let refunded = make(&server, "/v1/refunds", "r", &refund).await;
    assert_eq!(refunded["amount"], 1_000, "the card's part");
}

#[tokio::test]
async fn refunds_are_listed_in_pages() {
    let server = Server::start().await;
    let charge = make(&server, "/v1/charges", "charge", CHARGE).await;
    let mut made = Vec::new();
    for number in 0..5 {
        let body = format!(r#"{{"charge":"{}","amount":10}}"#, id(&charge));
        made.push(make(&server, "/v1/refunds", &format!("r-{number}"), &body).await);
    }
    made.reverse();
    let newest: Vec<&str> = made.iter().map(id).collect();
    let first = get(&server, "/v1/refunds?limit=2").await;
    assert_eq!((ids(&first), &first["has_more"]), (newest[..2].to_vec(), &json!(true)));
    let rest = get(&server, &format!("/v1/refunds?starting_after={}", newest[1])).await;
    assert_eq!((ids(&rest), &rest["has_more"]), (newest[2..].to_vec(), &json!(false)));
    assert_eq!(get(&server, &format!("/v1/refunds/{}", newest[4])).await, made[4]);
    for query in [
        "limit=0".to_owned(),
        "charge=x".to_owned(),
        format!("starting_after={}", id(&charge)),
        "starting_after=re_1".to_owned(),
    ] {
        server.ask(Request::get(&format!("/v1/refunds?{query}"))).await.problem(400, "invalid_request");
    }
    let one = format!("/v1/refunds/{}", newest[0]);
    server.ask(Request::get(&format!("{one}?x=1"))).await.problem(400, "invalid_request");
    server.ask(Request::get(&one).by("sk_acme_write")).await.problem(403, "forbidden");
}

#[tokio::test]
async fn dead_letters_are_listed_and_resolved() {
    let server = Server::start().await;
    let mut letters = Vec::new();
    for number in 0..3 {
        make(&server, "/v1/charges", &format!("c-{number}"), CHARGE).await;
        letters.push(server.fake.park());
    }
    letters.reverse();
    let ask = async |target: &str| server.ask(Request::get(target).by("sk_acme_admin")).await;
    let first = ask("/v1/dead-letters?limit=1").await.json();
    assert_eq!((ids(&first), &first["has_more"]), (vec![letters[0].as_str()], &json!(true)));
    let letter = ask(&format!("/v1/dead-letters/{}", letters[0])).await.json();
    assert_eq!(letter, first["data"][0]);
    assert_eq!((&letter["object"], &letter["reason"]), (&json!("dead_letter"), &json!("no_evidence")));
    let timeline = letter["timeline"].as_str().unwrap();
    assert_eq!(get(&server, timeline).await["object"], "list", "{timeline}");

    let target = format!("/v1/dead-letters/{}/resolve", letters[0]);
    let fail = r#"{"resolution":"fail","reason":"the provider shows nothing"}"#;
    let resolved = server.ask(Request::post(&target, "k", fail).by("sk_acme_admin")).await;
    assert_eq!(resolved.status, 200, "{}", resolved.text());
    let body = resolved.json();
    assert_eq!(
        (&body["dead_letter"], &body["resolution"], &body["charge"]["id"]),
        (&json!(letters[0]), &json!("fail"), &letter["charge"])
    );
    let again = server.ask(Request::post(&target, "k", fail).by("sk_acme_admin")).await;
    assert_eq!((again.header("idempotent-replayed"), &again.body), (Some("true"), &resolved.body));
    server.ask(Request::post(&target, "k2", fail).by("sk_acme_admin")).await.problem(404, "not_found");
    ask(&format!("/v1/dead-letters/{}", letters[0])).await.problem(404, "not_found");
    // A resolved dead letter is still a valid cursor.
    let rest = ask(&format!("/v1/dead-letters?starting_after={}", letters[0])).await.json();
    assert_eq!(ids(&rest), [letters[1].as_str(), &letters[2]]);
    for query in ["limit=x", "starting_after=dl_1", "state=open"] {
        ask(&format!("/v1/dead-letters?{query}")).await.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn payments_are_not_reported_absent_while_the_store_is_down() {
    let server = Server::start().await;
    let charge = make(&server, "/v1/charges", "charge", CHARGE).await;
    let refund = make(&server, "/v1/refunds", "r", &format!(r#"{{"charge":"{}"}}"#, id(&charge))).await;
    let letter = server.fake.park();
    server.fake.store_down.store(true, Ordering::SeqCst);
    for target in [
        "/v1/refunds".to_owned(),
        format!("/v1/refunds/{}", id(&refund)),
        "/v1/dead-letters".to_owned(),
        format!("/v1/dead-letters/{letter}"),
    ] {
        let reply = server.ask(Request::get(&target).by("sk_acme_admin")).await;
        reply.problem(503, "store_unavailable");
    }
}

#[tokio::test]
async fn payouts_are_created_replayed_read_and_listed() {
    let server = Server::start().await;
    let body = r#"{"amount":800,"currency":"usd","destination":"ba_1","metadata":{"week":"46"}}"#;
    let first = server.ask(Request::post("/v1/payouts", "p1", body)).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let payout = first.json();
    let location = format!("/v1/payouts/{}", id(&payout));
    assert_eq!(first.header("location"), Some(location.as_str()));
    assert_eq!((&payout["object"], &payout["status"]), (&json!("payout"), &json!("paid")));
    assert_eq!((&payout["destination"], &payout["metadata"]), (&json!("ba_1"), &json!({"week": "46"})));
    let again = server.ask(Request::post("/v1/payouts", "p1", body)).await;
    assert_eq!((again.header("idempotent-replayed"), &again.body), (Some("true"), &first.body));
    let other = Request::post("/v1/payouts", "p1", &body.replace("800", "801"));
    server.ask(other).await.problem(422, "idempotency_key_fingerprint_mismatch");
    assert_eq!(server.ask(Request::get(&location)).await.body, first.body);

    let second = make(&server, "/v1/payouts", "p2", r#"{"amount":1,"currency":"usd"}"#).await;
    assert_eq!(ids(&get(&server, "/v1/payouts").await), [id(&second), id(&payout)]);
    let page = get(&server, "/v1/payouts?limit=1").await;
    assert_eq!((ids(&page), &page["has_more"]), (vec![id(&second)], &json!(true)));
    let rest = get(&server, &format!("/v1/payouts?starting_after={}", id(&second))).await;
    assert_eq!((ids(&rest), &rest["has_more"]), (vec![id(&payout)], &json!(false)));
}

#[tokio::test]
async fn payouts_of_other_tenants_look_absent() {
    let server = Server::start().await;
    let payout = make(&server, "/v1/payouts", "p", r#"{"amount":1,"currency":"usd"}"#).await;
    let charge = make(&server, "/v1/charges", "c", CHARGE).await;
    let theirs = Request::get(&format!("/v1/payouts/{}", id(&payout))).by("sk_globex");
    let theirs = bare(&server.ask(theirs).await, 404, "not_found");
    for absent in [id(&charge), "po_", "po_zzzzzzzzzzzzzzzzzzzzzzzzzz", "po_x%ff"] {
        for part in ["", "/timeline"] {
            let reply = server.ask(Request::get(&format!("/v1/payouts/{absent}{part}"))).await;
            assert_eq!(bare(&reply, 404, "not_found"), theirs, "{absent}{part}");
        }
    }
    let foreign = format!("/v1/payouts?starting_after={}", id(&payout));
    server.ask(Request::get(&foreign).by("sk_globex")).await.problem(400, "invalid_request");
    let own = server.ask(Request::get("/v1/payouts").by("sk_globex")).await;
    assert_eq!(own.text(), r#"{"object":"list","data":[],"has_more":false}"#);
    let read_only = Request::post("/v1/payouts", "k", r#"{"amount":1,"currency":"usd"}"#).by("sk_acme_read");
    server.ask(read_only).await.problem(403, "forbidden");
    for list in ["/v1/payouts", "/v1/payouts/po_1"] {
        server.ask(Request::get(list).by("sk_acme_write")).await.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn pending_payouts_are_named_in_the_problem() {
    let server = Server::start().await;
    let payment = Payment::Payout(PayoutId::from_i64(9));
    let pending = Submitted::Pending { payment, retry_after: Span::from_ms(1_500) };
    server.fake.next(Next::Say(pending));
    let reply = server.ask(Request::post("/v1/payouts", "k", r#"{"amount":1,"currency":"usd"}"#)).await;
    let problem = reply.problem(503, "outcome_pending");
    assert_eq!(problem["payout"], payment.reference(&server.fake.references).to_string());
    assert_eq!((&problem["charge"], &problem["safe_new_key"]), (&Value::Null, &json!(false)));
    assert_eq!(reply.header("retry-after"), Some("2"));
}
