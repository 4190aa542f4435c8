//! Two real servers, each with its own store. A transfer that leaves one arrives at the other
//! exactly once or not at all, through lost messages and killed processes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::relay::{FAULTS, Fault, Relay};
use support::*;

const HASTY: [(&str, &str); 5] = [
    ("COUNTERFOIL_IDEMPOTENCY__LEASE_MS", "2000"),
    ("COUNTERFOIL_OUTBOX__POLL_MS", "20"),
    ("COUNTERFOIL_OUTBOX__BACKOFF_BASE_MS", "10"),
    ("COUNTERFOIL_OUTBOX__BACKOFF_CAP_MS", "20"),
    ("COUNTERFOIL_PEERING__TIMEOUT_MS", "1000"),
];
const MAIN: &str = "chart:payable:USD";
/// The account for debts to the peer on our side, and our account on the peer's side.
const OWED: &str = "chart:peer:eu:USD";
const OURS: &str = "clearing:acme";
const PEER: &str = "COUNTERFOIL_PEERS__EU";

fn json_of(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("not JSON: {answer:?}"))
}

fn body(amount: i64, destination: &str) -> String {
    format!(r#"{{"amount":{amount},"currency":"USD","peer":"eu","destination":"{destination}"}}"#)
}

/// Posted, pending and available amounts of an account.
fn balance(client: &Client, code: &str) -> [i64; 3] {
    let balance = json_of(&client.get(&format!("/v1/accounts/{code}/balance")));
    ["posted", "pending", "available"]
        .map(|name| balance[name].as_i64().unwrap_or_else(|| panic!("{balance}")))
}

/// Two servers and the relay between them.
struct Pair {
    here: Bench,
    there: Bench,
    relay: Relay,
    ours: String,
}

impl Pair {
    fn new() -> Pair {
        Pair::of(Bench::new(&HASTY), Bench::new(&HASTY))
    }

    /// Funds one side; opens our account and other accounts at the peer.
    fn of(mut here: Bench, there: Bench) -> Pair {
        let server = there.serve();
        let client = there.client(&server);
        let open = |code: &str, more: &str| {
            let body = format!(r#"{{"code":"{code}","asset":"USD"{more}}}"#);
            let opened = client.post("/v1/accounts", &format!("open-{code}"), &body).unwrap();
            assert_eq!(opened.status, 201, "{opened:?}");
            field(&opened.body, "id")
        };
        let ours = open(OURS, r#","floor":-1000000"#);
        open("alice", "");
        open("full", r#","cap":5"#);
        assert_eq!(server.terminate(), Some(0));
        let relay = Relay::to(there.port);
        here.settings.push((PEER, url(&there.api_key, relay.port, &ours)));
        Pair { here, there, relay, ours }
    }

    /// Connects the servers without a relay.
    fn directly(mut self) -> Pair {
        self.here.settings.retain(|(name, _)| *name != PEER);
        self.here.settings.push((PEER, url(&self.there.api_key, self.there.port, &self.ours)));
        self
    }

    /// Starts both servers, with `charges` times 1250 on our side.
    fn serve(&self, charges: usize) -> (Server, Server) {
        let (here, there) = (self.here.serve(), self.there.serve());
        for number in 0..charges {
            assert_eq!(self.here.charge(&format!("funds-{number}")).status, 201);
        }
        (here, there)
    }

    fn clients(&self, (here, there): &(Server, Server)) -> (Client, Client) {
        (self.here.client(here), self.there.client(there))
    }

    fn verified(&self) {
        self.here.verified();
        self.there.verified();
        let effects = self.here.provider.effects();
        let payouts =
            effects.iter().filter(|effect| effect.kind == counterfoil_provider_simulator::EffectKind::Payout);
        assert_eq!(payouts.count(), 0, "the provider saw nothing of it");
        for secret in [&self.here.api_key, &self.there.api_key] {
            assert!(!self.here.log_text().contains(secret.as_str()), "a key is in the log");
        }
    }
}

fn url(api_key: &str, port: u16, account: &str) -> String {
    format!("counterfoil+http://{api_key}@127.0.0.1:{port}/{account}")
}

/// Both ledgers have every sent amount, once each.
fn mirrors((here, there): &(Client, Client), mut sent: Vec<i64>) {
    sent.sort_unstable();
    assert_eq!(moved(here, OWED, "credit"), sent, "here");
    assert_eq!(moved(there, OURS, "debit"), sent, "there");
    let sum: i64 = sent.iter().sum();
    assert_eq!((balance(here, OWED), balance(there, OURS)[0]), ([sum, 0, sum], -sum));
    let paid = list(here, "/v1/payouts");
    let paid = paid.iter().filter(|payout| payout["status"] == "paid");
    assert_eq!(paid.count(), sent.len());
}

/// All items of a list, page by page.
fn list(client: &Client, path: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let after = all
            .last()
            .map_or(String::new(), |last| format!("&starting_after={}", last["id"].as_str().unwrap()));
        let page = json_of(&client.get(&format!("{path}?limit=100{after}")));
        all.extend(page["data"].as_array().unwrap_or_else(|| panic!("{page}")).iter().cloned());
        if page["has_more"] == false {
            return all;
        }
    }
}

/// The amounts posted to one side of an account, sorted.
fn moved(client: &Client, code: &str, side: &str) -> Vec<i64> {
    let entries = list(client, &format!("/v1/accounts/{code}/entries"));
    let posted = entries.iter().filter(|entry| entry["layer"] == "posted" && entry["direction"] == side);
    let mut amounts: Vec<i64> = posted.map(|entry| entry["amount"].as_i64().unwrap()).collect();
    amounts.sort_unstable();
    amounts
}

#[test]
fn a_payout_refused_by_the_peer_is_released_and_leaves_no_trace_there() {
    let mut pair = Pair::new();
    let servers = pair.serve(1);
    let (here, there) = pair.clients(&servers);
    let refused = |key: &str, body: &str, status: u16, error: &str| {
        let answer = here.post("/v1/payouts", key, body).unwrap();
        assert_eq!((answer.status, answer.error().as_str()), (status, error), "{answer:?}");
        assert_eq!(balance(&here, MAIN), [1_250, 0, 1_250], "{key}");
        let again = here.post("/v1/payouts", key, body).unwrap();
        assert_eq!(again.declared(), answer.declared(), "{key}");
        answer
    };
    // Refused before anything is stored.
    let unknown = body(100, "alice").replace("eu", "asia");
    let answer = here.post("/v1/payouts", "unknown", &unknown).unwrap();
    assert_eq!((answer.status, answer.error().as_str()), (400, "invalid_request"));
    assert_eq!(json_of(&answer)["errors"][0]["pointer"], "/peer");
    // Refused by the peer, for good.
    let full = refused("full", &body(100, "full"), 402, "payout_failed");
    assert_eq!(field(&full.body, "decline_code"), "cap_exceeded");
    refused("nobody", &body(100, "nobody"), 400, "gateway_rejected");
    refused("self", &body(100, OURS), 400, "gateway_rejected");
    refused("elsewhere", &body(100, "ac_00000000000000000000000000"), 400, "gateway_rejected");
    assert_eq!(balance(&there, OURS)[0], 0);
    // Refused by a peer with an unknown API key, and by an unreachable peer.
    drop(servers);
    let mut key = url("sk_wrong", pair.relay.port, &pair.ours);
    for (error, status) in [("gateway_unauthorized", 502), ("gateway_unavailable", 503)] {
        pair.here.settings.retain(|(name, _)| *name != PEER);
        pair.here.settings.push((PEER, key));
        let _there = pair.there.serve();
        let server = pair.here.serve();
        let here = pair.here.client(&server);
        let answer = loop {
            let answer = here.post("/v1/payouts", error, &body(100, "alice")).unwrap();
            if answer.error() != "outcome_pending" {
                break answer;
            }
        };
        assert_eq!((answer.status, answer.error().as_str()), (status, error));
        assert_eq!(balance(&here, MAIN), [1_250, 0, 1_250]);
        key = url(&pair.there.api_key, free_port(), &pair.ours);
    }
    pair.verified();
}

#[test]
fn a_payout_is_in_both_ledgers_and_is_replayed() {
    let pair = Pair::new();
    let servers = pair.serve(1);
    let (here, there) = pair.clients(&servers);
    let alice = field(&there.get("/v1/accounts/alice").body, "id");
    for (key, destination, amount) in [("code", "alice", 100), ("id", alice.as_str(), 101)] {
        let sent = here.post("/v1/payouts", key, &body(amount, destination)).unwrap();
        assert_eq!(sent.status, 201, "{sent:?}");
        let shown = json_of(&sent);
        assert_eq!((&shown["status"], &shown["gateway"]["name"]), (&json!("paid"), &json!("eu")));
        let again = here.post("/v1/payouts", key, &body(amount, destination)).unwrap();
        assert_eq!((again.declared(), again.is_replay()), (sent.declared(), true));
        // Each side names the other's object.
        let transfer =
            there.get(&format!("/v1/transfers/{}", shown["gateway"]["reference"].as_str().unwrap()));
        let transfer = json_of(&transfer);
        assert_eq!((&transfer["from"], &transfer["to"]), (&json!(pair.ours), &json!(alice)));
        assert_eq!(transfer["metadata"]["counterfoil_payment"], shown["id"]);
    }
    let form = "amount=102&currency=usd&peer=eu&destination=alice";
    let headers = format!(
        "Authorization: Bearer {}\r\nContent-Type: application/x-www-form-urlencoded\r\nIdempotency-Key: form\r\n",
        pair.here.api_key
    );
    assert_eq!(exchange(pair.here.port, "POST", "/v1/payouts", &headers, form).unwrap().status, 201);
    mirrors(&(here, there.clone()), vec![100, 101, 102]);
    assert_eq!(balance(&there, "alice"), [303, 0, 303]);
    pair.verified();
}

#[test]
fn lost_messages_are_repeated_and_executed_once() {
    let pair = Pair::new();
    let servers = pair.serve(1);
    let clients = pair.clients(&servers);
    let mut sent = Vec::new();
    for (number, first) in FAULTS.into_iter().enumerate() {
        for (again, second) in FAULTS.into_iter().enumerate() {
            pair.relay.plan(&[first, second]);
            let amount = 1 + i64::try_from(number * 10 + again).unwrap();
            let answer = clients.0.until_final(
                "/v1/payouts",
                &format!("{first:?}-{second:?}"),
                &body(amount, "alice"),
            );
            assert_eq!(answer.status, 201, "{first:?} {second:?}: {answer:?}");
            sent.push(amount);
        }
    }
    mirrors(&clients, sent);
    pair.verified();
}

#[test]
fn a_contradicting_answer_is_parked_and_adopted_from_the_peers_own_ledger() {
    let pair = Pair::new();
    let servers = pair.serve(1);
    let clients = pair.clients(&servers);
    for (number, fault) in [Fault::OtherAmount, Fault::OtherAccount].into_iter().enumerate() {
        pair.relay.plan(&[fault]);
        let (key, amount) = (format!("{fault:?}"), 100 + i64::try_from(number).unwrap());
        let pending = clients.0.post("/v1/payouts", &key, &body(amount, "alice")).unwrap();
        assert_eq!(pending.error(), "outcome_pending", "{pending:?}");
        let payout = field(&pending.body, "payout");
        assert_eq!(json_of(&clients.0.get(&format!("/v1/payouts/{payout}")))["status"], "parked");
        assert_eq!(balance(&clients.0, MAIN)[1], amount, "the money stays reserved");
        let told = run(&["dead-letters", "list", "--json", "--store", pair.here.url()]);
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        let letter = &told["letters"][0]["letter"];
        assert_eq!((&letter["reason"], &letter["payout"]), (&json!("answer_differs"), &json!(payout)));
        assert_eq!(letter["gateway"]["name"], "eu");
        let id = letter["id"].as_str().unwrap();
        let command = |how: &[&str]| {
            run(&[&["dead-letters", "resolve", id], how, &["--store", pair.here.url()]].concat())
        };
        assert_eq!(command(&["--fail", "it is not there"]).status.code(), Some(2), "the peer did it");
        let adopted = command(&["--adopt"]);
        assert!(adopted.status.success(), "{}", text(&adopted.stderr));
        assert_eq!(clients.0.post("/v1/payouts", &key, &body(amount, "alice")).unwrap().status, 201);
    }
    mirrors(&clients, vec![100, 101]);
    pair.verified();
}

#[test]
fn payouts_wait_for_a_peer_that_is_no_longer_configured() {
    let mut pair = Pair::new();
    let (server, there) = pair.serve(1);
    let here = pair.here.client(&server);
    pair.relay.plan(&[Fault::Late]);
    let asking = std::thread::spawn({
        let here = here.clone();
        move || here.post("/v1/payouts", "k", &body(100, "alice"))
    });
    until("it is under way", || here.key_state("k").is_some());
    server.kill();
    let _ = asking.join().unwrap();
    pair.here.settings.retain(|(name, _)| *name != PEER);
    let server = pair.here.serve();
    let here = pair.here.client(&server);
    let payout = || json_of(&here.get("/v1/payouts"))["data"][0].clone();
    let timeline = format!("/v1/payouts/{}/timeline", payout()["id"].as_str().unwrap());
    until("it is seen that it waits", || here.get(&timeline).body.contains("peer_not_set_up"));
    assert_eq!(payout()["status"], "processing");
    assert_eq!(here.post("/v1/payouts", "k", &body(100, "alice")).unwrap().error(), "outcome_pending");
    assert_eq!(here.post("/v1/payouts", "other", &body(100, "alice")).unwrap().status, 400);
    assert_eq!(balance(&here, MAIN), [1_250, 100, 1_150]);
    drop((server, there));
    pair.verified();
}

/// Sends many transfers while the servers are killed in turns.
fn killed_in_turns(pair: &Pair) {
    const SENDERS: usize = 4;
    const EACH: usize = 25;
    const KILLS: usize = 8;
    let (here, there) = pair.serve(10);
    let client = pair.here.client(&here);
    let (done, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sent, servers) = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (client, done) = (&client, &done);
                scope.spawn(move || {
                    let mut sent = Vec::new();
                    for number in 0..EACH {
                        let amount = 1 + i64::try_from(sender * EACH + number).unwrap();
                        // Some transfers have no destination account; those must appear on neither
                        // side.
                        let destination = if number % 5 == 4 { "full" } else { "alice" };
                        let key = format!("{sender}-{number}");
                        let request = body(amount + 5, destination);
                        let answer = settled(client, &key, &request);
                        match answer.status {
                            201 => sent.push(amount + 5),
                            402 => assert_eq!(destination, "full"),
                            // The peer was down for all attempts and certainly never saw the
                            // request.
                            503 => assert_eq!(answer.error(), "gateway_unavailable"),
                            status => panic!("{status} {answer:?}"),
                        }
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                    sent
                })
            })
            .collect();
        let killer = scope.spawn(|| {
            let mut servers = [here, there];
            for kill in 0..KILLS {
                let before = done.load(Ordering::SeqCst);
                until("some are through", || {
                    over.load(Ordering::SeqCst) || done.load(Ordering::SeqCst) >= before + SENDERS
                });
                if over.load(Ordering::SeqCst) {
                    assert!(kill >= 4, "all were through before both had died twice");
                    break;
                }
                let [ours, theirs] = servers;
                servers = if kill % 2 == 0 {
                    ours.kill();
                    [pair.here.serve(), theirs]
                } else {
                    theirs.kill();
                    [ours, pair.there.serve()]
                };
            }
            servers
        });
        let sent: Vec<i64> = senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect();
        over.store(true, Ordering::SeqCst);
        (sent, killer.join().unwrap())
    });
    assert!(sent.len() > SENDERS * EACH / 4, "{}", sent.len());
    let clients = (client, pair.there.client(&servers[1]));
    mirrors(&clients, sent);
    assert_eq!(balance(&clients.0, MAIN)[1], 0, "nothing is reserved any more");
    drop(servers);
    pair.verified();
}

/// Repeats a request, also while a server is down, until its answer is final.
fn settled(client: &Client, key: &str, body: &str) -> Answer {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        match client.post("/v1/payouts", key, body) {
            Ok(answer) if answer.status == 503 && answer.error() == "gateway_unavailable" => return answer,
            Ok(answer) if answer.status != 503 && answer.status != 409 => return answer,
            Ok(_) | Err(_) => assert!(Instant::now() < deadline, "{key} has no answer after a minute"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn either_server_may_die_at_any_time() {
    killed_in_turns(&Pair::new());
    killed_in_turns(&Pair::new().directly());
}

#[test]
fn either_server_may_die_at_any_time_with_a_database_on_either_side() {
    let database = database::empty();
    killed_in_turns(&Pair::of(Bench::at(database.url(), &HASTY), Bench::new(&HASTY)).directly());
    let database = database::empty();
    killed_in_turns(&Pair::of(Bench::new(&HASTY), Bench::at(database.url(), &HASTY)));
}
