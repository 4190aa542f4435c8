//! Captures, voids, refunds, split tender and dead letters on the real server, with a faulty
//! provider.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use counterfoil_provider_simulator::{EffectKind, Faults};
use serde_json::{Value, json};
use support::*;

const HELD: &str = r#"{"amount":1250,"currency":"USD","payment_method":"pm_card_visa","capture":false}"#;

fn json_of(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("not JSON: {answer:?}"))
}

fn id(answer: &Answer) -> String {
    field(&answer.body, "id")
}

/// Sends a request twice: the answer has this status, and its replay has the same bytes.
#[track_caller]
fn once(client: &Client, path: &str, key: &str, body: &str, status: u16) -> Answer {
    let answer = client.post(path, key, body).unwrap();
    assert_eq!(answer.status, status, "{path} {body}: {answer:?}");
    let again = client.post(path, key, body).unwrap();
    assert_eq!((again.declared(), again.is_replay()), (answer.declared(), true), "{path} {body}");
    answer
}

/// The effects at the provider, in order.
fn effects(bench: &Bench) -> Vec<(EffectKind, u64)> {
    bench.provider.effects().into_iter().map(|effect| (effect.kind, effect.amount)).collect()
}

fn resource(client: &Client, key: &str) -> Value {
    json_of(&client.get(&format!("/v1/idempotency-keys/{key}")))["resource"].clone()
}

/// Posted, pending and available amounts of an account.
fn balance(client: &Client, code: &str) -> [i64; 3] {
    let balance = json_of(&client.get(&format!("/v1/accounts/{code}/balance")));
    ["posted", "pending", "available"].map(|name| balance[name].as_i64().unwrap())
}

