//! Payouts on the real server, with a faulty provider and a killed process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use counterfoil_provider_simulator::{EffectKind, Faults};
use serde_json::{Value, json};
use support::*;

const HASTY: [(&str, &str); 3] = [
    ("COUNTERFOIL_OUTBOX__POLL_MS", "20"),
    ("COUNTERFOIL_OUTBOX__BACKOFF_BASE_MS", "10"),
    ("COUNTERFOIL_OUTBOX__BACKOFF_CAP_MS", "20"),
];
const MAIN: &str = "chart:payable:USD";
const OWED: &str = "chart:receivable:USD";

fn json_of(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("not JSON: {answer:?}"))
}

fn body(amount: i64) -> String {
    format!(r#"{{"amount":{amount},"currency":"USD"}}"#)
}

/// The amounts paid out by the provider, in order.
fn paid_out(bench: &Bench) -> Vec<u64> {
    let effects = bench.provider.effects().into_iter();
    effects.filter(|effect| effect.kind == EffectKind::Payout).map(|effect| effect.amount).collect()
}

/// Posted, pending and available amounts of an account.
fn balance(client: &Client, code: &str) -> [i64; 3] {
    let balance = json_of(&client.get(&format!("/v1/accounts/{code}/balance")));
    ["posted", "pending", "available"].map(|name| balance[name].as_i64().unwrap())
}

/// Sends a request twice: the answer has this status, and its replay has the same bytes.
#[track_caller]
fn once(client: &Client, key: &str, body: &str, status: u16) -> Answer {
    let answer = client.post("/v1/payouts", key, body).unwrap();
    assert_eq!(answer.status, status, "{body}: {answer:?}");
    let again = client.post("/v1/payouts", key, body).unwrap();
    assert_eq!((again.declared(), again.is_replay()), (answer.declared(), true), "{body}");
    answer
}

#[test]
fn payouts_never_exceed_the_balance() {
    let bench = Bench::new(&[]);
    let server = bench.serve();
    let client = bench.client(&server);
    let poor = once(&client, "poor", &body(1), 400);
    assert_eq!(poor.error(), "insufficient_funds");
    assert_eq!(client.charge("funds").status, 201);
    assert_eq!(once(&client, "much", &body(1_251), 400).error(), "insufficient_funds");

    let paid = once(
        &client,
        "paid",
        r#"{"amount":1000,"currency":"usd","destination":"ba_1","description":"weekly"}"#,
        201,
    );
    let shown = json_of(&paid);
    assert_eq!((&shown["object"], &shown["status"]), (&json!("payout"), &json!("paid")));
    assert_eq!((&shown["amount"], &shown["destination"]), (&json!(1_000), &json!("ba_1")));
    let target = format!("/v1/payouts/{}", field(&paid.body, "id"));
    assert_eq!(paid.headers["location"], target);
    assert_eq!(client.get(&target).body, paid.body);
    assert_eq!((balance(&client, MAIN), balance(&client, OWED)), ([250, 0, 250], [250, 0, 250]));
    assert_eq!(
        once(&client, "poor", &body(1), 400).error(),
        "insufficient_funds",
        "what was said stays said"
    );
    assert_eq!(client.post("/v1/payouts", "paid", &body(1_000)).unwrap().status, 422);

    let failed =
        once(&client, "failed", r#"{"amount":250,"currency":"usd","destination":"ba_account_closed"}"#, 402);
    assert_eq!(
        (failed.error().as_str(), field(&failed.body, "decline_code").as_str()),
        ("payout_failed", "account_closed")
    );
    let shown = json_of(&client.get(&format!("/v1/payouts/{}", field(&failed.body, "payout"))));
    assert_eq!(
        (&shown["status"], &shown["failure"]["decline_code"]),
        (&json!("failed"), &json!("account_closed"))
    );
    let rejected =
        once(&client, "rejected", r#"{"amount":250,"currency":"usd","destination":"acct_1"}"#, 400);
    assert_eq!(rejected.error(), "gateway_rejected");
    assert_eq!(balance(&client, MAIN), [250, 0, 250], "it is all there again");

    let timeline = json_of(&client.get(&format!("{target}/timeline")));
    let kinds: Vec<&str> =
        timeline["data"].as_array().unwrap().iter().map(|step| step["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["claimed", "provider_answered", "settled"]);
    let list = json_of(&client.get("/v1/payouts"));
    let statuses: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["failed", "failed", "paid"]);
    let key = json_of(&client.get("/v1/idempotency-keys/paid"));
    assert_eq!(key["resource"], json!({"type": "payout", "id": field(&paid.body, "id")}));
    assert_eq!(json_of(&client.get("/v1/idempotency-keys/poor"))["resource"], Value::Null);
    assert_eq!(paid_out(&bench), [1_000]);
    bench.verified();
}

#[test]
fn a_payout_with_a_lost_answer_is_executed_once() {
    for faults in [
        Faults { drop_after: 0.7, ..Faults::default() },
        Faults { error_before: 0.5, error_after: 0.3, ..Faults::default() },
        Faults { drop_before: 0.7, ..Faults::default() },
    ] {
        let bench = Bench::new(&HASTY);
        let server = bench.serve();
        let client = bench.client(&server);
        assert_eq!(client.charge("funds").status, 201);
        bench.provider.set_faults(faults).unwrap();
        for number in 0..5 {
            let answer = client.until_final("/v1/payouts", &format!("k{number}"), &body(100));
            assert_eq!(answer.status, 201, "{answer:?}");
        }
        assert_eq!(paid_out(&bench), [100; 5]);
        assert_eq!(balance(&client, MAIN), [750, 0, 750]);
        bench.verified();
    }
}

#[test]
fn a_payout_of_a_killed_server_is_finished_by_the_next() {
    let bench = Bench::new(&HASTY);
    let server = bench.serve();
    assert_eq!(bench.client(&server).charge("funds").status, 201);
    let mut expected = Vec::new();
    let mut server = Some(server);
    for (number, faults) in [
        // Executed and never answered; never executed; executed and cut off.
        Faults { hang_after: 1.0, ..Faults::default() },
        Faults { drop_before: 1.0, ..Faults::default() },
        Faults { drop_after: 1.0, ..Faults::default() },
    ]
    .into_iter()
    .enumerate()
    {
        let amount = 100 + i64::try_from(number).unwrap();
        let running = server.take().unwrap_or_else(|| bench.serve());
        bench.provider.set_faults(faults).unwrap();
        let (client, key) = (bench.client(&running), format!("dies-{number}"));
        let asking = std::thread::spawn({
            let (key, body) = (key.clone(), body(amount));
            move || client.post("/v1/payouts", &key, &body)
        });
        let client = bench.client(&running);
        until("it is under way", || client.key_state(&key).is_some());
        running.kill();
        // Either the connection broke, or the outcome is not known yet.
        if let Ok(answer) = asking.join().unwrap() {
            assert_eq!(answer.error(), "outcome_pending");
        }
        bench.provider.set_faults(Faults::default()).unwrap();
        let heir = bench.serve();
        let client = bench.client(&heir);
        let answer = client.until_final("/v1/payouts", &key, &body(amount));
        assert_eq!(answer.status, 201, "{answer:?}");
        once(&client, &key, &body(amount), 201);
        expected.push(u64::try_from(amount).unwrap());
        server = Some(heir);
    }
    assert_eq!(paid_out(&bench), expected);
    assert_eq!(balance(&bench.client(server.as_ref().unwrap()), MAIN), [947, 0, 947]);
    bench.verified();
}

#[test]
fn a_payout_in_lasting_doubt_is_resolved_by_an_operator() {
    let bench = Bench::new(&HASTY);
    let server = bench.serve();
    let client = bench.client(&server);
    assert_eq!(client.charge("funds").status, 201);
    let faults = Faults { error_before: 1.0, store_errors: true, ..Faults::default() };
    bench.provider.set_faults(faults).unwrap();
    let pending = client.post("/v1/payouts", "k", &body(400)).unwrap();
    assert_eq!(pending.error(), "outcome_pending");
    let payout = field(&pending.body, "payout");
    let target = format!("/v1/payouts/{payout}");
    until("the payout is parked", || json_of(&client.get(&target))["status"] == "parked");
    assert_eq!(balance(&client, MAIN), [1_250, 400, 850], "the money stays reserved");
    assert_eq!(client.post("/v1/payouts", "k", &body(400)).unwrap().error(), "outcome_pending");
    assert_eq!(json_of(&client.get("/v1/idempotency-keys/k"))["parked"], "no_evidence");

    let told = run(&["dead-letters", "list", "--json", "--store", bench.url()]);
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    let letter = &told["letters"][0]["letter"];
    assert_eq!(
        (&letter["flow"], &letter["payout"], &letter["charge"]),
        (&json!("payout"), &json!(payout), &Value::Null)
    );
    let id = letter["id"].as_str().unwrap();
    let sheet = text(&run(&["dead-letters", "show", id, "--store", bench.url()]).stdout);
    assert!(sheet.contains(&payout), "{sheet}");
    let command =
        |how: &[&str]| run(&[&["dead-letters", "resolve", id], how, &["--store", bench.url()]].concat());
    for how in ["--adopt", "--void"] {
        assert_eq!(command(&[how]).status.code(), Some(2), "{how}");
    }
    let resolved = command(&["--fail", "the bank shows nothing"]);
    assert!(resolved.status.success(), "{}", text(&resolved.stderr));
    assert!(
        text(&resolved.stdout).contains(&format!("The payout {payout} is failed")),
        "{}",
        text(&resolved.stdout)
    );
    assert_eq!(json_of(&client.get(&target))["failure"]["code"], "marked_failed");
    assert_eq!(once(&client, "k", &body(400), 502).error(), "marked_failed");
    assert_eq!((balance(&client, MAIN), paid_out(&bench)), ([1_250, 0, 1_250], vec![]));
    bench.verified();
}

#[test]
fn two_servers_on_one_database_never_pay_out_more_than_the_balance() {
    let database = database::empty();
    let bench = Bench::at(database.url(), &HASTY);
    let servers = [bench.serve(), bench.serve_on(free_port())];
    let clients = servers.each_ref().map(|server| bench.client(server));
    assert_eq!(clients[0].charge("funds").status, 201);
    bench.provider.set_faults(Faults { drop_after: 0.2, ..Faults::default() }).unwrap();
    let pay = |number: usize| {
        let client = &clients[number % 2];
        client.until_final("/v1/payouts", &format!("k{number}"), &body(250)).status
    };
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let pay = &pay;
        let racing: Vec<_> = (0..12).map(|number| scope.spawn(move || pay(number))).collect();
        racing.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let count = |status: u16| answers.iter().filter(|answer| **answer == status).count();
    assert_eq!((count(201), count(400)), (5, 7), "{answers:?}");
    assert_eq!((paid_out(&bench), balance(&clients[1], MAIN)), (vec![250; 5], [0, 0, 0]));
    let [first, second] = servers;
    first.kill();
    assert_eq!(clients[1].post("/v1/payouts", "k0", &body(250)).unwrap().status, answers[0]);
    drop(second);
    bench.verified();
}