/// Opens an account with funds; returns its id.
fn wallet(client: &Client, funds: i64) -> String {
    let opened = once(client, "/v1/accounts", "open", r#"{"code":"wallet","asset":"USD","floor":0}"#, 201);
    once(client, "/v1/accounts", "world", r#"{"code":"world","asset":"USD"}"#, 201);
    let fund = format!(r#"{{"from":"world","to":"wallet","amount":{funds},"currency":"USD"}}"#);
    once(client, "/v1/transfers", "fund", &fund, 201);
    id(&opened)
}

fn split(account: &str, method: &str) -> String {
    format!(
        r#"{{"amount":1250,"currency":"USD","payment_method":"{method}","wallet":{{"account":"{account}","amount":250}}}}"#
    )
}

#[test]
fn a_held_charge_is_captured_in_part_and_refunded_until_nothing_is_left() {
    let bench = Bench::new(&[]);
    let server = bench.serve();
    let client = bench.client(&server);
    let held = once(&client, "/v1/charges", "hold", HELD, 201);
    assert_eq!(json_of(&held)["status"], "requires_capture");
    let charge = id(&held);
    let (target, refund) = (format!("/v1/charges/{charge}"), format!(r#"{{"charge":"{charge}"}}"#));
    let part = |amount: i64| format!(r#"{{"charge":"{charge}","amount":{amount}}}"#);

    let early = once(&client, "/v1/refunds", "early", &refund, 409);
    assert_eq!(
        (early.error().as_str(), field(&early.body, "charge_status").as_str()),
        ("charge_state_conflict", "requires_capture")
    );
    let much = once(&client, &format!("{target}/capture"), "much", r#"{"amount":1251}"#, 409);
    assert_eq!(json_of(&much)["amount_available"], 1_250);

    let captured = once(&client, &format!("{target}/capture"), "capture", r#"{"amount":1000}"#, 200);
    assert_eq!(captured.headers["location"], target);
    let shown = json_of(&captured);
    assert_eq!(
        (&shown["status"], &shown["captured"], &shown["amount_captured"]),
        (&json!("succeeded"), &json!(true), &json!(1_000))
    );
    assert_eq!(client.get(&target).body, captured.body);
    once(&client, &format!("{target}/capture"), "twice", "{}", 409);
    let late = once(&client, &format!("{target}/void"), "late", "", 409);
    assert!(field(&late.body, "detail").contains("/v1/refunds"), "{}", late.body);

    let first = once(&client, "/v1/refunds", "first", &part(400), 201);
    let location = format!("/v1/refunds/{}", id(&first));
    assert_eq!(
        (first.headers["location"].as_str(), client.get(&location).body.as_str()),
        (location.as_str(), first.body.as_str())
    );
    assert_eq!(json_of(&client.get(&target))["status"], "partially_refunded");
    let over = once(&client, "/v1/refunds", "over", &part(601), 409);
    assert_eq!(json_of(&over)["amount_available"], 600);
    let rest = once(&client, "/v1/refunds", "rest", &refund, 201);
    assert_eq!(json_of(&rest)["amount"], 600);
    once(&client, "/v1/refunds", "none", &refund, 409);
    once(&client, "/v1/refunds", "one-cent", &part(1), 409);
    let whole = json_of(&client.get(&target));
    assert_eq!((&whole["status"], &whole["amount_refunded"]), (&json!("refunded"), &json!(1_000)));

    let list = json_of(&client.get("/v1/refunds?limit=1"));
    assert_eq!((&list["data"][0]["id"], &list["has_more"]), (&json!(id(&rest)), &json!(true)));
    let list = json_of(&client.get(&format!("/v1/refunds?starting_after={}", id(&rest))));
    assert_eq!((&list["data"][0]["id"], &list["has_more"]), (&json!(id(&first)), &json!(false)));
    assert_eq!(
        effects(&bench),
        [
            (EffectKind::Authorize, 1_250),
            (EffectKind::Capture, 1_000),
            (EffectKind::Refund, 400),
            (EffectKind::Refund, 600)
        ]
    );
    bench.verified();
}

#[test]
fn a_keys_record_names_the_object_it_made_or_changed() {
    let bench = Bench::new(&[]);
    let server = bench.serve();
    let client = bench.client(&server);
    let charge = id(&once(&client, "/v1/charges", "hold", HELD, 201));
    let refund = format!(r#"{{"charge":"{charge}"}}"#);
    once(&client, "/v1/refunds", "early", &refund, 409);
    assert_eq!(resource(&client, "early"), Value::Null, "a refused refund made nothing");
    once(&client, &format!("/v1/charges/{charge}/capture"), "capture", "{}", 200);
    let made = once(&client, "/v1/refunds", "refund", &refund, 201);
    let of = |kind: &str, id: &str| json!({"type": kind, "id": id});
    assert_eq!(resource(&client, "hold"), of("charge", &charge));
    assert_eq!(resource(&client, "capture"), of("charge", &charge));
    assert_eq!(resource(&client, "refund"), of("refund", &id(&made)));
    once(&client, &format!("/v1/charges/{charge}/void"), "void", "{}", 409);
    assert_eq!(resource(&client, "void"), Value::Null);
    let other =
        client.post("/v1/refunds", "refund", &format!(r#"{{"charge":"{charge}","amount":1}}"#)).unwrap();
    assert_eq!((other.status, other.error().as_str()), (422, "idempotency_key_fingerprint_mismatch"));
    let elsewhere = client.post(&format!("/v1/charges/{charge}/void"), "capture", "{}").unwrap();
    assert_eq!(elsewhere.status, 422, "the path is part of the request");
}

#[test]
fn a_void_releases_the_hold_once_and_other_tenants_see_nothing() {
    let bench = Bench::new(&[]);
    let server = bench.serve();
    let client = bench.client(&server);
    let charge = id(&once(&client, "/v1/charges", "hold", HELD, 201));
    let made = run(&["tenant", "create", "other", "--json", "--store", bench.url()]);
    let other = Client::new(server.port, &field(&text(&made.stdout), "secret"));
    for part in ["capture", "void"] {
        let answer = other.post(&format!("/v1/charges/{charge}/{part}"), "k", "{}").unwrap();
        assert_eq!((answer.status, answer.error().as_str()), (404, "not_found"));
    }
    let answer = other.post("/v1/refunds", "k", &format!(r#"{{"charge":"{charge}"}}"#)).unwrap();
    assert_eq!((answer.status, answer.error().as_str()), (404, "not_found"));

    let void = format!("/v1/charges/{charge}/void");
    let voided = once(&client, &void, "void", "", 200);
    assert_eq!(
        (json_of(&voided)["status"].as_str(), json_of(&voided)["captured"].as_bool()),
        (Some("voided"), Some(false))
    );
    let twice = once(&client, &void, "again", "{}", 409);
    assert_eq!(field(&twice.body, "charge_status"), "voided");
    once(&client, &format!("/v1/charges/{charge}/capture"), "late", "{}", 409);
    assert_eq!(effects(&bench), [(EffectKind::Authorize, 1_250), (EffectKind::Cancel, 1_250)]);
    bench.verified();
}

#[test]
fn a_split_charge_moves_both_parts() {
    let bench = Bench::new(&[]);
    let server = bench.serve();
    let client = bench.client(&server);
    let account = wallet(&client, 1_000);
    let paid = once(&client, "/v1/charges", "split", &split(&account, "pm_card_visa"), 201);
    let shown = json_of(&paid);
    assert_eq!((&shown["status"], &shown["amount_captured"]), (&json!("succeeded"), &json!(1_250)));
    assert_eq!(shown["wallet"], json!({"account": account, "amount": 250}));
    assert_eq!(balance(&client, "wallet"), [750, 0, 750]);
    assert_eq!(effects(&bench), [(EffectKind::Authorize, 1_000), (EffectKind::Capture, 1_000)]);
    let refund = once(&client, "/v1/refunds", "refund", &format!(r#"{{"charge":"{}"}}"#, id(&paid)), 201);
    assert_eq!(json_of(&refund)["amount"], 1_000, "what the card paid");
    bench.verified();
}

#[test]
fn a_split_charge_that_is_declined_moves_neither_part() {
    let bench = Bench::new(&[]);
    let server = bench.serve();
    let client = bench.client(&server);
    let account = wallet(&client, 300);
    let declined = once(&client, "/v1/charges", "declined", &split(&account, "pm_card_chargeDeclined"), 402);
    assert_eq!(declined.error(), "card_declined");
    let charge = field(&declined.body, "charge");
    assert_eq!(json_of(&client.get(&format!("/v1/charges/{charge}")))["status"], "failed");
    assert_eq!(balance(&client, "wallet"), [300, 0, 300]);
    once(
        &client,
        "/v1/transfers",
        "spend",
        r#"{"from":"wallet","to":"world","amount":100,"currency":"USD"}"#,
        201,
    );
    let poor = once(&client, "/v1/charges", "poor", &split(&account, "pm_card_visa"), 400);
    assert_eq!(poor.error(), "insufficient_funds");
    assert_eq!((balance(&client, "wallet"), effects(&bench)), ([200, 0, 200], vec![]));
    assert_eq!(
        client.post("/v1/charges", "none", &split("ac_1", "pm_card_visa")).unwrap().error(),
        "invalid_request"
    );
    let held = split(&account, "pm_card_visa").replace("\"wallet\"", "\"capture\":false,\"wallet\"");
    assert_eq!(client.post("/v1/charges", "held", &held).unwrap().error(), "invalid_request");
    bench.verified();
}

#[test]
fn an_operation_with_a_lost_answer_is_executed_once() {
    let bench = Bench::new(&[
        ("COUNTERFOIL_OUTBOX__POLL_MS", "20"),
        ("COUNTERFOIL_OUTBOX__BACKOFF_BASE_MS", "20"),
        ("COUNTERFOIL_OUTBOX__BACKOFF_CAP_MS", "50"),
    ]);
    let server = bench.serve();
    let client = bench.client(&server);
    let charge = id(&once(&client, "/v1/charges", "hold", HELD, 201));
    bench.provider.set_faults(Faults { drop_after: 1.0, ..Faults::default() }).unwrap();
    let capture = format!("/v1/charges/{charge}/capture");
    let captured = client.until_final(&capture, "capture", r#"{"amount":1000}"#);
    assert_eq!((captured.status, json_of(&captured)["amount_captured"].as_i64()), (200, Some(1_000)));
    let refund = format!(r#"{{"charge":"{charge}","amount":400}}"#);
    let refunded = client.until_final("/v1/refunds", "refund", &refund);
    assert_eq!(refunded.status, 201, "{refunded:?}");
    once(&client, "/v1/refunds", "refund", &refund, 201);
    assert_eq!(
        effects(&bench),
        [(EffectKind::Authorize, 1_250), (EffectKind::Capture, 1_000), (EffectKind::Refund, 400)]
    );
    bench.verified();
}

/// A bench whose provider executes each request twice and reports failure, so only a human can
/// decide.
fn contradicted() -> Bench {
    let bench = Bench::new(&[
        ("COUNTERFOIL_OUTBOX__POLL_MS", "20"),
        ("COUNTERFOIL_OUTBOX__BACKOFF_BASE_MS", "10"),
        ("COUNTERFOIL_OUTBOX__BACKOFF_CAP_MS", "20"),
    ]);
    let faults = Faults { error_after: 1.0, duplicate: 1.0, store_errors: true, ..Faults::default() };
    bench.provider.set_faults(faults).unwrap();
    bench
}

/// The dead letters listed by the command line.
fn listed(bench: &Bench) -> Vec<Value> {
    let told = run(&["dead-letters", "list", "--json", "--store", bench.url()]);
    assert!(told.status.success(), "{}", text(&told.stderr));
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["more"], false);
    told["letters"].as_array().unwrap().clone()
}

#[test]
fn a_dead_letter_is_visible_to_and_decided_by_operators_only() {
    let bench = contradicted();
    let server = bench.serve();
    let client = bench.client(&server);
    let made =
        run(&["tenant", "key", "create", "acme", "--scopes", "admin", "--json", "--store", bench.url()]);
    let operator = Client::new(server.port, &field(&text(&made.stdout), "secret"));
    assert_eq!(json_of(&operator.get("/v1/dead-letters"))["data"], json!([]));
    let pending = client.charge("k");
    assert_eq!(pending.error(), "outcome_pending");
    until("the charge is parked", || json_of(&operator.get("/v1/dead-letters"))["data"] != json!([]));

    let refused = client.get("/v1/dead-letters");
    assert_eq!((refused.status, refused.error().as_str()), (403, "forbidden"));
    let letter = json_of(&operator.get("/v1/dead-letters"))["data"][0].clone();
    let target = format!("/v1/dead-letters/{}", letter["id"].as_str().unwrap());
    assert_eq!(json_of(&operator.get(&target)), letter);
    assert_eq!(
        (&letter["flow"], &letter["reason"], &letter["money_at_risk"], &letter["charge"]),
        (&json!("charge"), &json!("contradiction"), &json!(1_250), &json!(field(&pending.body, "charge")))
    );
    assert!(!letter.to_string().contains("CANARY"), "no credential: {letter}");
    let timeline = json_of(&client.get(letter["timeline"].as_str().unwrap()));
    assert!(timeline["data"].as_array().unwrap().iter().any(|step| step["kind"] == "parked"), "{timeline}");
    let metrics = exchange(server.port, "GET", "/metrics", "", "").unwrap().body;
    assert!(metrics.contains("counterfoil_dead_letters 1\n"), "{metrics}");
    let stuck =
        once(&client, &format!("/v1/charges/{}/void", field(&pending.body, "charge")), "void", "{}", 409);
    assert_eq!(field(&stuck.body, "charge_status"), "parked");

    let resolve = format!("{target}/resolve");
    let adopt = r#"{"resolution":"adopt"}"#;
    assert_eq!(client.post(&resolve, "adopt", adopt).unwrap().status, 403);
    let several = once(&operator, &resolve, "adopt", adopt, 409);
    assert_eq!(
        (several.error().as_str(), field(&several.body, "reason").as_str()),
        ("dead_letter_unresolved", "several")
    );
    assert_eq!(json_of(&operator.get(&target))["reason"], "contradiction", "it stays");
    let again = once(&operator, &resolve, "retry", r#"{"resolution":"retry"}"#, 200);
    let again = json_of(&again);
    assert_eq!((&again["object"], &again["resolution"]), (&json!("dead_letter_resolution"), &json!("retry")));
    until("it is parked again", || operator.get(&target).status == 200);
    let timeline = json_of(&client.get(letter["timeline"].as_str().unwrap()));
    assert!(timeline["data"].as_array().unwrap().iter().any(|step| step["kind"] == "resolved"), "{timeline}");
    assert_eq!(effects(&bench), [(EffectKind::Charge, 1_250), (EffectKind::Charge, 1_250)]);
}

#[test]
fn the_command_line_resolves_dead_letters_on_a_live_and_on_a_stopped_store() {
    let bench = contradicted();
    let server = bench.serve();
    assert_eq!(listed(&bench), Vec::<Value>::new());
    bench.charge("k");
    until("the charge is parked", || !listed(&bench).is_empty());
    let live = listed(&bench);
    assert_eq!((live.len(), &live[0]["tenant"]), (1, &json!("acme")));
    let id = live[0]["letter"]["id"].as_str().unwrap().to_owned();
    let command = |arguments: &[&str]| {
        let all: Vec<&str> =
            ["dead-letters"].iter().chain(arguments).chain(&["--store", bench.url()]).copied().collect();
        run(&all)
    };
    for (arguments, words) in [
        (vec!["show", "dl_1"], "no dead letter dl_1"),
        (vec!["resolve", "dl_1", "--adopt"], "no dead letter dl_1"),
        (vec!["resolve", &id, "--fail", " "], "is empty"),
        (vec!["resolve", &id, "--adopt"], "more than one payment"),
        (vec!["resolve", &id], "--adopt"),
        (vec!["resolve", &id, "--adopt", "--void"], "cannot be used with"),
    ] {
        let refused = command(&arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).contains(words), "{arguments:?}: {}", text(&refused.stderr));
    }
    let table = text(&command(&["list"]).stdout);
    assert!(table.contains(&id) && table.contains("contradiction") && table.contains("1250 USD"), "{table}");
    let sheet = text(&command(&["show", &id]).stdout);
    assert!(sheet.contains("attempts.generation") && sheet.contains("acme"), "{sheet}");
    let resolved = command(&["resolve", &id, "--retry"]);
    assert!(resolved.status.success(), "{}", text(&resolved.stderr));
    assert!(text(&resolved.stdout).contains("is resolved: retry"), "{}", text(&resolved.stdout));
    until("it is parked again", || !listed(&bench).is_empty());
    assert!(bench.log_text().contains("an operator resolves a dead letter"), "{}", bench.log_text());

    assert_eq!(server.terminate(), Some(0));
    let stopped = listed(&bench);
    assert_eq!(stopped[0]["letter"]["id"], json!(id));
    let alone = command(&["resolve", &id, "--adopt"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("--gateway"), "{}", text(&alone.stderr));
    let gateway = format!("stripe+http://sk_test_CANARYgatewaykey@{}", bench.provider.addr());
    let alone = command(&["resolve", &id, "--adopt", "--gateway", &gateway]);
    assert!(text(&alone.stderr).contains("more than one payment"), "{}", text(&alone.stderr));
}
